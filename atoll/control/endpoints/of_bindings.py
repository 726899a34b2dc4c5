"""The endpoints of bindings, as their manifests give them."""

from __future__ import annotations

from collections.abc import Mapping

from atoll.api.admin import AdminTools
from atoll.api.audit import AuditLog
from atoll.api.routes import Route
from atoll.bindings.base import Binding
from atoll.control.deploy.deployer import Deployer
from atoll.control.deploy.sharing import guarded
from atoll.manifests.every import manifests


def binding_routes(
    bindings: Mapping[str, Binding], audit: AuditLog, deployer: Deployer, refused: Mapping[str, str]
) -> list[Route]:
    tools = AdminTools(audit, deployer.find, lambda tenant: deployer.after(tenant, ""))
    found = [(kind, manifest.admin) for kind, manifest in manifests().items()]
    given = [(kind, admin(bindings[kind], tools)) for kind, admin in found if admin is not None]
    return [route for kind, routes in given for route in guarded(kind, routes, refused)]
