"""The doors of objects: where calls from inside their engine enter them (engine/src/worker/routes.h).

The first route to an object opens its door. Before the object may live anywhere else, and before it is closed because
it is idle, its door is shut: SHUT goes to the engine, and comes back once no call can begin behind the door any more.
All calls that came through it were announced by then. So there is at most one copy of an object that takes calls, and
no object is closed while it has one that Python does not know of.

The engine is not trusted. One that does not answer is ended, and with it whatever it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from atoll.engine.calls.call import Call, CallOwner, OutputHolder
from atoll.engine.link.link import Link
from atoll.errors import EngineError
from atoll.wire.inner import encode_shut

SHUT: Final = 0
OPEN: Final = 1
SHUTTING: Final = 2

SHUT_SECONDS = 5.0  # the thread of the engine that answers runs no code of workers


class HasLoadId(Protocol):
    """The isolate of an object."""

    load_id: int


class HasDoor(OutputHolder, Protocol):
    """An object that calls from inside its engine may enter (objects/live_object.py)."""

    door: int
    slot: int
    owner: CallOwner  # of its calls
    routes: set[object]  # through its door

    @property
    def isolate(self) -> HasLoadId | None: ...

    @property
    def takes_inside(self) -> bool: ...  # whether a route may be opened

    def address(self) -> bytes: ...  # what the head of each call says about it

    def entered(self, call: Call | None, now: float) -> None: ...  # such a call was announced; None: it is over

    def is_shut(self) -> None: ...


class Doors:
    """The doors in one engine that are being shut."""

    def __init__(self, link: Link, clock: Callable[[], float], drop: Callable[[HasDoor], None]) -> None:
        self._link = link
        self._clock = clock
        self._drop = drop  # forgets the routes through a door
        self._shutting: dict[tuple[int, int], tuple[HasDoor, float]] = {}  # by load id and slot, with the time

    def shut(self, holder: HasDoor) -> None:
        if holder.door != OPEN:
            return
        assert holder.isolate is not None
        holder.door = SHUTTING
        where = holder.isolate.load_id, holder.slot
        self._shutting[where] = holder, self._clock()
        self._link.send(encode_shut(*where))

    def on_shut(self, flags: int, worker: int, slot: int, data: bytes, start: int, end: int) -> None:
        found = self._shutting.pop((worker, slot), None)
        if found is None:
            raise EngineError(f"SHUT for slot {slot} of worker {worker}, which nobody asked for")
        self._is_shut(found[0])

    def _is_shut(self, holder: HasDoor) -> None:
        self._drop(holder)
        holder.door = SHUT
        holder.is_shut()

    def check(self, now: float) -> None:
        """End the engine if it does not answer."""
        for (_, slot), (holder, since) in self._shutting.items():
            if since < now - SHUT_SECONDS:
                self._link.break_off(f"the door of slot {slot} ({holder.key}) is not shut")
                return

    def close(self) -> None:
        """The engine is gone."""
        shutting, self._shutting = self._shutting, {}
        for holder, _ in shutting.values():
            self._is_shut(holder)
