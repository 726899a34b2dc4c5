"""Checks of settings that need two values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from atoll.errors import StartError

if TYPE_CHECKING:
    from atoll.config import Settings


def check_together(settings: Settings, origins: Mapping[str, str]) -> None:
    """A default must not be above its maximum, and the public URL on the base domain."""
    host = urlsplit(settings.public_url).hostname or settings.base_domain
    if host != settings.base_domain:
        raise StartError(
            f"public_url is {settings.public_url}, but workers answer below base_domain, which is"
            f" {settings.base_domain}",
            "leave out base_domain, or use the same host in both",
        )
    _check_store(settings)
    for name in ("cpu_ms", "wall_ms", "memory_mb", "subrequests", "internal_subrequests", "timer_ms"):
        value, cap = getattr(settings, name), getattr(settings, f"max_{name}")
        if value > cap:
            place, cap_place = (f" ({origins[each]})" if each in origins else "" for each in (name, f"max_{name}"))
            raise StartError(
                f"{name} is {value}{place}, above max_{name}, which is {cap}{cap_place}",
                f"raise max_{name} or lower {name}",
            )


def _check_store(settings: Settings) -> None:
    if settings.store == "sqlite":
        for name in ("node_name", "node_address"):
            if getattr(settings, name):
                raise StartError(f"{name} is for nodes that share a PostgreSQL", "set store too, or leave it out", name)
        if settings.only_node == "on":
            raise StartError("only_node is for nodes with PostgreSQL", "set store too, or leave it out", "only_node")
    elif settings.store.split(":", 1)[0] not in ("postgresql", "postgres"):
        raise StartError(
            "store must be sqlite, or an address that begins with postgresql://", "see docs/guides/cluster.md", "store"
        )
