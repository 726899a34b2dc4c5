"""A call to an object: its head with the address, its owner, and its caller, who hears failures of objects."""

from __future__ import annotations

from dataclasses import replace
from struct import Struct
from typing import Final, Protocol

import msgspec

from atoll.bindings.services import ObjectTarget
from atoll.engine.calls.call import ENDED, NOBODY, OVER, Call, CallListener
from atoll.engine.calls.isolate_state import IsolateState
from atoll.engine.loaded.engine_session import Isolate
from atoll.engine.objects.failures import told
from atoll.engine.objects.live_object import LiveObject, to_ascii
from atoll.engine.pool import Pool
from atoll.errors import EngineError, Failure, ObjectFailure
from atoll.wire.generated import ErrorCode, Event
from atoll.workers import Version

# What a SOCKET frame is about, besides WebSockets
TIMERS: Final = 7
KEPT: Final = 8
_KEPT: Final = Struct("<II")  # id of the call, whether it is kept


class CallHome(Protocol):
    """What calls need of the runtime."""

    pool: Pool | None

    def withdraw(self, live: LiveObject, call: Call) -> None: ...

    def on_cpu_used_up(self, live: LiveObject, failure: ObjectFailure) -> None: ...

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
    ) -> Call: ...


def addressed(head: bytes, event: int, target: ObjectTarget, live: LiveObject) -> bytes:
    """The head of a call with the address of its object: JSON on the second line."""
    address = live.facts(target)
    if target.path:
        address["method"] = target.path[0]
    if len(target.path) > 1:
        address["path"] = target.path[1:]
    first, _, rest = head.partition(b"\n")
    text = to_ascii(address | (msgspec.json.decode(rest) if Event.FETCH < event < Event.RPC else {}))
    return b"".join((first, b"\n", text, b"\n", rest) if event == Event.ENTRYPOINT else (first, b"\n", text))


def keep_timers(home: CallHome, live: LiveObject) -> None:
    """Calls of an object have left timers: give it a call for them, which stays open as long as there are any."""
    if live.timers is not None and live.timers.state != OVER:
        return
    head = f"objectlife TIMERS {live.target.class_name}\n{{}}".encode()
    target = live.target._replace(path=())
    live.timers = home.call(target, live.version, head, b"", True, NOBODY, int(Event.BACKGROUND), 0)


def keep_call(live: LiveObject, isolate: Isolate, payload: bytes) -> None:
    """A call of the object has connections of its own and stays open with them; or it has none any more."""
    if len(payload) != _KEPT.size:
        raise EngineError("SOCKET about a call, with the wrong length")
    number, is_kept = _KEPT.unpack(payload)
    table = isolate.session.calls
    call = table.calls.get(number)
    if call is None or call.worker != isolate.load_id or call.object is not live or call.scope is None:
        return  # it has ended, or no op of it has arrived: then it has no connection
    call.scope.is_kept = is_kept == 1
    if call.state == ENDED:
        table.responded(call)


class ObjectCalls:
    """The owner of an object's calls: what the pool is for other calls."""

    def __init__(self, runtime: CallHome, live: LiveObject) -> None:
        assert runtime.pool is not None
        self._runtime = runtime
        self._pool = runtime.pool
        self.live = live

    def move(self, call: Call, left: IsolateState) -> None:
        raise AssertionError("a call to an object is never moved")

    def withdraw(self, call: Call) -> None:
        self._runtime.withdraw(self.live, call)

    def on_backlog(self, call: Call, change: int) -> None:
        self._pool.on_backlog(call, change)

    def on_watched(self, isolate: IsolateState) -> None:
        self._pool.on_watched(isolate)

    def on_stuck(self, isolate: IsolateState) -> None:
        self._pool.on_stuck(isolate)


class ObjectCaller:
    """The caller of an object: hears failures in the words for objects."""

    def __init__(self, caller: CallListener, runtime: CallHome, live: LiveObject) -> None:
        self._runtime = runtime
        self.live = live
        self.on_response = caller.on_response
        self.on_body = caller.on_body
        self.on_upload_credit = caller.on_upload_credit
        self.on_upload_stop = caller.on_upload_stop
        self._on_failure = caller.on_failure

    def on_failure(self, failure: Failure) -> None:
        known = replace(told(failure), object_id=self.live.key.id)
        self._on_failure(known)
        if failure.code == ErrorCode.CPU and not isinstance(failure, ObjectFailure):
            self._runtime.on_cpu_used_up(self.live, known)


def adopt(runtime: CallHome, live: LiveObject, call: Call) -> None:
    """A call that comes back from another node belongs to an object here."""
    call.owner = ObjectCalls(runtime, live)
    if isinstance(call.caller, ObjectCaller):
        call.caller.live = live
    else:
        call.caller = ObjectCaller(call.caller, runtime, live)


def hand_over(live: LiveObject, following: LiveObject) -> None:
    """The calls that wait for an object wait for its next copy."""
    following.parent = live.parent
    following.waiting, live.waiting = live.waiting, {}
    following.waiting_bytes = sum(len(call.body) for call in following.waiting)
    for call in following.waiting:
        call.object = following
        assert isinstance(call.owner, ObjectCalls) and isinstance(call.caller, ObjectCaller)
        call.owner.live = call.caller.live = following
