"""Cells: groups of engines that serve the same workers.

Nearly every worker lives in the shared cell, whose engines run as long as the node. Some have a cell of their own,
which is one engine process and holds nothing of anyone else: a tenant who wants it (isolation "process"), and a worker
suspected of ending engines. The engine of such a cell is started with the first call and ended when it has been empty
for a while. What is in a cell is the pool's business, the life of its engines the supervisor's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from atoll.errors import Failure, LoadFailed
from atoll.wire.generated import ErrorCode

if TYPE_CHECKING:
    from atoll.engine.session import Session

OWN_IDLE_SECONDS = 30.0  # an engine of one's own goes when nothing has been loaded in it for so long

NO_ENGINE = Failure(ErrorCode.UNAVAILABLE, "no engine can take the call now; try again in a moment")
TOO_MANY = Failure(
    ErrorCode.OVERLOADED, "every engine process that may be started for single tenants or workers is busy"
)


class Cell:
    def __init__(self, name: str, now: float) -> None:
        self.name = name  # "" is the shared one
        self.sessions: list[Session] = []
        self.wanted = 1  # engines that should run in it
        self.last_used = now
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # its engine ends for good
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def is_own(self) -> bool:
        return bool(self.name)

    def open_sessions(self) -> list[Session]:
        """The engines that take loads, the one with least to do first."""
        return sorted((s for s in self.sessions if s.takes_loads), key=lambda session: session.load)

    @property
    def is_open(self) -> bool:
        return any(session.takes_loads for session in self.sessions)

    @property
    def is_whole(self) -> bool:
        return sum(session.takes_loads for session in self.sessions) >= self.wanted

    @property
    def is_empty(self) -> bool:
        return not any(session.loads or session.calls.calls for session in self.sessions)

    def add(self, session: Session) -> None:
        self.sessions.append(session)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def remove(self, session: Session) -> bool:
        if session not in self.sessions:
            return False
        self.sessions.remove(session)
        return True

    async def ready(self, seconds: float) -> None:
        """Wait until an engine of it runs; LoadFailed if none does in time."""
        while not self.is_open:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await asyncio.wait_for(waiter, seconds)
            except TimeoutError:
                raise LoadFailed(NO_ENGINE) from None

    @property
    def is_closing(self) -> bool:
        return self.closed.done()

    def close(self) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


class Cells:
    """All cells of the node. `start` is told of every cell that needs an engine."""

    def __init__(self, max_own: int, now: float) -> None:
        self.shared = Cell("", now)
        self.own: dict[str, Cell] = {}
        self._max_own = max_own
        self.start: Callable[[Cell], None] = lambda cell: None

    def get(self, name: str, now: float) -> Cell:
        """The cell of that name, which is made and gets an engine if need be. LoadFailed if there are too many."""
        if not name:
            return self.shared
        cell = self.own.get(name)
        if cell is None:
            if len(self.own) >= self._max_own and not self._close_an_empty_one():
                raise LoadFailed(TOO_MANY)
            cell = self.own[name] = Cell(name, now)
            self.start(cell)
        cell.last_used = now
        return cell

    def all(self) -> list[Cell]:
        return [self.shared, *self.own.values()]

    def sessions(self) -> list[Session]:
        return [session for cell in self.all() for session in cell.sessions]

    def sweep(self, now: float) -> None:
        """End the engines of cells that nothing is loaded in."""
        for cell in list(self.own.values()):
            if not cell.is_empty:
                cell.last_used = now
            elif cell.last_used < now - OWN_IDLE_SECONDS:
                self._close(cell)

    def _close_an_empty_one(self) -> bool:
        empty = [cell for cell in self.own.values() if cell.is_empty and cell.is_open]
        if not empty:
            return False
        self._close(min(empty, key=lambda cell: cell.last_used))
        return True

    def _close(self, cell: Cell) -> None:
        del self.own[cell.name]
        cell.close()
