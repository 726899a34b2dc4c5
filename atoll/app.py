"""A node: makes every part once and joins them. No logic of its own. serving.py runs one in a process of its own.

startup   port -> folder -> database -> engines -> what was deployed -> front
serve     until SIGTERM or SIGINT
shutdown  the front drains, then engines, database and folder go
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import atoll
from atoll.bindings import make_bindings
from atoll.bindings.base import Binding
from atoll.bindings.fetch.ops import Fetch
from atoll.bindings.queue.sqlite import SqliteQueues
from atoll.bindings.queue.store import QueueStore
from atoll.bindings.services import Services
from atoll.broker import Broker
from atoll.config import Settings
from atoll.control.access import Access
from atoll.control.deploy import Deployer
from atoll.control.quotas import bound_stores, caps_of
from atoll.control.tenants import Tenant
from atoll.control.vault import VARIABLE, Vault
from atoll.control.workers import WorkerStore
from atoll.db.folder import DataFolder
from atoll.db.sqlite import Database, damaged
from atoll.egress.gate import Gate
from atoll.engine.early import EarlyEngine
from atoll.engine.inner import InnerCalls
from atoll.engine.measures import EVENT_CPU_MS
from atoll.engine.pool import Pool, PoolLimits
from atoll.engine.report import pool_report, worker_memory
from atoll.engine.supervisor import Supervisor
from atoll.engine.upkeep import UpkeepLimits
from atoll.engine.warming import Warming
from atoll.errors import StorageFailed
from atoll.front.control import Message, Receive, Send
from atoll.front.pages import Detail
from atoll.front.peer import Proxies
from atoll.front.server import Listening, Server, listen
from atoll.front.tls import Certificates
from atoll.logs import Invocation
from atoll.observe.meter import Meter
from atoll.observe.processes import uses_of
from atoll.observe.sources import Sources
from atoll.observe.storage import storage_of
from atoll.observe.store import LogStore
from atoll.observe.traces import Tracer
from atoll.router import Router
from atoll.triggers.cron import CronTriggers
from atoll.triggers.queues import QueueTriggers
from atoll.triggers.sqlite import SqliteCronHistory
from atoll.triggers.tail import TailTriggers
from atoll.triggers.triggers import Triggers
from atoll.wire.generated import Outcome
from atoll.workers import Version

if TYPE_CHECKING:
    from atoll.control.api import ControlApi

log = logging.getLogger("atoll")

Origins: TypeAlias = Mapping[str, str] | None


class Node:
    """Everything one `atoll serve` is made of. `start`, then it serves until `stop`."""

    wants_control = True  # from the start; else the control API is made when it is first asked

    def __init__(
        self, settings: Settings, *, detail: Detail | None = None, listens: bool = True, origins: Origins = None
    ) -> None:
        """`detail` is how much error pages tell; by default that depends on who can read them.

        A node that does not listen is reached by `inner` alone, from the program it is part of. `origins` tell
        where each setting comes from that is not the default.
        """
        self.origins = origins
        self.settings = settings
        self.listens = listens
        # On localhost whoever reads an error page is the one who wrote the worker.
        usual = Detail.MESSAGES if settings.base_domain == "localhost" else Detail.PUBLIC
        self.detail = usual if detail is None else detail
        self.meter = Meter(settings.metrics_workers)
        self.tracer: Tracer | None = None
        self.phase = "starting"  # then "serving", then "draining"
        self._undo = AsyncExitStack()  # what `stop` does, last first

    async def start(self) -> None:
        """Raises StartError; what had started by then is stopped again."""
        try:
            await self._start()
        except BaseException as error:
            await self._undo.aclose()
            if isinstance(error, StorageFailed):
                raise damaged(f"{error.path or self.settings.data} is damaged: {error}") from None
            raise

    async def stop(self) -> None:
        """Drain: calls in flight finish within `drain_seconds`, then everything goes. Leaves nothing behind."""
        await self._undo.aclose()

    async def _start(self) -> None:
        undo = self._undo
        listening, secure, certificates = self._listen()  # first: a taken port is the commonest mistake
        settings = self.settings
        folder = DataFolder(settings.data)
        undo.callback(folder.close)
        folder.watch()
        database = Database(settings.data / "atoll.db")
        undo.push_async_callback(database.close)

        self.logs = LogStore(
            settings.data, rate=settings.log_rate, max_bytes=settings.log_bytes, days=settings.log_days
        )
        undo.push_async_callback(self.logs.close)
        self.router = self._make_router()
        self.inner = InnerCalls()
        self.gate = Gate(settings)
        undo.callback(self.gate.close)
        queues = SqliteQueues(settings.data / "queues.db")
        undo.push_async_callback(queues.close)
        bindings = make_bindings(Services(settings, database, self.router, self.inner, queues, self, self.gate))
        for binding in bindings:
            undo.push_async_callback(binding.close)
        broker = Broker(bindings)
        if settings.otlp_endpoint:
            self.tracer = Tracer(settings.otlp_endpoint, settings.trace_share)
            broker.trace_share = settings.trace_share
            undo.push_async_callback(asyncio.to_thread, self.tracer.close)
        kinds = {binding.kind: binding for binding in bindings}
        store = WorkerStore(database, kinds, Vault(settings.data, os.environ.get(VARIABLE)))
        self.inner.calls = self.pool = self._make_pool(store, broker)
        self.supervisor = self._make_supervisor()
        self.triggers = self._make_triggers(queues)
        undo.push_async_callback(self.triggers.close)
        self.access = Access(settings, database)
        self.access.tenants.listen(lambda tenant: self.gate.set_tenant(tenant.name, tenant.egress))
        self.access.tenants.listen(self._cap_tenant)
        self.access.tenants.listen(lambda tenant: bound_stores(bindings, settings, tenant))
        self.deployer = Deployer(
            settings, store, self.pool, self.router, self.logs, kinds, self.triggers, self.access.tenants
        )
        self._prepare_control: Callable[[], ControlApi] = lambda: self._make_control(store, broker, bindings, queues)
        self.server = self._make_server()

        await self.supervisor.start()
        undo.push_async_callback(self.supervisor.stop)
        undo.push_async_callback(self.deployer.close)
        restored = self.deployer.restore()
        if restored:
            log.info("%d workers restored", restored)
        warming = Warming(settings.data / "recent.json", self.pool, self.deployer)
        warming.start()
        undo.push_async_callback(warming.close)
        self.first_token = await self.access.gate.make_first_token(settings.data)
        if listening is not None:
            await self._open(listening)
        if secure is not None and certificates is not None:
            await self.server.startup_secure(secure, certificates)
        undo.push_async_callback(self._drain)
        self.phase = "serving"

    def _listen(self) -> tuple[Listening | None, Listening | None, Certificates | None]:
        """Open the ports, if the node has any; from then on the settings name the one that the system chose."""
        if not self.listens:
            return None, None, None
        listening = listen(self.settings.host, self.settings.port)
        self._undo.callback(listening.close)
        self.settings = replace(self.settings, port=listening.port)
        if not self.settings.https_port:
            return listening, None, None
        certificates = Certificates(self.settings.certificates)
        secure = listen(self.settings.host, self.settings.https_port)
        self._undo.callback(secure.close)
        return listening, secure, certificates

    async def _open(self, listening: Listening) -> None:
        """From here on clients are answered; those that came since `listen` have waited."""
        await self.server.startup(listening)

    @cached_property
    def control(self) -> ControlApi:
        return self._prepare_control()

    async def _ask_control(self, scope: Message, receive: Receive, send: Send) -> None:
        """The control API as the front calls it."""
        await self.control.app(scope, receive, send)

    def state(self) -> str:
        """ "ok", or why no request should be sent here."""
        if self.phase != "serving":
            return self.phase
        return "ok" if self.pool.stats().engines else "no engine"

    def _skim(self, version: Version, outcome: Outcome, status: int, cpu_us: int, wall_us: int) -> bool:
        """A call is over that said nothing: count it, unless somebody wants to know more of it."""
        if self.tracer is not None or version.tail_consumers or self.logs.wants(version.worker_id):
            return False
        self.meter.count(version, outcome, status, cpu_us, wall_us)
        return True

    def _record(self, record: Invocation) -> None:
        self.meter.record(record)
        self.logs.record(record)
        if self.tracer is not None:
            self.tracer.record(record)
        if record.version.tail_consumers:
            self.triggers.tails.take(record)

    def _want_lines(self, wanted: bool) -> None:
        """Console lines are passed on at once only while somebody listens."""
        self.pool.hears = self.logs.hear if wanted else None

    def find_worker(self, tenant: str, name: str) -> Version | None:
        """The active version of a worker of a tenant."""
        return self.deployer.active_named(tenant, name)

    def _sources(self, broker: Broker, bindings: Sequence[Binding]) -> Sources:
        fetches = [binding.client.stats for binding in bindings if isinstance(binding, Fetch)]
        pids = self.supervisor.engine_pids
        return Sources(
            pool=self.pool.stats,
            ops=broker.tallies,
            restarts=lambda: self.supervisor.restarts,
            processes=lambda: uses_of({"node": os.getpid(), **pids()}),
            workers=lambda: (deployment.id for deployment in self.deployer.all()),
            deploys=lambda: self.deployer.changes,
            logs=self.logs.counts,
            connections=lambda: len(self.server.shared.connections),
            version=atoll.__version__,
            egress=lambda: fetches[0],
            storage=lambda: storage_of(self.settings.data),
            memory=lambda: worker_memory(self.supervisor),
            tails=lambda: self.triggers.tails.dropped,
        )

    def _make_router(self) -> Router:
        return Router(self.settings.base_domain, self.settings.control_hosts)

    def _make_pool(self, store: WorkerStore, broker: Broker) -> Pool:
        settings = self.settings
        self.logs.want_lines = self._want_lines
        limits = PoolLimits(
            max_loaded=settings.max_loaded,
            idle_seconds=settings.idle_seconds,
            worker_queue=settings.worker_queue,
            max_in_flight=settings.worker_calls,
            worker_isolates=settings.worker_isolates,
            tenant_calls=settings.tenant_calls,
            tenant_loaded=settings.tenant_loaded or settings.max_loaded,
            own_engines=settings.own_engines,
            quarantine_seconds=settings.quarantine_seconds,
            blocked_seconds=settings.blocked_seconds,
            event_cpu_ms=min(EVENT_CPU_MS, settings.max_cpu_ms),
            live_clocks=settings.worker_clock == "live",
        )
        return Pool(
            broker,
            self._record,
            skim=self._skim,
            limits=limits,
            load_code_cache=store.load_code,
            save_code_cache=store.save_code,
        )

    def _make_control(
        self, store: WorkerStore, broker: Broker, bindings: Sequence[Binding], queues: QueueStore
    ) -> ControlApi:
        # Half of what a node imports, and a session of `atoll dev` may never ask for any of it
        from atoll.control.api import ControlApi
        from atoll.control.backup_api import BackupApi
        from atoll.control.binding_apis import binding_routes
        from atoll.control.config_api import ConfigApi
        from atoll.control.crons_api import CronsApi
        from atoll.control.metrics_api import MetricsApi
        from atoll.control.queues_api import QueuesApi

        metrics = MetricsApi(self.meter, self._sources(broker, bindings), queues, self.state)
        return ControlApi(
            self.settings,
            self.deployer,
            store,
            self.logs,
            self.access,
            is_control=self.router.is_control,
            stats=self.pool.stats,
            pool_report=lambda: pool_report(self.pool, self.supervisor),
            port=lambda: self.server.port,
            more=[
                *metrics.routes(),
                *ConfigApi(self.settings, self.origins).routes(),
                *BackupApi(self.settings.data, self.access.audit).routes(),
                *binding_routes(bindings, self.access.audit),
                *CronsApi(self.deployer, self.triggers.crons, self.access.audit).routes(),
                *QueuesApi(queues, self.triggers.queues, self.access.audit).routes(),
            ],
        )

    def _make_triggers(self, queues: QueueStore) -> Triggers:
        return Triggers(
            CronTriggers(self.pool, SqliteCronHistory(self.settings.data / "crons.db")),
            QueueTriggers(self.pool, queues),
            TailTriggers(self.pool, self.find_worker),
        )

    def _make_supervisor(self, early: EarlyEngine | None = None) -> Supervisor:
        settings = self.settings
        return Supervisor(
            self.pool,
            data=settings.data,
            engines=settings.engines,
            threads=settings.engine_threads,
            spares=settings.spares,
            sandbox_mode=settings.sandbox,
            upkeep=UpkeepLimits(settings.restart_memory_mb, settings.restart_hours, settings.min_free_mb),
            heartbeat_seconds=settings.health_check_ms / 1000,
            heap_initial_mb=settings.heap_initial_mb,
            pbkdf2_iterations=settings.pbkdf2_iterations,
            early=early,
        )

    def _make_server(self) -> Server:
        settings = self.settings
        if self.wants_control:
            _ = self.control
        return Server(
            pool=self.pool,
            router=self.router,
            control=self._ask_control,
            header_bytes=settings.header_bytes,
            url_bytes=settings.url_bytes,
            body_bytes=settings.body_bytes,
            header_timeout=settings.header_timeout,
            body_timeout=settings.body_timeout,
            idle_timeout=settings.idle_timeout,
            socket_timeout=settings.socket_timeout,
            drain_seconds=settings.drain_seconds,
            proxies=Proxies(settings.trusted_proxies),
            detail=self.detail,
            explain=self.deployer.maps.failure if self.detail == Detail.STACKS else None,
        )

    async def _drain(self) -> None:
        self.phase = "draining"
        self.triggers.stop()
        await asyncio.sleep(self.settings.drain_delay)  # /readyz tells whoever sends requests here
        self.logs.hang_up()  # a live stream would never end by itself
        await self.server.shutdown()
        await self.supervisor.drain(self.settings.drain_seconds)  # what waitUntil() still holds

    def _cap_tenant(self, tenant: Tenant) -> None:
        self.pool.set_caps(tenant.name, caps_of(tenant.quotas, self.pool.tenants.usual))
