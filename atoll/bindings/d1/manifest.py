"""D1 for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import BindingQuota, CommandGroup, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.d1.ops import D1

    return D1(services)


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.d1.admin import D1Api
    from atoll.bindings.d1.ops import D1

    assert isinstance(binding, D1)
    return D1Api(binding, tools.audit).routes()


MANIFEST = Manifest(
    kind="d1",
    shared_file="d1_databases",
    stays="D1 databases",
    holds=("d1.db", "SELECT count(*) FROM databases"),
    make=make,
    cloudflare="atoll.bindings.d1.cloudflare",
    config="atoll.bindings.d1.config",
    type_name="D1Database",
    quotas={"d1_databases": BindingQuota("D1 databases.")},
    admin=admin,
    commands={
        "d1": CommandGroup(
            "atoll.bindings.d1.cli",
            "Create D1 databases, run SQL on them, and apply migrations.",
            phrases={
                r"\bGET /api/d1 lists\b": "`atoll d1 list` lists",
                r"\bPOST /api/d1 creates\b": "`atoll d1 create` creates",
            },
        ),
    },
)
