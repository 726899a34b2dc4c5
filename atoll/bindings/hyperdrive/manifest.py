"""Hyperdrive for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import CommandGroup, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.hyperdrive.ops import Hyperdrive
    from atoll.bindings.tcp.ops import Tcp

    tcp = need("tcp")
    assert isinstance(tcp, Tcp)
    return Hyperdrive(services, tcp)


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.hyperdrive.admin import HyperdriveApi
    from atoll.bindings.hyperdrive.ops import Hyperdrive

    assert isinstance(binding, Hyperdrive)
    return HyperdriveApi(binding.databases, tools.audit).routes()


MANIFEST = Manifest(
    kind="hyperdrive",
    shared_file="hyperdrive",
    make=make,
    cloudflare="atoll.bindings.hyperdrive.cloudflare",
    config="atoll.bindings.hyperdrive.config",
    type_name="Hyperdrive",
    admin=admin,
    commands={
        "hyperdrive": CommandGroup(
            "atoll.bindings.hyperdrive.cli",
            "Name the databases that workers connect to.",
            phrases={r"\bGET /api/hyperdrive lists\b": "`atoll hyperdrive list` lists"},
        ),
    },
)
