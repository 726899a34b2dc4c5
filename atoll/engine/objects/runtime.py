"""All Durable Objects of a node that are in use: at most one copy of each, in exactly one isolate.

A call to an object goes to the isolate where the object lives. If it lives nowhere, its storage is opened, an isolate
of its class's active version is chosen, and the object opens there. A copy is forgotten before the next one is opened,
and commits of a forgotten copy are refused (residents.py). So no two copies can both write.

An object leaves its isolate when it has had no call for IDLE_SECONDS, when the isolate is unloaded, when its code is
updated, when it breaks, and with its engine. A call that was sent to an object is never sent to another copy.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from typing import Final

from atoll.bindings.services import ObjectTarget
from atoll.engine.calls.call import Call, CallListener
from atoll.engine.calls.isolate_state import IsolateState
from atoll.engine.loaded.engine_session import EngineSession, Isolate
from atoll.engine.objects import failures, output_gate
from atoll.engine.objects.among_nodes import AmongNodes
from atoll.engine.objects.ends import ObjectEnds
from atoll.engine.objects.fences import Fences
from atoll.engine.objects.hibernation import Hibernation
from atoll.engine.objects.live_object import CLOSED, LEAVING, LIVE, MAX_CALLS, OPENING, LiveObject
from atoll.engine.objects.object_calls import (
    KEPT,
    TIMERS,
    ObjectCaller,
    ObjectCalls,
    addressed,
    hand_over,
    keep_call,
    keep_timers,
)
from atoll.engine.objects.placing import isolate_for, opened_for, refused
from atoll.engine.objects.residents import IsolateResidents, residents_of
from atoll.engine.pool import Pool
from atoll.errors import EngineError, Failure, LoadFailed, ObjectFailure
from atoll.holdings import Holdings
from atoll.objects.store import Elsewhere, ObjectKey, ObjectStorage, Opened
from atoll.wire.generated import PAGE, ErrorCode
from atoll.workers import Version

log = logging.getLogger("atoll.objects")

IDLE_SECONDS = 10.0
LEAVING_SECONDS: Final = 5.0  # for the calls of an object whose isolate is drained
SWEEP_SECONDS: Final = 0.1
RETRY_SECONDS: Final = 0.005  # the engine has many files to read
MOST_BYTES: Final = 10 << 30  # of one object
MOST_WAITING: Final = 64 << 20  # bytes of calls that wait for one object
STORAGE_SECONDS = 30.0  # for a commit to become durable
# Calls that have not reached their object are sent again; those that may have, never are.
ATTEMPTS, ATTEMPT_SECONDS = 5, 10.0
FIRST_PAUSE = 0.1


class ObjectRuntime:
    """Implements `Objects` of bindings/services.py. It is made before the pool: `pool` is set once that exists."""

    store: ObjectStorage  # set by `start`

    def __init__(self, clock: Callable[[], float] = time.monotonic, holdings: Holdings | None = None) -> None:
        self.pool: Pool | None = None
        self.resolve: Callable[[ObjectKey], tuple[ObjectTarget, Version] | None] = lambda key: None
        self.refuses_new: Callable[[str], str] = lambda namespace: ""
        self.stop_alarms: Callable[[], None] = lambda: None
        self._clock = clock
        self.live: dict[ObjectKey, LiveObject] = {}
        self._fences = Fences()
        self.hibernation = Hibernation(self, holdings or Holdings())
        self.sockets, self.list_sockets = self.hibernation.count, self.hibernation.listed
        self._gated: set[EngineSession] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._ends = ObjectEnds(self, self.live, self._fences)
        ends = self._ends
        self.delete, self.delete_namespace, self.restore = ends.delete, ends.delete_namespace, ends.restore
        self.update = ends.update
        self.among: AmongNodes | None = None  # None: no other node has objects of this one's
        self._is_stopping = self.is_retired = False  # retired: another process has the objects
        self.opened = self.resets = self.evicted = self.retried = 0

    def start(self, store: ObjectStorage) -> None:
        """Before the first call."""
        self.store = store
        store.on_merged = self._on_merged
        if (shared := store.shared) is not None:
            self.among = AmongNodes(self, shared)

    def counts(self) -> dict[str, int]:
        counts = {"opened": self.opened, "reset": self.resets, "evicted": self.evicted, "retried": self.retried}
        counts["socket_event"] = self.hibernation.events
        return counts | (self.among.counts() if self.among is not None else {})

    # --- calls ---

    def call(
        self,
        target: ObjectTarget,
        version: Version,
        head: bytes,
        body: bytes,
        ended: bool,
        caller: CallListener,
        event: int,
        hops: int,
        near: IsolateState | None = None,
    ) -> Call:
        """Call an object. Never raises; failures go to `caller.on_failure`, possibly before this returns.

        `version` is the active version of its class. `head` is that of the event, without the address of the object.
        `near`: the isolate that calls; the object opens in its engine, if that has room.
        """
        assert self.pool is not None, "a call before there are engines"
        key = ObjectKey(target.namespace, target.id)
        if self.is_retired:
            return refused(self.pool, Call(version, head, body, ended, caller, self.pool, self._clock(), event, hops))
        if self.among is not None and key not in self.live:
            far = self.among.send(target, version, head, body, ended, caller, event, hops, self._clock())
            if far is not None:
                return far
        live = self.home(key, target, version, near)
        ear = ObjectCaller(caller, self, live)
        call = Call(version, head, body, ended, ear, ObjectCalls(self, live), self._clock(), event, hops)
        self.take(live, call, target, head)
        return call

    def home(
        self, key: ObjectKey, target: ObjectTarget, version: Version, near: IsolateState | None = None
    ) -> LiveObject:
        live = self.live.get(key)
        parent = self.live.get(target.facet.parent) if target.facet is not None else None
        if live is not None and (live.version is not version or live.parent is not parent) and live.state != OPENING:
            self.end(live, failures.UPDATED)
            live = None
        if live is None:
            live = self.live[key] = self._made(target, version)
            live.parent, live.near = parent, near
            if parent is not None:
                parent.children.add(live)
            self._begin(live)
        return live

    def take(self, live: LiveObject, call: Call, target: ObjectTarget, head: bytes) -> None:
        assert self.pool is not None
        call.object = live
        live.name = live.name or target.name
        call.head = addressed(head, call.event, target, live)
        if live.look_and_shut() >= MAX_CALLS or live.key in self._ends.barred:
            self.pool.refuse(call, failures.OVERLOADED if live.key not in self._ends.barred else failures.DELETED)
        elif live.is_reachable and not live.waiting:
            self._send(live, call)
        elif live.waiting_bytes + len(call.body) > MOST_WAITING:
            self.pool.refuse(call, failures.TOO_MUCH)
        else:
            live.waiting[call] = (target, head)
            live.waiting_bytes += len(call.body)

    def _made(self, target: ObjectTarget, version: Version) -> LiveObject:
        live = LiveObject(target, version, self._clock())
        live.owner = ObjectCalls(self, live)
        live.is_shared = self.among is not None
        return live

    def heard(self, call: Call, caller: CallListener) -> CallListener:
        assert isinstance(call.object, LiveObject)
        return ObjectCaller(caller, self, call.object)

    def _send(self, live: LiveObject, call: Call) -> None:
        assert self.pool is not None and live.isolate is not None
        live.calls.add(call)
        live.idle_since = self._clock()
        self.pool.call_in(call, live.isolate)

    def withdraw(self, live: LiveObject, call: Call) -> None:
        assert self.pool is not None
        del live.waiting[call]
        self.pool.finish_unsent(call)

    # --- opening ---

    def _begin(self, live: LiveObject) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().create_task(self._sweep_all())
        task = asyncio.get_running_loop().create_task(self._open(live))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, live: LiveObject) -> None:
        """Open an object and send the calls that wait for it. They have reached nothing yet: it may be repeated."""
        until, pause = self._clock() + ATTEMPT_SECONDS, FIRST_PAUSE
        for attempt in range(1, ATTEMPTS + 1):
            failure = await self._try_to_open(live)
            if failure is None:
                return
            may_help = failures.told(failure).is_retryable and failure.code != ErrorCode.SHUTTING_DOWN
            if attempt == ATTEMPTS or self._clock() + pause > until or not may_help or not live.look():
                self.give_up(live, failure)
                return
            self.retried += 1
            await asyncio.sleep(pause)
            pause *= 2

    async def _try_to_open(self, live: LiveObject) -> Failure | None:
        await self._fences.passed(live.key)
        losses = self.among.losses if self.among is not None else 0
        opened = await opened_for(self.store, live)
        if isinstance(opened, Elsewhere):
            return await self.among.pass_on(live, opened) if self.among is not None else failures.ELSEWHERE
        if isinstance(opened, Failure):
            return opened
        try:
            await self._place(live, opened, losses)
        except LoadFailed as error:
            self.store.close(live.key)
            return error.failure
        except BaseException:
            self.store.close(live.key)
            self.give_up(live, failures.LOST)
            raise
        finally:
            os.close(opened.fd)
        return None

    async def _place(self, live: LiveObject, opened: Opened, losses: int) -> None:
        """Choose an isolate for an object whose storage is open, and send its calls there."""
        refusal = self.refuses_new(live.key.namespace) if not opened.sequence else ""
        if refusal:
            raise LoadFailed(Failure(ErrorCode.QUOTA_EXCEEDED, refusal))
        assert self.pool is not None
        while True:
            isolate = await isolate_for(self.pool, live, self._clock)
            if not live.look() or (self.among is not None and self.among.losses != losses):
                raise LoadFailed(failures.LOST)  # every caller has gone, or another node may have it
            residents = self._residents(isolate)
            self.evicted += residents.make_room(self._may_leave)
            try:
                if residents.open(live, opened, MOST_BYTES // PAGE):
                    break
            except EngineError:
                raise LoadFailed(failures.LOST) from None
            await asyncio.sleep(RETRY_SECONDS)
        self.opened += 1
        self.hibernation.on_opened(live, isolate)
        waiting, live.waiting, live.waiting_bytes = live.waiting, {}, 0
        for call, (target, head) in waiting.items():
            call.head = addressed(head, call.event, target, live)  # it has a slot now
            self._send(live, call)

    def _residents(self, isolate: Isolate) -> IsolateResidents:
        if isolate.session not in self._gated:
            output_gate.install(isolate.session, self.among.check_lease if self.among is not None else None)
            self._gated.add(isolate.session)
            isolate.session.over.add_done_callback(lambda _: self._gated.discard(isolate.session))
        if isolate.residents is None:
            isolate.residents = IsolateResidents(isolate, self.store, self._forget, self._on_socket)
            isolate.had_residents = True
        return residents_of(isolate)

    def give_up(self, live: LiveObject, failure: Failure) -> None:
        """An object could not be opened: fail the calls that wait for it."""
        assert self.pool is not None
        live.state = CLOSED
        if self.live.get(live.key) is live:
            del self.live[live.key]
        waiting, live.waiting = live.waiting, {}
        for call in waiting:
            self.pool.refuse(call, failures.told(failure))

    def _on_socket(self, live: LiveObject, isolate: Isolate, what: int, number: int, payload: bytes) -> None:
        if self.among is not None and not self.among.may_leave(live):
            return
        if what == KEPT:
            keep_call(live, isolate, payload)
        elif what != TIMERS:
            self.hibernation.on_frame(live, isolate, what, number, payload)
        elif not self._is_stopping:
            keep_timers(self, live)

    # --- ends ---

    def _forget(self, live: LiveObject) -> None:
        """The object has left its isolate, and its facets leave with it. Calls that wait go to the next copy."""
        self.store.close(live.key)
        self._fences.put(live)
        children, live.children = live.children, set()
        for child in children:
            if child.isolate is not None and child.isolate.residents is not None:  # else it leaves with its isolate
                self.end(child, live.failure or failures.LOST)
        if live.parent is not None:
            live.parent.children.discard(live)
        if self.live.get(live.key) is not live:
            return
        if live.failure is None:
            self.hibernation.on_evicted(live)
        else:
            self.hibernation.on_lost(live)
        if self.live.get(live.key) is not live:  # a socket of it has called meanwhile
            return
        del self.live[live.key]
        if live.waiting:
            following = self.live[live.key] = self._made(live.target, live.version)
            hand_over(live, following)
            self._begin(following)

    def end(self, live: LiveObject, failure: ObjectFailure) -> None:
        if live.state == OPENING:
            return  # it opens with the version that is active then
        self.resets += 1
        if live.isolate is not None and live.state != CLOSED:
            residents_of(live.isolate).reset(live, failure)

    def on_cpu_used_up(self, live: LiveObject, failure: ObjectFailure) -> None:
        """Code of the object was stopped in its middle: what it has in memory is not trusted."""
        self.end(live, failure)

    def count(self, namespace: str | None = None) -> int:
        """Live objects."""
        return sum(namespace is None or key.namespace == namespace for key in self.live)

    # --- periodic work ---

    async def _sweep_all(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                self.sweep()
            except Exception:
                log.exception("a look at the objects failed")

    def sweep(self) -> None:
        """Close objects that are idle or whose isolate is drained."""
        assert self.pool is not None
        now, versions = self._clock(), self.pool.loader.versions
        self.hibernation.sweep(self._reset_late, lambda key: key in self.live)
        for live in [each for each in self.live.values() if each.state in (LIVE, LEAVING)]:
            isolate = live.isolate
            assert isolate is not None
            calls = live.look()
            if live.state == LIVE and not versions.holds(isolate):
                live.state, live.leaving_since = LEAVING, now
                live.shut()
            if calls:
                live.idle_since = now
            if live.state == LEAVING and now > live.leaving_since + LEAVING_SECONDS:
                self.end(live, failures.LOST)
            elif live.is_gated:
                if live.gated_at < now - STORAGE_SECONDS:
                    self.end(live, failures.STORAGE_SLOW)
            elif not self.hibernation.may_leave(live) or (live.state == LIVE and live.is_kept):
                continue
            elif (live.state == LEAVING and not live.calls) or (not calls and live.idle_since < now - IDLE_SECONDS):
                self.evicted += 1
                residents_of(isolate).close_idle(live, self._has_no_call)
            else:
                isolate.last_used = now

    def _has_no_call(self, live: LiveObject) -> bool:
        return live.state != CLOSED and not live.look() and not live.is_gated

    def _may_leave(self, live: LiveObject) -> bool:
        is_idle = live.state == LIVE and not live.look() and not live.is_kept
        return is_idle and not live.is_gated and self.hibernation.may_leave(live)

    def _reset_late(self, key: ObjectKey, failure: ObjectFailure) -> None:
        if (live := self.live.get(key)) is not None:
            self.end(live, failure)

    def reset(self, key: ObjectKey, reason: str) -> None:
        self._reset_late(key, ObjectFailure(ErrorCode.OBJECT_RESET, reason, is_reset=True))

    def target(self, key: ObjectKey) -> ObjectTarget | None:
        return self.live[key].target if key in self.live else None

    def _on_merged(self, key: ObjectKey, sequence: int) -> None:
        live = self.live.get(key)
        if live is not None and live.isolate is not None and live.state in (LIVE, LEAVING) and live.merged < sequence:
            live.merged = sequence
            residents_of(live.isolate).tell_stored(live, live.durable)

    def stop_timers(self) -> None:
        self._is_stopping = True
        for live in self.live.values():
            if live.timers is not None:
                live.timers.cancel()

    async def close(self) -> None:
        """The node stops; its engines have ended."""
        tasks = [*self._tasks, *([self._sweeper] if self._sweeper is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
