"""The control API: all its endpoints in one application. What they do is in the files beside this one.

    boundary.py      what is around every endpoint: who may ask, bodies, errors
    workers_api.py   deploying, and what is deployed          versions_api.py   its history, and going back
    logs_api.py      what happened in the calls of a worker   routes.py         what leads to which worker
    tenants_api.py   whose they are, and how many             tokens_api.py     who may come in, and what they did
    secrets_api.py   what only the worker may know
    node_api.py      the node itself: pages, health, figures

Rooms that have endpoints of their own give their routes as `more`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from atoll.config import Settings
from atoll.control.access import Access
from atoll.control.boundary import Boundary, Route, no_route
from atoll.control.deploy import Deployer
from atoll.control.logs_api import LogsApi
from atoll.control.node_api import NodeApi
from atoll.control.openapi import OpenApi
from atoll.control.routes_api import RoutesApi
from atoll.control.secrets_api import SecretsApi
from atoll.control.tenants_api import TenantsApi
from atoll.control.tokens_api import TokensApi
from atoll.control.versions_api import VersionsApi
from atoll.control.workers import WorkerStore
from atoll.control.workers_api import WorkerAnswer, WorkersApi
from atoll.engine.pool import PoolStats
from atoll.observe.store import LogStore


class ControlApi:
    """Call `app` with what is sent to a control host."""

    def __init__(
        self,
        settings: Settings,
        deployer: Deployer,
        store: WorkerStore,
        logs: LogStore,
        access: Access,
        *,
        is_control: Callable[[bytes], bool],
        stats: Callable[[], PoolStats],
        pool_report: Callable[[], Mapping[str, object]],
        port: Callable[[], int],
        more: Sequence[Route] = (),
    ) -> None:
        self._settings = settings
        self._port = port
        workers = WorkersApi(settings, deployer, self.url_of)
        self.routes: list[Route] = [
            *NodeApi(deployer, stats, pool_report, self.url_of).routes(),
            *workers.routes(),
            *VersionsApi(deployer, store, workers.shown, WorkerAnswer).routes(),
            *SecretsApi(deployer, store).routes(),
            *RoutesApi(deployer.all, settings.base_domain).routes(),
            *TokensApi(access.tokens, access.tenants, access.audit, access.clock).routes(),
            *TenantsApi(access.tenants, access.tokens, deployer, access.clock).routes(),
            *LogsApi(deployer.find, logs, deployer.maps).routes(),
            *more,
        ]
        self.routes += OpenApi().routes(self.routes)
        boundary = Boundary(is_control, access.gate.identify)
        self.app = Starlette(routes=boundary.mount(self.routes), exception_handlers={HTTPException: no_route})
        self.app.router.redirect_slashes = False

    def url_of(self, name: str) -> str:
        number = self._port()  # asked for late: it may be one the system chose, or none (0)
        port = "" if number in (0, 80) else f":{number}"
        return f"http://{name}.{self._settings.base_domain}{port}/"
