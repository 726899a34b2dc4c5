"""Which version is loaded in which engine: where the next one goes, who has to make room, who gets several isolates.

The pool asks; nothing here knows of single calls. Which engines a version may be loaded in is a matter of its cell
(cells.py): usually the shared one; its tenant's own, if the tenant wants that; its very own, if it ended engines.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from atoll.engine.cells import NO_ENGINE, Cell, Cells
from atoll.engine.homes import Home, Homes
from atoll.engine.loads import CodeCache, LoadCodeCache, LoadFrames, LoadReport, SaveCodeCache
from atoll.engine.measures import PoolLimits, PoolStats, TenantCaps
from atoll.engine.offences import Offences
from atoll.engine.placement import Placement
from atoll.engine.queue import QUEUE_SECONDS
from atoll.engine.session import Session
from atoll.engine.solo import is_solo, solo_room
from atoll.engine.spread import engine_for_more, one_too_many
from atoll.engine.tenants import Tenant, Tenants
from atoll.errors import Failure, LoadFailed
from atoll.wire.generated import ErrorCode
from atoll.workers import Isolation, Version

log = logging.getLogger("atoll.pool")

RECENT_SECONDS = 5.0
LOAD_SECONDS = 30.0  # from LOAD to LOADED; the engine has tighter limits of its own, but may be busy

# Load failures that say nothing about the version itself: worth another engine.
TRY_ELSEWHERE = frozenset({ErrorCode.UNLOADED, ErrorCode.INTERNAL, ErrorCode.UNAVAILABLE, ErrorCode.ENGINE_DIED})

BUSY = Failure(ErrorCode.OVERLOADED, "every worker that is loaded is busy and there is no room for one more")


class Placer:
    def __init__(
        self,
        limits: PoolLimits,
        counts: PoolStats,
        clock: Callable[[], float],
        load_code_cache: LoadCodeCache | None,
        save_code_cache: SaveCodeCache | None,
    ) -> None:
        self._limits = limits
        self._counts = counts
        self._clock = clock
        self._frames = LoadFrames(load_code_cache, limits)
        self._save_code_cache = save_code_cache
        self.tenants = Tenants(TenantCaps(limits.tenant_calls, limits.tenant_loaded))
        self.offences = Offences(quarantine_seconds=limits.quarantine_seconds, blocked_seconds=limits.blocked_seconds)
        self.homes = Homes()
        self.cells = Cells(limits.own_engines, clock())
        self._full: set[Placement] = set()  # ready, but at the last look more calls than the queue has room for waited
        self._throttled: set[Placement] = set()  # at the last two

    async def check(self, version: Version) -> LoadReport:
        """Load a version to see whether it can be deployed; it stays loaded for its first call. LoadFailed if not."""
        for attempts_left in (2, 1, 0):
            home = self.homes.get(version)
            if home is None:
                await self.cell_of(version).ready(QUEUE_SECONDS)
                home = self.homes.get(version) or self.place_now(version)
            placement = home.placements[0]
            if placement.report is not None:
                return placement.report
            waiter: asyncio.Future[LoadReport] = asyncio.get_running_loop().create_future()
            placement.waiters.append(waiter)
            try:
                report = await waiter  # the sweep ends loads that take too long
            except LoadFailed as error:
                if not attempts_left or error.failure.code not in TRY_ELSEWHERE:
                    raise
                continue
            if self._save_code_cache is not None:
                self.want_code(placement)  # once more after the first response: it knows more functions then
                placement.session.ask_code(placement)
            return report
        raise AssertionError("unreachable")

    async def warm(self, version: Version) -> bool:
        """Load a version that nobody has asked for, unless another would have to go. LoadFailed if it cannot be."""
        cell, tenant = self.cell_of(version), self.tenants.of(version.tenant)
        has_room = self.homes.loaded < self._limits.max_loaded and tenant.loaded < tenant.caps.loaded
        if version in self.homes or not cell.is_open or not has_room:
            return False
        waiter: asyncio.Future[LoadReport] = asyncio.get_running_loop().create_future()
        self.place(version, cell).placements[0].waiters.append(waiter)
        await waiter
        return True

    async def prepare(self, version: Version) -> bool:
        """Have the LOAD of a version ready before anybody asks for it. False: enough of them are. Or LoadFailed."""
        shared = self.cells.shared
        await shared.ready(QUEUE_SECONDS)
        return self._frames.prepare(version, shared.open_sessions()[0].maker)

    def recent(self) -> list[str]:
        """The workers that are loaded, by id, the most recently used first."""
        return [home.version.worker_id for home in reversed(list(self.homes))]

    def retire(self, version: Version) -> None:
        """Nothing routes to the version any more: unload it once its calls are over."""
        self._frames.forget(version)
        home = self.homes.get(version)
        if home is not None:
            for placement in list(home.placements):
                self.unload_when_idle(placement)

    def cell_of(self, version: Version) -> Cell:
        """Whose engines it is loaded in. LoadFailed if it is blocked, or would need one engine too many."""
        now = self._clock()
        refusal = self.offences.refusal(version, now)
        if refusal is not None:
            raise LoadFailed(refusal)
        if self.offences.is_apart(version, now) and not self._has_own_engine(version):
            return self.cells.get(self.apart_cell(version), now)
        if self.offences.is_alone(version, now):
            return self.cells.get(self.own_cell(version), now)
        if self._has_own_engine(version):
            return self.cells.get(f"tenant {version.tenant}", now)
        return self.cells.shared

    def _has_own_engine(self, version: Version) -> bool:
        return version.isolation is Isolation.PROCESS or self.tenants.of(version.tenant).caps.own_engine

    @staticmethod
    def own_cell(version: Version) -> str:
        """The cell of a worker that must be alone."""
        return f"worker {version.worker_id}"

    @staticmethod
    def apart_cell(version: Version) -> str:
        """The cell of a tenant whose workers ended engines."""
        return f"new workers of {version.tenant}"

    def place_now(self, version: Version) -> Home:
        """Begin to load a version. LoadFailed if there is no room."""
        cell = self.cell_of(version)
        if not self.has_room(version, cell):
            raise LoadFailed(BUSY if cell.is_open else NO_ENGINE)
        return self.place(version, cell)

    def place(self, version: Version, cell: Cell, session: Session | None = None) -> Home:
        """Begin to load a version in an engine: the one given, or the one of its cell that has least to do."""
        session = session or cell.open_sessions()[0]
        tenant = self.tenants.of(version.tenant)
        payload, cached = self._frames.get(version, session.maker)
        placement = session.place(version, tenant, payload, self._clock())
        if not cached:
            self.want_code(placement)
        self._counts.loads += 1
        return self.homes.add(version, tenant, cell, placement)

    def has_room(self, version: Version, cell: Cell) -> bool:
        """Whether a version can be loaded now; to that end the least recently used idle one is unloaded."""
        if not cell.is_open:
            return False
        tenant = self.tenants.of(version.tenant)
        if tenant.loaded >= tenant.caps.loaded and not self._evict(tenant):
            return False
        return self.homes.loaded < self._limits.max_loaded or self._evict(None)

    def _evict(self, tenant: Tenant | None) -> bool:
        home = self.homes.longest_idle(tenant)
        if home is None:
            return False
        self._counts.evictions += 1
        for placement in list(home.placements):
            self.unload(placement)
        return True

    def unload_when_idle(self, placement: Placement) -> None:
        if not placement.is_idle:
            placement.retired = placement.watched = True
        else:
            self.unload(placement)

    def unload(self, placement: Placement) -> None:
        self.homes.drop(placement)
        placement.session.unload(placement)

    def replace(self, gone: Placement) -> None:
        """An isolate was condemned: have another one ready for the next call, unless one is or cannot be."""
        version = gone.version
        if version in self.homes or gone.retired:
            return
        try:
            self.place_now(version)
        except LoadFailed:
            return  # whoever calls next is told

    def leave(self, session: Session) -> None:
        """An engine is about to end: no call goes there any more.

        What was called lately is loaded elsewhere first and takes calls here until it is ready there.
        """
        recently = self._clock() - RECENT_SECONDS
        for placement in list(session.loads.values()):
            if not self.homes.holds(placement):
                continue
            lately = placement.ready and placement.last_used > recently
            if not (lately and self._succeed(self.homes[placement.version])):
                self.homes.drop(placement)

    def _succeed(self, home: Home) -> bool:
        """Load a version once more because an isolate of it has to go; False if that need not or cannot be."""
        if any(placement.session.takes_loads for placement in home.placements):
            return False
        if not self.has_room(home.version, home.cell):
            return False
        try:
            self.place(home.version, home.cell)
        except LoadFailed:
            return False
        return True

    def rehouse(self, tenant: str) -> None:
        """Where workers of a tenant belong may have changed: new calls go there, those under way may finish."""
        for home in self.homes:
            if home.tenant.name == tenant and home.cell.is_own != self._has_own_engine(home.version):
                for placement in list(home.placements):
                    self.homes.drop(placement)
                    self.unload_when_idle(placement)

    def relieve(self) -> int:
        """Unload a tenth of what is idle, the least recently used first; returns how many that were."""
        idle = [home for home in self.homes if home.is_idle]
        gone = idle[: max(len(idle) // 10, 1)]
        for home in gone:
            for placement in list(home.placements):
                self.unload(placement)
        self._counts.evictions += len(gone)
        return len(gone)

    def want_code(self, placement: Placement) -> None:
        placement.wants_code = placement.watched = True

    # --- what engines answered ---

    def on_loaded(self, placement: Placement, report: LoadReport) -> None:
        if report.cache_rejected:
            log.warning("V8 refused the code cache of %s, which is made anew", placement.version.id)
            self._frames.forget(placement.version)
            self.want_code(placement)
        home = self.homes.get(placement.version)
        if home is not None:
            for other in list(home.placements):
                if other is not placement and not other.session.takes_loads:
                    self.homes.drop(other)  # it served until now, in an engine that is about to end
            self._share_room(home)
        placement.settle(report)

    def on_code(self, placement: Placement, cache: CodeCache) -> None:
        if self._save_code_cache is None or not any(cache):
            return
        try:
            self._save_code_cache(placement.version, placement.session.maker, cache)
        except Exception:
            log.exception("keeping the code cache of %s failed", placement.version.id)
            return
        self._frames.forget(placement.version)
        if placement.version in self.homes and not placement.retired:
            self._frames.prepare(placement.version, placement.session.maker, cache)

    def ask_code(self, placement: Placement) -> None:
        """A first call is over: V8 knows by now which functions are used."""
        placement.wants_code = False
        if self._save_code_cache is not None:
            placement.session.ask_code(placement)

    # --- as time goes on ---

    def look(self, now: float) -> None:
        """Ten times a second: who waits for an isolate, and should such a worker get one more?"""
        full: set[Placement] = set()
        for session in self.cells.sessions():
            waiting = session.waiting
            waiting.look(session, now)
            full.update(p for p, calls in waiting.backlog.items() if len(calls) >= self._limits.worker_queue)
            for placement in waiting.late:
                home = self.homes.get(placement.version)
                if home is not None and home.placements[0] is placement:
                    self._spread(home)
        # At one look alone it may be the engine or the machine that stood still, and the queue is gone at the next.
        throttled, self._full = full & self._full, full
        for placement in self._throttled | throttled:
            home = self.homes.get(placement.version)
            placement.room = 0 if placement in throttled else self._room(home) if home is not None else 0
        self._throttled = throttled

    def is_throttled(self, placement: Placement) -> bool:
        return placement in self._throttled

    def tidy(self, now: float, seconds: float) -> None:
        """About once a second: unload what nobody uses, give up loads that take too long."""
        idle_since = now - self._limits.idle_seconds
        for home in self.homes:
            for placement in list(home.placements):
                if not placement.ready and placement.placed_at < now - LOAD_SECONDS:
                    message = f"the top-level code did not finish within {LOAD_SECONDS:g} s"
                    placement.session.give_up(placement, Failure(ErrorCode.STARTUP, message))
                elif placement.ready and placement.last_used < idle_since and placement.is_idle:
                    self.unload(placement)
            if len(home.placements) > 1 and not is_solo(home.version):
                spare = one_too_many(home, seconds)
                if spare is not None:
                    self.homes.drop(spare)
                    self.unload_when_idle(spare)
                    self._share_room(home)
        for session in self.cells.sessions():
            session.check_unloads(now)
            session.charge_open_calls()

    def _spread(self, home: Home) -> None:
        session = None if is_solo(home.version) else engine_for_more(home, self._limits.worker_isolates)
        if session is None or not self.has_room(home.version, home.cell):
            return
        try:
            self.place(home.version, home.cell, session)
        except LoadFailed:
            return
        self._counts.spreads += 1
        log.info("%s is busy: it gets isolate number %d", home.version.worker_name, len(home.placements))

    def _room(self, home: Home) -> int:
        """Calls that may be under way in each of its isolates."""
        if is_solo(home.version):
            return solo_room(home.version)
        return max(self._limits.max_in_flight // len(home.placements), 1)

    def _share_room(self, home: Home) -> None:
        for placement in home.placements:
            if placement.ready and placement not in self._throttled:
                placement.room = self._room(home)
