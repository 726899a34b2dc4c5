"""Whether something of this node needs an operator: alerts that fire, files on disk, and the last backup."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.routes import Route, json_answer
from atoll.config import Settings
from atoll.control.endpoints.backup import BackupNote, last_backup
from atoll.observe.alerts import Alert, NodeAlerts


class StorageFile(msgspec.Struct):
    file: str
    bytes: int
    faults: int  # operations that failed since the start


class NodeHealth(msgspec.Struct):
    alerts: list[Alert]
    files: list[StorageFile]
    disk_free_bytes: int | None
    can_backup: bool  # false: the data is in PostgreSQL, which has tools of its own
    backup: BackupNote | None  # the last one that was sent to its end; null: there was none


class HealthApi:
    def __init__(self, settings: Settings, alerts: NodeAlerts) -> None:
        self._settings = settings
        self._alerts = alerts

    def routes(self) -> list[Route]:
        what = "Alerts that fire, files on disk, and the last backup"
        return [Route("GET", "/api/node/health", self.show, Scope.READ, what, gives=NodeHealth, is_node=True)]

    async def show(self, request: Request) -> Response:
        storage = self._alerts.sources.storage()
        return json_answer(
            NodeHealth(
                alerts=list(self._alerts.firing()),
                files=[StorageFile(name, file.bytes, file.faults) for name, file in storage.files.items()],
                disk_free_bytes=storage.free_bytes,
                can_backup=self._settings.store == "sqlite",
                backup=last_backup(self._settings.data),
            )
        )
