"""When a worker gets more isolates, and when fewer.

One isolate runs on one thread at a time, so a worker that computes a lot is bound by one core however many there are.
The sign is not many calls under way (they may all wait for something) but calls that were sent and have not begun: the
ledger shows them. When some have waited for LATE_SECONDS at PRESSED looks in a row, the worker is loaded in one more
engine, one where nobody waits. It loses an isolate again when the CPU time of its calls says that fewer would do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from atoll.engine.calls import SENT, Call
from atoll.engine.homes import Home
from atoll.engine.placement import Placement

if TYPE_CHECKING:
    from atoll.engine.session import Session

LATE_SECONDS = 0.02  # a call that has not begun by then waits for its isolate
BACKLOG_SECONDS = 0.1  # and by then counts to its worker's queue
PRESSED = 5  # looks, of which there are ten a second
CALM = 5  # looks, of which there is one a second
ENOUGH = 0.6  # of one core: what each isolate that stays would have to do


class Waiting:
    """The calls of one engine that were sent and have not begun, by isolate, at the last look."""

    def __init__(self) -> None:
        self.late: dict[Placement, int] = {}
        self.backlog: dict[Placement, list[Call]] = {}  # as they came

    def look(self, session: Session, now: float) -> None:
        late: dict[Placement, int] = {}
        backlog: dict[Placement, list[Call]] = {}
        begun = session.ledger.begun
        for call in session.calls.calls.values():
            waited = now - call.started
            if waited < LATE_SECONDS or call.state != SENT or begun(call.id):
                continue
            placement = call.placement
            if placement is None or not placement.ready:
                continue
            late[placement] = late.get(placement, 0) + 1
            if waited >= BACKLOG_SECONDS:
                backlog.setdefault(placement, []).append(call)
        self.late, self.backlog = late, backlog


def engine_for_more(home: Home, most: int) -> Session | None:
    """Look at a worker, ten times a second: the engine it should be loaded in as well, if it is time for that."""
    waits = all(placement.session.waiting.late.get(placement) for placement in home.placements)
    home.pressed = home.pressed + 1 if waits else 0
    if home.pressed < PRESSED or len(home.placements) >= most:
        return None
    taken = {placement.session for placement in home.placements}
    for session in home.cell.open_sessions():
        if session not in taken and not session.waiting.late:
            home.pressed = 0
            return session
    return None


def one_too_many(home: Home, seconds: float) -> Placement | None:
    """Look at a worker, about once a second: the isolate it can do without, if it has been calm for long enough."""
    cpu_us = sum(placement.cpu_us for placement in home.placements)
    cores = max(cpu_us - home.cpu_us, 0) / 1e6 / seconds
    home.cpu_us = cpu_us
    fewer = len(home.placements) - 1
    home.calm = home.calm + 1 if cores < ENOUGH * fewer and not _any_late(home.placements) else 0
    if home.calm < CALM:
        return None
    home.calm = 0
    gone = min(home.placements, key=lambda placement: placement.in_flight)
    home.cpu_us -= gone.cpu_us
    return gone


def _any_late(placements: Iterable[Placement]) -> bool:
    return any(placement.session.waiting.late.get(placement) for placement in placements)
