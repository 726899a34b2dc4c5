"""The control API: all its endpoints in one application.

    cloudflare/ Cloudflare's API, /client/v4, for wrangler and SDKs
    endpoints/  the endpoints, one class for each resource
    edge/       around all endpoints: authentication, errors, the OpenAPI document
    deploy/     deploys, from a checked body to traffic
    access/     tokens, tenants, reserved hosts
    store/      workers, versions and secrets in the database
    checks/     checks of the body of a deploy

Packages with endpoints of their own, such as bindings, add their routes in `ControlParts.more`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.routes import Route, caller_of
from atoll.api.work import Work
from atoll.bindings.base import Binding
from atoll.config import Settings
from atoll.control.access.access import Access
from atoll.control.cloudflare.api import CloudflareApi, CloudflareParts
from atoll.control.cloudflare.callers import is_v4, no_v4_route
from atoll.control.deploy.deployer import Deployer
from atoll.control.deploy.playground import Playground
from atoll.control.edge.boundary import Boundary, no_route
from atoll.control.edge.openapi import OpenApi
from atoll.control.endpoints.bundles import BundlesApi
from atoll.control.endpoints.dashboard import DashboardApi
from atoll.control.endpoints.deployments import DeploymentsApi
from atoll.control.endpoints.errors import ErrorsApi
from atoll.control.endpoints.hosts import HostsApi
from atoll.control.endpoints.logs import LogsApi
from atoll.control.endpoints.node import NodeApi
from atoll.control.endpoints.playground import PlaygroundApi
from atoll.control.endpoints.routes import RoutesApi
from atoll.control.endpoints.secrets import SecretsApi
from atoll.control.endpoints.series import SeriesApi
from atoll.control.endpoints.session import SessionApi
from atoll.control.endpoints.tenants import TenantsApi
from atoll.control.endpoints.tokens import TokensApi
from atoll.control.endpoints.versions import VersionsApi
from atoll.control.endpoints.workers import WorkerAnswer, WorkersApi
from atoll.control.store.workers import WorkerStore
from atoll.engine.pool import PoolStats
from atoll.observe.series import SeriesStore
from atoll.observe.store import LogStore
from atoll.public_address import PublicAddress, public_address


class ControlParts(Struct, frozen=True):
    """The services that the endpoints use."""

    settings: Settings
    deployer: Deployer
    store: WorkerStore
    logs: LogStore
    access: Access
    work: Work
    is_control: Callable[[bytes], bool]
    stats: Callable[[], PoolStats]
    pool_report: Callable[[], Mapping[str, object]]
    port: Callable[[], int]
    kinds: Mapping[str, Binding]
    series: SeriesStore
    more: Sequence[Route] = ()  # routes of other packages
    refused: Mapping[str, str] = {}  # kinds of bindings that this node refuses (deploy/sharing.py)
    cluster: Any = None  # Cluster, if the node shares a PostgreSQL with others


class ControlApi:
    """The control API. Call `app` with requests to a control host."""

    def __init__(self, parts: ControlParts) -> None:
        settings, deployer, access, work = parts.settings, parts.deployer, parts.access, parts.work
        self._settings = settings
        deployer.maps.run = lambda job, data, args, tenant: work.offload.run(job, data, args, tenant=tenant)
        self._port = parts.port
        workers = WorkersApi(settings, deployer, self.url_of)
        live = LogsApi(deployer.find, parts.logs, deployer.maps)
        session = SessionApi(access)
        self.routes: list[Route] = [
            *NodeApi(settings, deployer, parts.stats, parts.pool_report, self.url_of).routes(),
            *workers.routes(),
            *VersionsApi(settings, deployer, parts.store, self._at, workers.shown, WorkerAnswer).routes(),
            *DeploymentsApi(deployer, parts.store).routes(),
            *BundlesApi(deployer, parts.store, access.audit).routes(),
            *SecretsApi(deployer, parts.store).routes(),
            *RoutesApi(deployer, settings.base_domain).routes(),
            *HostsApi(deployer, access).routes(),
            *TokensApi(access.tokens, access.tenants, access.audit, access.clock).routes(),
            *TenantsApi(access.tenants, access.tokens, deployer, access.clock).routes(),
            *live.routes(),
            *ErrorsApi(deployer.find, deployer.name_of, parts.logs).routes(),
            *SeriesApi(deployer, parts.series, self.url_of).routes(),
            *session.routes(),
            *PlaygroundApi(Playground(deployer, parts.logs)).routes(),
            *DashboardApi(lambda request: session.shown(caller_of(request))).routes(),
            *parts.more,
        ]
        self.routes += OpenApi().routes(self.routes)
        boundary = Boundary(
            parts.is_control,
            access.gate.identify,
            work,
            settled=None if parts.cluster is None else parts.cluster.settled,
        )
        shared = work, parts.is_control, lambda: self.address, parts.kinds, parts.logs, live, parts.refused
        self.cloudflare = CloudflareApi(CloudflareParts(settings, deployer, parts.store, access, *shared))
        mounted = [*boundary.mount(self.routes), *self.cloudflare.mount()]
        self.app = Starlette(routes=mounted, exception_handlers={HTTPException: _no_route})
        self.app.router.redirect_slashes = False

    def url_of(self, name: str) -> str:
        return self.address.url(name)

    def _at(self, host: str) -> str:
        return self.address.at(host)

    @property
    def address(self) -> PublicAddress:
        return public_address(self._settings, self._port())  # read late: the system may choose the port


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return no_v4_route(request, error) if is_v4(request) else await no_route(request, error)
