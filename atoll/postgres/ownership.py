"""Who may have what a node owns alone, how long an owner may answer, and whether a write of it was committed.

Decisions only: no I/O, and the clock is passed in. tests/cluster/test_ownership.py drives them with random schedules.

Two rules, and neither needs the other:
- A write is accepted if owner (epoch) and number (seq) are those that the writer knows. So nothing that was
  acknowledged hangs on a clock, and a former owner can write nothing.
- An owner answers only while its lease holds, by its own clock, counted from before the renewal was sent. Others take
  what it has only when the lease has ended by the database's clock. So two owners do not answer at once.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

MARGIN: Final = 0.1  # of a lease that an owner gives away, for clocks that run at different speeds


class Lease:
    """How long this node may answer for what it owns. The clock must go on while the machine sleeps."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds * (1 - MARGIN)
        self.until = 0.0
        self.on_lapse: Callable[[], None] = lambda: None  # it had ended: nothing that was live before may answer again

    def holds(self, now: float) -> bool:
        return now < self.until

    def renew(self, sent: float, now: float) -> None:
        """A renewal that was sent at `sent` has succeeded."""
        if self.until and now >= self.until:
            self.on_lapse()  # first: from here on it holds again
        self.until = max(self.until, sent + self._seconds)


class Owner(NamedTuple):
    """Who has an object, as the database says it."""

    session: str  # of a node; "": nobody
    is_live: bool  # its lease has not ended, by the database's clock


def may_take(owner: Owner | None, me: str) -> bool:
    """Whether a node may become the owner. One that drains releases what it has: until then it may still answer."""
    return owner is None or owner.session in ("", me) or not owner.is_live


class WriteOutcome(Enum):
    """What became of a write whose statement did not say so."""

    COMMITTED = "committed"
    REPEAT = "repeat"  # it was not, and may be sent again
    FENCED = "fenced"  # it was not, and never will be


class Written(NamedTuple):
    """Where an object is: the epoch of its owner, and its last write."""

    epoch: int
    seq: int


def outcome(found: Written | None, epoch: int, before: int, after: int) -> WriteOutcome:
    """`found` is what is stored; the write would have made `after` of `before`."""
    if found is None or found.epoch != epoch:
        return WriteOutcome.FENCED
    if found.seq == after:
        return WriteOutcome.COMMITTED
    return WriteOutcome.REPEAT if found.seq == before else WriteOutcome.FENCED
