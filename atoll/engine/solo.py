"""Workers whose calls do not share globals: isolation "context" and "isolate".

An isolate of such a worker has one call at a time. With "context" the engine gives it a fresh context after each, and
the next call may come. With "isolate" it is spent by its call and unloaded; a fresh one is loaded in advance, so that
calls one after the other do not wait for top-level code. Calls at the same time have as many isolates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.engine.homes import Home
from atoll.engine.placement import Placement
from atoll.errors import Failure, LoadFailed
from atoll.wire.generated import ErrorCode
from atoll.workers import Isolation, Version

if TYPE_CHECKING:
    from atoll.engine.placing import Placer


def is_solo(version: Version) -> bool:
    return version.isolation in (Isolation.CONTEXT, Isolation.ISOLATE)


def solo_room(version: Version) -> int:
    """Calls that an isolate may be given without asking here: a spent one gets no other."""
    return 1 if version.isolation is Isolation.CONTEXT else 0


def solo_placement(placer: Placer, home: Home, most: int) -> Placement:
    """An isolate for one call, loaded for it if there is none. LoadFailed if the worker has too many, or all do."""
    for placement in home.placements:
        if not placement.in_flight and not placement.retired:
            return placement
    if len(home.placements) >= most:
        raise LoadFailed(Failure(ErrorCode.OVERLOADED, f"{most} calls are under way in this worker already"))
    placer.place_now(home.version)
    return home.placements[-1]


def spend(placer: Placer, placement: Placement) -> None:
    """A call was sent to the isolate. If it may have no other, it goes with the call, and the next is prepared."""
    if placement.version.isolation is not Isolation.ISOLATE:
        return
    placement.retired = placement.watched = True
    home = placer.homes.get(placement.version)
    if home is None or any(not other.in_flight for other in home.placements):
        return
    try:
        placer.place_now(placement.version)
    except LoadFailed:
        return  # the next call tries again, and is told
