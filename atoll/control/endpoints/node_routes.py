"""The endpoints about the node as a whole, for operators."""

from __future__ import annotations

from collections.abc import Mapping

from atoll.api.audit import AuditLog
from atoll.api.routes import Route
from atoll.bindings.services import Objects
from atoll.config import Settings
from atoll.control.endpoints.backup import BackupApi
from atoll.control.endpoints.config import ConfigApi
from atoll.control.endpoints.damage import DamageApi


def node_routes(
    settings: Settings, origins: Mapping[str, str] | None, audit: AuditLog, objects: Objects
) -> list[Route]:
    return [
        *ConfigApi(settings, origins).routes(),
        *BackupApi(settings.data, audit).routes(),
        *DamageApi(objects).routes(),
    ]
