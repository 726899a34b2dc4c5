"""Hosts of the node on which a binding answers itself: no worker does there, and not the control API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from atoll.bindings.base import Binding
from atoll.config import Settings
from atoll.manifests.every import manifests

SiteApp = Callable[[Any, Any, Any], Awaitable[None]]  # an ASGI application


def own_hosts(settings: Settings) -> tuple[str, ...]:
    """All hosts on which no worker answers: those of the control API, and those of bindings."""
    of_bindings = [host for manifest in manifests().values() for host in manifest.hosts(settings)]
    return (*settings.control_hosts, *of_bindings)


class Sites:
    """The applications of bindings, by host. Each is made with its first request."""

    def __init__(self, settings: Settings, bindings: Mapping[str, Binding]) -> None:
        self._bindings = bindings
        self._kinds = {
            host.lower().removesuffix(".").encode(): kind
            for kind, manifest in manifests().items()
            for host in manifest.hosts(settings)
        }
        self._made: dict[str, SiteApp] = {}

    def find(self, host: bytes | None) -> SiteApp | None:
        if host is None:
            return None
        kind = self._kinds.get(host) or self._kinds.get(b"*." + host.partition(b".")[2])
        if kind is None:
            return None
        if kind not in self._made:
            make = manifests()[kind].site
            assert make is not None
            self._made[kind] = make(self._bindings[kind])
        return self._made[kind]
