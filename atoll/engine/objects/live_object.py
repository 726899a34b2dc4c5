"""One Durable Object that is in use: where it lives, its calls, and what it sent that may not leave yet.

    OPENING ──► LIVE ──► LEAVING ──► CLOSED      LEAVING: its isolate takes no new calls. Calls wait until the present
                  └────────────────────┘         ones are over, and then for the next copy of the object.

The output gate is here. The engine sends COMMIT before all frames of the same turn. From then until the journal has
made the commit durable, frames of the object's calls wait in `_held`, in the order they came. So nobody sees a result
of a write that could still be lost. If the write is lost, the frames are dropped, and the callers get an error.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from atoll.bindings.services import ObjectTarget
from atoll.engine.calls.call import OVER, RESPONDED, SENT, Call, CallOwner
from atoll.engine.calls.doors import SHUT, SHUTTING
from atoll.engine.calls.isolate_state import IsolateState
from atoll.engine.loaded.engine_session import Isolate
from atoll.engine.objects.failures import LOST
from atoll.errors import EngineError, ObjectFailure
from atoll.objects.store import ObjectKey
from atoll.wire.codec import Handler
from atoll.wire.generated import ErrorCode
from atoll.workers import Version

OPENING: Final = 0
LIVE: Final = 1
LEAVING: Final = 2
CLOSED: Final = 3

HELD_BYTES: Final = 128 << 20  # of one object. An honest engine has at most 64 MB of ops, and credit bounds bodies
FRAME_COST: Final = 200
MAX_CALLS: Final = 1_000  # of one object, waiting or under way
CROWDED: Final = (
    MAX_CALLS // 2
)  # with more, all come over Python, which counts them: the engine lets in as many at most


def to_ascii(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


class LiveObject:
    def __init__(self, target: ObjectTarget, version: Version, now: float) -> None:
        self.key = ObjectKey(target.namespace, target.id)
        self.target = target
        self.version = version
        self.state = OPENING
        self.name = target.name
        self.is_shared = False  # other nodes may take it: all that leaves it comes by Python, which looks at the lease

        # Facets within it, and the object that it is a facet of
        self.parent: LiveObject | None = None
        self.children: set[LiveObject] = set()

        # Where it lives
        self.near: IsolateState | None = None  # the isolate whose call opens it
        self.isolate: Isolate | None = None
        self.slot = 0
        self.has_table = False  # its engine was told which hibernatable WebSockets it has

        # Its calls
        self.waiting: dict[Call, tuple[ObjectTarget, bytes]] = {}  # not sent yet, in order, with their heads
        self.waiting_bytes = 0  # of their bodies, about: those that were given up count until all are sent
        self.calls: set[Call] = set()  # sent; those that are over are removed at the next look
        self.timers: Call | None = None  # the call that its timers run in
        self.owner: CallOwner  # of calls that come through its door
        self.door = SHUT
        self.routes: set[object] = set()  # through its door
        self.after_shut: list[Callable[[], None]] = []
        self.idle_since = now
        self.leaving_since = 0.0
        self.failure: ObjectFailure | None = None  # why it ended; None if it was evicted

        # Its commits
        self.sequence = 0  # of the last one
        self.durable = 0
        self.merged = 0
        self.pages = 0
        self.is_gated = False
        self.gated_at = 0.0
        self._held: deque[tuple[int, Callable[[], None]]] = deque()  # with the commit that each waits for
        self._held_bytes = 0

    def look(self) -> int:
        """The number of calls that are not over."""
        over = [call for call in self.calls if call.state == OVER]
        self.calls.difference_update(over)
        return len(self.calls) + len(self.waiting)

    @property
    def has_busy_facets(self) -> bool:
        return any(
            child.look() or child.is_gated or child.state == OPENING or child.has_busy_facets for child in self.children
        )

    @property
    def is_kept(self) -> bool:
        """Whether it must not be evicted for idleness: a facet stays with its object, an object with busy facets."""
        return (self.parent is not None and self.parent.state != CLOSED) or self.has_busy_facets

    @property
    def is_reachable(self) -> bool:
        """Whether a call that is sent now arrives. If the engine has just ended, it waits for the next copy."""
        return self.state == LIVE and self.isolate is not None and not self.isolate.session.link.broken

    # --- calls from inside its engine (calls/doors.py) ---

    def shut(self) -> None:
        """Have its door shut, if it is open. `after_shut` runs when it is."""
        if self.isolate is not None:
            self.isolate.session.inside.doors.shut(self)

    def look_and_shut(self) -> int:
        """The same as look(), and calls come over Python from now on if there are many."""
        count = self.look()
        if count >= CROWDED:
            self.shut()
        return count

    def is_shut(self) -> None:
        steps, self.after_shut = self.after_shut, []
        for step in steps:
            step()

    @property
    def takes_inside(self) -> bool:
        is_settled = self.state == LIVE and self.door != SHUTTING and self.target.facet is None and not self.is_shared
        return is_settled and len(self.calls) < CROWDED

    def address(self) -> bytes:
        return to_ascii(self.facts(self.target))

    def entered(self, call: Call | None, now: float) -> None:
        """A call that came through its door was announced; None if it is over already."""
        self.idle_since = now
        if call is not None:
            self.calls.add(call)
            if self.state == CLOSED:  # it ended while the announcement was on its way
                self._fail(call, self.failure or LOST)

    def facts(self, target: ObjectTarget) -> dict[str, Any]:
        """What the head of a call says about the object."""
        facts: dict[str, Any] = {
            "entrypoint": target.class_name, "slot": self.slot, "id": target.id, "sql": target.is_sql,
        }  # fmt: skip
        if self.has_table:
            facts["held"] = True
        facet = target.facet
        if facet is not None:
            facts |= {"id": facet.shown, "props": facet.props, "facet": len(facet.path)}
        name = self.name if facet is None else facet.shown_name
        if name is not None:
            facts["name"] = name
        return facts

    # --- the output gate ---

    def on_commit(self, sequence: int) -> None:
        self.sequence = sequence
        if not self.is_gated:
            self.is_gated, self.gated_at = True, time.monotonic()

    def on_durable(self, sequence: int) -> None:
        """Commits up to this one are on disk: let go what waited for them."""
        self.durable = sequence
        while self._held and self._held[0][0] <= sequence:
            _, handle = self._held.popleft()
            handle()
        if not self._held:
            self._held_bytes = 0
        self.is_gated = self.durable < self.sequence
        self.gated_at = time.monotonic() if self.is_gated else 0.0

    def hold(self, handler: Handler, flags: int, worker: int, number: int, payload: bytes) -> None:
        """Handle a frame once the last commit is durable."""
        self.hold_step(lambda: handler(flags, worker, number, payload, 0, len(payload)), len(payload))

    def hold_step(self, step: Callable[[], None], size: int) -> None:
        self._held_bytes += size + FRAME_COST
        if self._held_bytes > HELD_BYTES:
            raise EngineError(f"the output of an object has more than {HELD_BYTES >> 20} MB before it is durable")
        self._held.append((self.sequence, step))

    # --- ends ---

    def fail_all(self, failure: ObjectFailure) -> None:
        """Fail every call, and drop the output that waits: it shows writes that may be lost."""
        for call in list(self.calls):
            self._fail(call, failure)
        # The calls are cancelled now: of these frames only the ends of calls have an effect.
        held, self._held = self._held, deque()
        self.is_gated = False
        for _, handle in held:
            handle()

    @staticmethod
    def _fail(call: Call, failure: ObjectFailure) -> None:
        port = call.port
        if port is not None and SENT <= call.state < OVER:
            is_unanswered = call.state <= RESPONDED
            call.failure = call.failure or failure
            caller = call.caller
            port.cancel(call, ErrorCode.WALL)
            if is_unanswered:
                caller.on_failure(failure)

    def drop_held(self) -> None:
        """The engine or the isolate is gone, and with it the calls."""
        self._held.clear()
        self.is_gated = False
