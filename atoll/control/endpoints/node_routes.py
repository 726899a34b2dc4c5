"""The endpoints about the node as a whole, for operators."""

from __future__ import annotations

from collections.abc import Mapping

from atoll.api.admin import AdminTools
from atoll.api.audit import AuditLog
from atoll.api.routes import Route
from atoll.bindings.base import Binding
from atoll.bindings.services import Objects
from atoll.config import Settings
from atoll.control.deploy.deployer import Deployer
from atoll.control.endpoints.backup import BackupApi
from atoll.control.endpoints.config import ConfigApi
from atoll.control.endpoints.damage import DamageApi
from atoll.manifests.every import manifests


def node_routes(
    settings: Settings, origins: Mapping[str, str] | None, audit: AuditLog, objects: Objects
) -> list[Route]:
    return [
        *ConfigApi(settings, origins).routes(),
        *BackupApi(settings.data, audit).routes(),
        *DamageApi(objects).routes(),
    ]


def binding_routes(bindings: Mapping[str, Binding], audit: AuditLog, deployer: Deployer) -> list[Route]:
    tools = AdminTools(audit, deployer.find, lambda tenant: deployer.after(tenant, ""))
    found = [(manifest.admin, bindings[kind]) for kind, manifest in manifests().items()]
    return [route for admin, binding in found if admin is not None for route in admin(binding, tools)]
