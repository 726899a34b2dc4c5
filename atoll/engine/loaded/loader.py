"""Loads versions into engines and unloads them: which engine takes the next one, and what is evicted to make room.

The pool asks for isolates; nothing here knows of single calls. Which engines may load a version depends on its engine
group (engine_groups.py): usually the shared one; one of its tenant, if the tenant wants that; one of its own, if it
ended engines.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from atoll.engine.calls.call_queue import QUEUE_SECONDS
from atoll.engine.calls.isolate_state import IsolateState
from atoll.engine.limits import PoolLimits, TenantCaps
from atoll.engine.loaded.code_wishes import CodeWishes
from atoll.engine.loaded.engine_groups import NO_ENGINE, EngineGroup, EngineGroups
from atoll.engine.loaded.engine_session import EngineSession, Isolate
from atoll.engine.loaded.late_code import LateCode, ReadCode, ReadCodeNow
from atoll.engine.loaded.load_frames import (
    CodeCache,
    GrantFacts,
    LoadCodeCache,
    LoadFrames,
    LoadReport,
    SaveCodeCache,
    pack_load,
)
from atoll.engine.loaded.offences import Offences
from atoll.engine.loaded.scaling import engine_for_one_more, isolate_to_unload
from atoll.engine.loaded.versions import LoadedVersion, LoadedVersions, is_exclusive
from atoll.engine.stats import PoolStats
from atoll.engine.tenant_usage import TenantUsage, TenantUsages
from atoll.errors import Failure, LoadFailed
from atoll.wire.generated import ErrorCode
from atoll.workers import Isolation, Version

log = logging.getLogger("atoll.pool")

RECENT_SECONDS = 5.0
FAR_CALLS = 16  # calls of a worker from another engine, before it is loaded there too
LOAD_SECONDS = 30.0  # from LOAD to LOADED; the engine has tighter limits, but may be busy

# Load failures that are not the fault of the version: another engine may succeed.
TRY_ELSEWHERE = frozenset({ErrorCode.UNLOADED, ErrorCode.INTERNAL, ErrorCode.UNAVAILABLE, ErrorCode.ENGINE_DIED})

BUSY = Failure(ErrorCode.OVERLOADED, "every worker that is loaded is busy and there is no room for one more")


class Loader:
    def __init__(
        self,
        limits: PoolLimits,
        counts: PoolStats,
        clock: Callable[[], float],
        load_code_cache: LoadCodeCache | None,
        save_code_cache: SaveCodeCache | None,
        read_code: ReadCode | None = None,
        read_code_now: ReadCodeNow | None = None,
    ) -> None:
        self._limits = limits
        self.late = LateCode(read_code, clock, read_code_now)
        self._counts = counts
        self._clock = clock
        self._frames = LoadFrames(load_code_cache, limits)
        self._save_code_cache = save_code_cache
        self.wishes = CodeWishes(clock, are_kept=save_code_cache is not None)
        self.tenants = TenantUsages(TenantCaps(limits.tenant_calls, limits.tenant_loaded))
        self.offences = Offences(quarantine_seconds=limits.quarantine_seconds, blocked_seconds=limits.blocked_seconds)
        self.versions = LoadedVersions()
        self.groups = EngineGroups(limits.own_engines, clock())
        self._full: set[IsolateState] = set()  # ready, with a full queue of late calls at the last look
        self._throttled: set[IsolateState] = set()  # the same at the last two looks

    def use_facts(self, facts: GrantFacts) -> None:
        """`facts` gives what the JavaScript half of a binding knows besides its name."""
        self._frames.facts = facts

    async def check(self, version: Version) -> LoadReport:
        """Load a version to check that it can be deployed. It stays loaded for its first call. LoadFailed if not."""
        for attempts_left in (2, 1, 0):
            loaded = self.versions.get(version)
            if loaded is None:
                await self.late.ready(version)
                await self.group_of(version).ready(QUEUE_SECONDS)
                loaded = self.versions.get(version) or self.load_now(version)
            isolate = loaded.isolates[0]
            if isolate.report is not None:
                return isolate.report
            waiter: asyncio.Future[LoadReport] = asyncio.get_running_loop().create_future()
            isolate.waiters.append(waiter)
            try:
                report = await waiter  # `tidy` fails loads that take too long
            except LoadFailed as error:
                if not attempts_left or error.failure.code not in TRY_ELSEWHERE:
                    raise
                continue
            if self._save_code_cache is not None:
                self.wishes.ask_soon(isolate)
                self.wishes.want(isolate)
            return report
        raise AssertionError("unreachable")

    async def warm(self, version: Version) -> bool:
        """Load a version before its first call, unless that would evict another. LoadFailed if it cannot be loaded."""
        group, tenant = self.group_of(version), self.tenants.of(version.tenant)
        has_room = self.versions.isolates < self._limits.max_loaded and tenant.loaded < tenant.caps.loaded
        if version in self.versions or not group.is_open or not has_room:
            return False
        await self.late.ready(version)
        waiter: asyncio.Future[LoadReport] = asyncio.get_running_loop().create_future()
        self.load(version, group).isolates[0].waiters.append(waiter)
        await waiter
        return True

    async def prepare(self, version: Version) -> bool:
        """Make the LOAD frame of a version before its first call. False if enough are ready. May raise LoadFailed."""
        shared = self.groups.shared
        await shared.ready(QUEUE_SECONDS)
        if not self._frames.has_room:
            return False
        await self.late.ready(version)
        return self._frames.prepare(version, shared.open_sessions()[0].maker, whole=self.late.whole(version))

    def recent(self) -> list[str]:
        """The ids of loaded workers, the most recently used first."""
        return [loaded.version.worker_id for loaded in reversed(list(self.versions))]

    def retire(self, version: Version) -> None:
        """No route leads to the version any more: unload it once its calls are over."""
        self._frames.forget(version)
        self.late.forget(version)
        loaded = self.versions.get(version)
        if loaded is not None:
            for isolate in list(loaded.isolates):
                self.unload_when_idle(isolate)

    def moved(self, tenant: str, worker_name: str) -> None:
        """Calls of a worker by its name lead to another version, or to several: ask for each of them."""
        for session in self.groups.sessions():
            session.inside.close_named(tenant, worker_name)

    def group_of(self, version: Version) -> EngineGroup:
        """The engine group of a version. LoadFailed if it is blocked, or there are too many groups."""
        now = self._clock()
        refusal = self.offences.refusal(version, now)
        if refusal is not None:
            raise LoadFailed(refusal)
        if self.offences.is_apart(version, now) and not self._has_own_engine(version):
            return self.groups.get(self.apart_group(version), now)
        if self.offences.is_alone(version, now):
            return self.groups.get(self.own_group(version), now)
        if self._has_own_engine(version):
            return self.groups.get(f"tenant {version.tenant}", now)
        return self.groups.shared

    def _has_own_engine(self, version: Version) -> bool:
        return version.isolation is Isolation.PROCESS or self.tenants.of(version.tenant).caps.own_engine

    @staticmethod
    def own_group(version: Version) -> str:
        """The engine group of a quarantined worker."""
        return f"worker {version.worker_id}"

    @staticmethod
    def apart_group(version: Version) -> str:
        """The engine group of a tenant whose workers ended engines."""
        return f"new workers of {version.tenant}"

    def load_now(self, version: Version) -> LoadedVersion:
        """Begin to load a version. LoadFailed if there is no room."""
        group = self.group_of(version)
        if not self.has_room(version, group):
            raise LoadFailed(BUSY if group.is_open else NO_ENGINE)
        return self.load(version, group)

    def load(self, version: Version, group: EngineGroup, session: EngineSession | None = None) -> LoadedVersion:
        """Begin to load a version in an engine: the one given, or the one of its group with the least work."""
        session = session or group.open_sessions()[0]
        tenant = self.tenants.of(version.tenant)
        whole = self.late.whole(version)
        if version.has_code:
            payload, cached = self._frames.get(version, session.maker, whole)
        else:  # rarely loaded: neither its frame nor a code cache is kept
            payload, cached = pack_load(whole, (), self._limits, self._frames.facts), True
        isolate = session.load(version, tenant, payload, self._clock())
        isolate.modules = len(whole.modules)
        if not cached:
            self.wishes.want(isolate)
        self._counts.loads += 1
        return self.versions.add(version, tenant, group, isolate)

    def near(self, loaded: LoadedVersion, session: EngineSession) -> Isolate | None:
        """The isolate of a version in this engine, for a call of a worker there. If there is none, and there are more
        such calls, one is loaded: then they need not leave the engine."""
        for isolate in loaded.isolates:
            if isolate.session is session:
                return isolate if isolate.ready else None
        loaded.far_calls += 1
        if loaded.far_calls % FAR_CALLS == 0 and not is_exclusive(loaded.version) and session.takes_loads:
            try:
                group = self.group_of(loaded.version)
                few = len(loaded.isolates) < self._limits.worker_isolates
                if few and group is loaded.group and session in group.sessions and self.has_room(loaded.version, group):
                    self.load(loaded.version, group, session)
            except LoadFailed:
                pass  # it serves where it is
        return None

    def has_room(self, version: Version, group: EngineGroup) -> bool:
        """Whether a version can be loaded now. Evicts the least recently used idle version if need be. LoadFailed if
        its code cannot be read."""
        if not group.is_open or not self.late.is_here(version):
            return False
        tenant = self.tenants.of(version.tenant)
        if tenant.loaded >= tenant.caps.loaded and not self._evict(tenant):
            return False
        return self.versions.isolates < self._limits.max_loaded or self._evict(None)

    def _evict(self, tenant: TenantUsage | None) -> bool:
        loaded = self.versions.longest_idle(tenant)
        if loaded is None:
            return False
        self._counts.evictions += 1
        for isolate in list(loaded.isolates):
            self.unload(isolate)
        return True

    def unload_when_idle(self, isolate: Isolate) -> None:
        isolate.session.close_routes(isolate)
        if not isolate.is_idle:
            isolate.draining = isolate.watched = True
        else:
            self.unload(isolate)

    def unload(self, isolate: Isolate) -> None:
        self.wishes.before_unload(isolate)
        self.versions.drop(isolate)
        isolate.session.unload(isolate)

    def replace(self, gone: Isolate) -> None:
        """The engine ended an isolate: load another one for the next call, if there is none and it is possible."""
        version = gone.version
        if version in self.versions or gone.draining:
            return
        try:
            self.load_now(version)
        except LoadFailed:
            return  # the next call tries again and gets the failure

    def drain_engine(self, session: EngineSession) -> None:
        """An engine is about to end: send no more calls to it.

        Versions with recent calls are loaded in another engine first, and take calls here until they are ready there.
        """
        recently = self._clock() - RECENT_SECONDS
        for isolate in list(session.isolates.values()):
            if not self.versions.holds(isolate):
                continue
            is_recent = isolate.ready and isolate.last_used > recently
            if not (is_recent and self._load_successor(self.versions[isolate.version])):
                self.versions.drop(isolate)

    def _load_successor(self, loaded: LoadedVersion) -> bool:
        """Load a version again because its engine is about to end. False if that is not needed, or not possible."""
        if any(isolate.session.takes_loads for isolate in loaded.isolates):
            return False
        try:
            if not self.has_room(loaded.version, loaded.group):
                return False
            self.load(loaded.version, loaded.group)
        except LoadFailed:
            return False
        return True

    def regroup(self, tenant: str) -> None:
        """The engine group of a tenant may have changed: new calls go to the new one, calls in flight may finish."""
        self.moved(tenant, "")
        for loaded in self.versions:
            if loaded.tenant.name == tenant and loaded.group.is_own != self._has_own_engine(loaded.version):
                for isolate in list(loaded.isolates):
                    self.versions.drop(isolate)
                    self.unload_when_idle(isolate)

    def evict_idle(self) -> int:
        """Memory is short: evict a tenth of the idle versions, the least recently used first. Returns how many."""
        idle = [loaded for loaded in self.versions if loaded.is_idle]
        gone = idle[: max(len(idle) // 10, 1)]
        for loaded in gone:
            for isolate in list(loaded.isolates):
                self.unload(isolate)
        self._counts.evictions += len(gone)
        return len(gone)

    # --- what engines report ---

    def on_loaded(self, isolate: Isolate, report: LoadReport) -> None:
        if report.cache_rejected:
            log.warning("V8 rejected the code cache of %s; it will be made again", isolate.version.id)
            self._frames.forget(isolate.version)
            self.wishes.want(isolate)
        loaded = self.versions.get(isolate.version)
        if loaded is not None:
            for other in list(loaded.isolates):
                if other is not isolate and not other.session.takes_loads:
                    self.versions.drop(other)  # it served until now, in an engine that is being drained
            self._share_room(loaded)
        isolate.settle(report)

    def on_code(self, isolate: Isolate, cache: CodeCache) -> None:
        if self._save_code_cache is None or not any(cache):
            return
        version = isolate.version
        try:
            if not self.late.is_here(version):
                return  # it is made again after the next load
            whole = self.late.whole(version)
            self._save_code_cache(whole, isolate.session.maker, cache)
        except Exception:
            log.exception("keeping the code cache of %s failed", isolate.version.id)
            return
        self._frames.forget(version)
        if version in self.versions and not isolate.draining:
            self._frames.prepare(version, isolate.session.maker, cache, whole)

    # --- periodic work ---

    def look(self, now: float) -> None:
        """Ten times a second: find late calls, throttle workers with too many, and scale up busy ones."""
        full: set[IsolateState] = set()
        for session in self.groups.sessions():
            late = session.late_calls
            late.look(session.calls, session.ledger, now)
            full.update(each for each, calls in late.backlog.items() if len(calls) >= self._limits.worker_queue)
            for isolate in late.counts:
                loaded = self.versions.get(isolate.version)
                if loaded is not None and loaded.isolates[0] is isolate:
                    self._scale_up(loaded)
        # One look is not enough: the engine or the machine may have paused, and the queue is gone at the next look.
        throttled, self._full = full & self._full, full
        for isolate in self._throttled | throttled:
            loaded = self.versions.get(isolate.version)
            isolate.room = 0 if isolate in throttled else self._room(loaded) if loaded is not None else 0
            if isinstance(isolate, Isolate):
                isolate.session.close_routes(isolate)
        self._throttled = throttled

    def is_throttled(self, isolate: IsolateState) -> bool:
        return isolate in self._throttled

    def tidy(self, now: float, seconds: float) -> None:
        """About once a second: unload idle isolates and fail loads that take too long."""
        idle_since = now - self._limits.idle_seconds
        for loaded in self.versions:
            for isolate in list(loaded.isolates):
                if not isolate.ready and isolate.load_sent_at < now - LOAD_SECONDS:
                    message = f"the top-level code did not finish within {LOAD_SECONDS:g} s"
                    isolate.session.give_up(isolate, Failure(ErrorCode.STARTUP, message))
                elif isolate.ready and isolate.last_used < idle_since and isolate.is_idle:
                    self.unload(isolate)
            if len(loaded.isolates) > 1 and not is_exclusive(loaded.version):
                surplus = isolate_to_unload(loaded, seconds, now)
                if surplus is not None:
                    self.versions.drop(surplus)
                    self.unload_when_idle(surplus)
                    self._share_room(loaded)
        for session in self.groups.sessions():
            session.check_unloads(now)
            session.charge_open_calls()

    def _scale_up(self, loaded: LoadedVersion) -> None:
        session = None if is_exclusive(loaded.version) else engine_for_one_more(loaded, self._limits.worker_isolates)
        try:
            if session is None or not self.has_room(loaded.version, loaded.group):
                return
            self.load(loaded.version, loaded.group, session)
        except LoadFailed:
            return
        self._counts.spreads += 1
        log.info("%s is busy: it gets isolate number %d", loaded.version.worker_name, len(loaded.isolates))

    def _room(self, loaded: LoadedVersion) -> int:
        """The most calls in flight in each of its isolates.

        With isolation "isolate" it is 0: no call may take the fast path, because an isolate serves a single call.
        """
        if is_exclusive(loaded.version):
            return 1 if loaded.version.isolation is Isolation.CONTEXT else 0
        return max(self._limits.max_in_flight // len(loaded.isolates), 1)

    def _share_room(self, loaded: LoadedVersion) -> None:
        for isolate in loaded.isolates:
            if isolate.ready and isolate not in self._throttled:
                isolate.room = self._room(loaded)
