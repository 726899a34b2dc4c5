"""A node: makes every part once and connects them. It has no logic of its own. serving.py runs a node as a process.

startup   port -> folder -> database -> engines -> deployed workers -> front
serve     until SIGTERM or SIGINT
shutdown  the front drains, then engines, database and folder are closed
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from atoll.asset_files.store import AssetStore
from atoll.bindings.base import Binding
from atoll.bindings.host import HostBinding, checked_host_bindings, host_script
from atoll.bindings.making import make_bindings
from atoll.bindings.services import Routes, Services
from atoll.bindings.sites import Sites, own_hosts
from atoll.bindings.triggers import Triggers
from atoll.broker import Broker
from atoll.cluster.storage import open_storage
from atoll.config import Settings
from atoll.control.access.access import Access
from atoll.control.access.tenants import Tenant
from atoll.control.deploy.deployer import Deployer
from atoll.control.deploy.following import follow
from atoll.control.deploy.quotas import bound_stores, caps_of
from atoll.control.deploy.sharing import unshared
from atoll.control.deploy.switching import DeployerParts
from atoll.control.late import LateControl
from atoll.control.store.vault import VARIABLE, Vault
from atoll.control.store.workers import WorkerStore
from atoll.db.sqlite import damaged
from atoll.egress.gate import EgressGate
from atoll.engine.calls.between_workers import WorkerCalls
from atoll.engine.calls.events import EventRunner
from atoll.engine.limits import pool_limits
from atoll.engine.loaded.warming import Warming
from atoll.engine.objects.node_objects import NodeObjects
from atoll.engine.pool import Pool
from atoll.engine.process.prestart import FirstEngines, engine_options
from atoll.engine.process.recycling import RecycleLimits
from atoll.engine.process.supervisor import Supervisor
from atoll.engine.report import pool_report, worker_load, worker_memory
from atoll.errors import StorageFailed
from atoll.front.bounds import bounds_of
from atoll.front.control import Message, Receive, Send
from atoll.front.options import FrontOptions
from atoll.front.pages import Detail
from atoll.front.passed import PassedSockets
from atoll.front.peer import Proxies
from atoll.front.ports import Ports, open_ports
from atoll.front.server import Listening, Server, begin_access_log
from atoll.front.site import Site
from atoll.front.tls import Certificates
from atoll.holdings import Holdings
from atoll.logs import Invocation
from atoll.manifests.every import trigger_kinds
from atoll.observe.alerts import NodeAlerts
from atoll.observe.engine_overview import EngineOverview
from atoll.observe.lag import LoopLag
from atoll.observe.meter import NEAR, Meter
from atoll.observe.processes import uses_of
from atoll.observe.series import SeriesStore
from atoll.observe.sources import Sources
from atoll.observe.storage import storage_of
from atoll.observe.store import LogStore
from atoll.observe.telemetry import Telemetry
from atoll.offload.pool import Offload
from atoll.offload.spool import SpoolRoom
from atoll.pacer import Pacer
from atoll.router import Router, host_name
from atoll.wire.generated import Outcome
from atoll.workers import Version

if TYPE_CHECKING:
    from atoll.control.api import ControlApi

log = logging.getLogger("atoll")

Origins: TypeAlias = Mapping[str, str] | None


class Node:
    """All parts of one `atoll serve`. Serves from `start` to `stop`."""

    wants_control = True  # make the control API at the start, not at its first request

    def __init__(
        self,
        settings: Settings,
        *,
        detail: Detail | None = None,
        listens: bool = True,
        origins: Origins = None,
        host: Sequence[HostBinding] = (),
    ) -> None:
        """`detail` is how much error pages show; the default depends on who can read them.

        A node that does not listen is reached only through `inner`, from the program it is part of. `origins` say
        where each setting comes from that is not the default. `host` are the bindings of that program.
        """
        self.host = checked_host_bindings(host)
        self.origins = origins
        self.settings, self.listens = settings, listens
        # On localhost the readers of error pages are the authors of the workers.
        usual = Detail.MESSAGES if settings.base_domain == "localhost" else Detail.PUBLIC
        self.detail = usual if detail is None else detail
        self.meter = Meter(settings.metrics_workers)
        self.offload = Offload(settings.job_processes, settings.job_memory_mb << 20)
        self.holdings = Holdings(settings.tenant_buffer_mb << 20)
        self.objects = NodeObjects(self.holdings)
        self.certificates: Certificates | None = None
        self.phase = "starting"  # then "serving", then "draining"
        # Closed by `stop`, last first. `owned` is what uses the data folder, so that it can be given away first
        self._undo, self.owned = AsyncExitStack(), AsyncExitStack()
        self.passed: PassedSockets = {}  # ports that another process has opened for this one
        self.engines: FirstEngines | None = None  # that are started already

    async def start(self) -> None:
        """Raises StartError; then the parts that had started are stopped again."""
        try:
            await self._start()
        except BaseException as error:
            await self._undo.aclose()
            if isinstance(error, StorageFailed):
                raise damaged(f"{error.path or self.settings.data} is damaged: {error}") from None
            raise

    async def stop(self) -> None:
        """Drain: calls in flight finish within `drain_seconds`, then everything is closed."""
        await self._undo.aclose()

    async def _start(self) -> None:
        ports = None
        if self.listens:
            self.settings, ports = open_ports(self.settings, self.passed, self._undo)
            self.certificates = ports.certificates
        await self.make()
        await self._begin(ports)

    async def make(self) -> None:
        """Make and connect every object. Nothing runs yet."""
        undo, owned, settings = self._undo, self.owned, self.settings
        undo.push_async_callback(owned.aclose)
        self.storage = await open_storage(settings, owned)
        self.folder, database, cluster = self.storage.folder, self.storage.database, self.storage.cluster
        self.logs = LogStore.of(settings)
        owned.push_async_callback(self.logs.close)
        self.router = self._make_router()
        undo.push_async_callback(self.offload.close)
        self.gate, self.pacer = EgressGate(settings), Pacer()
        self.inner = WorkerCalls(self.holdings, self.objects.runtime)
        undo.callback(self.gate.close)
        self.files = AssetStore.of(settings, database, None if cluster is None else cluster.postgres)
        self.events, routes = EventRunner(), self._make_routes()
        vault = self.vault = Vault(settings.data, os.environ.get(VARIABLE))
        shared = self.gate, vault, self.pacer, self.holdings, self.files, self.objects.runtime
        services = Services(settings, database, routes, self.inner, self.events, self, *shared, cluster=cluster)
        self.refused = unshared(is_shared=cluster is not None and not cluster.is_alone)
        bindings = make_bindings(services, self.host)
        for binding in bindings.values():
            (owned if binding.keeps_data else undo).push_async_callback(binding.close)
        self.broker = broker = Broker(bindings.values())
        self.telemetry = Telemetry(settings, undo, broker)
        self.store = store = WorkerStore(database, bindings, vault)
        store.sweep_keys()
        self.events.calls = self.pool = self._make_pool(store, broker)
        self.objects.join(self.pool, bindings)
        about_files = settings.asset_cache_bytes, self.meter.count_asset, store.asset_files, settings.base_domain
        self.inner.calls = self.site = Site(self.pool, *about_files, bring=self.files.bring)
        undo.callback(self.site.close)
        self.supervisor = self._make_supervisor()
        self.triggers = Triggers.of({field: bindings[kind].trigger for field, kind in trigger_kinds().items()})
        owned.push_async_callback(self.triggers.close)
        self.access = Access(settings, database)
        self.access.tenants.listen(lambda tenant: self._bound_tenant(tenant, bindings))
        self.deployer = self._make_deployer(store, bindings)
        if cluster is not None:
            cluster.database.listen(partial(follow, self.deployer))
            cluster.on_drain = self._leave
        self.is_split = self.deployer.is_split
        self.sites = Sites(settings, {kind: each for kind, each in bindings.items() if kind not in self.refused})
        self.series = SeriesStore.begin(settings.data, self.meter, self.deployer.id_of, owned)
        self.late_control = LateControl(lambda: self._make_control(store, broker, bindings), owned)
        self.server = self._make_server()
        self.lag = LoopLag()
        undo.callback(self.lag.close)

    async def _begin(self, ports: Ports | None) -> None:
        """Start the engines, restore the workers, open the ports."""
        undo, settings, cluster = self._undo, self.settings, self.storage.cluster
        if cluster is not None:
            await cluster.join(self.vault)
        await self.objects.start(settings, self.owned, cluster)
        await self.supervisor.start()
        undo.push_async_callback(self.supervisor.stop)
        self.owned.push_async_callback(self.deployer.close)
        if restored := self.deployer.restore():
            log.info("%d workers restored", restored)
        self.objects.alarms.start()
        self.warming = warming = Warming(settings.data / "recent.json", self.pool.loader, self.deployer)
        warming.start()
        undo.push_async_callback(warming.close)
        self.first_token = await self.access.gate.make_first_token(settings.data)
        if ports is not None:
            await self._open(ports.plain)
            if ports.secure is not None and ports.certificates is not None:
                await self.server.startup_secure(ports.secure, ports.certificates)
        undo.push_async_callback(self._drain)
        self.files.start()
        self.lag.start()
        self.phase = "serving"
        if cluster is not None:
            await cluster.serve()

    def use_settings(self, values: Mapping[str, object]) -> None:
        """Change some settings, by name."""
        self.settings = replace(self.settings, **values)  # type: ignore[arg-type]  # each has its field's type

    async def _open(self, listening: Listening) -> None:
        await self.server.startup(listening)

    @property
    def control(self) -> ControlApi:
        return self.late_control.now()

    async def _ask_control(self, scope: Message, receive: Receive, send: Send) -> None:
        """The control API as the front calls it, or the application of a binding that has this host."""
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        site = self.sites.find(host_name(host))
        await ((await self.late_control.bring()).app if site is None else site)(scope, receive, send)

    def state(self) -> str:
        """ "ok", or why no request should be sent here."""
        if self.phase != "serving":
            return self.phase
        return "ok" if self.pool.stats().engines else "no engine"

    def _skim(self, version: Version, outcome: Outcome, status: int, cpu_us: int, wall_us: int) -> bool:
        """Count a finished call without console lines, unless it needs a record."""
        is_heard = version.triggers and self.triggers.is_heard(version)
        is_near = cpu_us >= NEAR * 1000 * version.limits.cpu_ms
        if self.telemetry.tracer is not None or is_heard or is_near or self.logs.wants(version.worker_id):
            return False
        self.meter.count(version, outcome, status, cpu_us, wall_us)
        return True

    def _record(self, record: Invocation) -> None:
        self.meter.record(record)
        self.logs.record(record)
        self.telemetry.record(record)
        if record.version.triggers:
            self.triggers.hear(record)

    def _want_lines(self, wanted: bool) -> None:
        self.pool.on_line = self.logs.hear if wanted else None  # at once only while there are live listeners

    def find_worker(self, tenant: str, name: str) -> Version | None:
        return self.deployer.active_named(tenant, name)

    def how_to_get(self, name: str) -> str:
        return "deploy a worker of that name"

    def _sources(self, broker: Broker) -> Sources:
        return Sources(
            pool=self.pool.stats,
            ops=broker.tallies,
            restarts=lambda: self.supervisor.restarts,
            processes=lambda: uses_of({"node": os.getpid(), **self.supervisor.engine_pids(), **self.offload.pids()}),
            workers=lambda: self.deployer.live,
            lag=lambda: self.lag,
            deploys=lambda: self.deployer.changes,
            logs=self.logs.counts,
            connections=lambda: len(self.server.shared.connections),
            storage=lambda: storage_of(self.settings.data),
            memory=lambda: worker_memory(self.supervisor),
            load=lambda: worker_load(self.pool),
            unsent=lambda: {"access_log": self.server.access_log_dropped, **self.telemetry.dropped()},
            jobs=self.offload.counts,
        )

    def _make_router(self) -> Router:
        return Router(self.settings.base_domain, own_hosts(self.settings))

    def _make_routes(self) -> Routes:
        """Hosts that fetch() of a worker reaches on this node, without a connection."""
        return self.router

    def _make_pool(self, store: WorkerStore, broker: Broker) -> Pool:
        self.logs.want_lines = self._want_lines
        return Pool(
            broker,
            self._record,
            skim=self._skim,
            limits=pool_limits(self.settings),
            load_code_cache=store.load_code,
            save_code_cache=store.save_code,
            holdings=self.holdings,
            read_code=store.read_code,
            read_code_now=store.read_little_code,
        )

    def _make_control(self, store: WorkerStore, broker: Broker, bindings: Mapping[str, Binding]) -> ControlApi:
        from atoll.api.work import Work
        from atoll.control.api import ControlApi, ControlParts
        from atoll.control.endpoints.node_routes import node_routes
        from atoll.control.endpoints.of_bindings import binding_routes

        settings, uploads, cluster = self.settings, self.settings.upload_bytes, self.storage.cluster
        engines = EngineOverview(self.pool, self.supervisor, lambda: self.lag.in_ms())
        alerts = NodeAlerts.begin(self.meter, self._sources(broker), self._undo)
        about = settings, self.origins, self.access.audit, self.objects.runtime, cluster
        parts = ControlParts(
            *(settings, self.deployer, store, self.logs, self.access),
            Work(self.offload, SpoolRoom(settings.data, uploads // 4, uploads)),
            is_control=self.router.is_control,
            stats=self.pool.stats,
            pool_report=lambda: pool_report(self.pool, self.supervisor) | {"loop_lag_ms": self.lag.in_ms()},
            port=lambda: self.server.port,
            kinds=bindings,
            series=self.series,
            refused=self.refused,
            cluster=cluster,
            more=[
                *node_routes(*about, engines, alerts, bindings.values(), self.state, self.telemetry.send_metrics),
                *binding_routes(bindings, self.access.audit, self.deployer, self.refused),
            ],
        )
        return ControlApi(parts)

    def _make_deployer(self, store: WorkerStore, kinds: Mapping[str, Binding]) -> Deployer:
        found = self.pool.loader, self.router, self.logs, kinds, self.triggers
        who = self.access.tenants, self.access.reserved
        return Deployer(
            DeployerParts(self.settings, store, *found, *who, self.files, self.refused, self.meter, self.inner)
        )

    def _make_supervisor(self) -> Supervisor:
        settings = self.settings
        return Supervisor(
            self.pool,
            engine_options(settings, host_script=host_script(self.host)),
            recycling=RecycleLimits(settings.restart_memory_mb, settings.restart_hours, settings.min_free_mb),
            heartbeat_seconds=settings.health_check_ms / 1000,
            first=self.engines,
        )

    def _make_server(self) -> Server:
        if self.wants_control:
            self.late_control.now()
        settings = self.settings
        options = FrontOptions(
            bounds=bounds_of(settings),
            drain_seconds=settings.drain_seconds,
            proxies=Proxies(settings.trusted_proxies, settings.geo_files),
            pacer=self.pacer,
            holdings=self.holdings,
            detail=self.detail,
            explain=self.deployer.maps.failure if self.detail == Detail.STACKS else None,
        )
        server = Server(self.pool, self.router, self._ask_control, options)
        server.shared.site, server.shared.ready = self.site, self.site.ready
        begin_access_log(server, settings, self._undo)
        return server

    def _leave(self) -> None:
        """Take no more work: an operator or the stop of the node wants that."""
        self.phase = "draining"
        self.triggers.stop()

    async def _drain(self) -> None:
        self._leave()
        if (cluster := self.storage.cluster) is not None:
            await cluster.drain()
        await asyncio.sleep(self.settings.drain_delay)  # load balancers see it in /readyz
        self.logs.hang_up()  # a live stream does not end by itself
        await self.server.shutdown()
        await self.supervisor.drain(self.settings.drain_seconds)  # promises passed to waitUntil()
        await self.telemetry.close()

    def _bound_tenant(self, tenant: Tenant, bindings: Mapping[str, Binding]) -> None:
        self.gate.set_tenant(tenant.name, tenant.egress)
        self.site.suspend(tenant.name, is_suspended=bool(tenant.quotas.suspended))
        self.pool.set_caps(tenant.name, caps_of(tenant.quotas, self.pool.loader.tenants.usual))
        bound_stores(bindings.values(), self.settings, tenant)
