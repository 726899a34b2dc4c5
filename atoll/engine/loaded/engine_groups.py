"""Engine groups: the engines that may load the same workers.

Nearly every worker is loaded in the shared group, whose engines run as long as the node. Other groups have one engine
each, for a single tenant that asks for it (isolation "process") or a single worker that is suspected of ending engines.
Such an engine is started with the first call, and ended when nothing has been loaded in it for a while. The loader
decides what is loaded in a group; the supervisor starts and ends its engines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from atoll.engine.loaded.engine_session import EngineSession
from atoll.errors import Failure, LoadFailed
from atoll.wire.generated import ErrorCode

OWN_IDLE_SECONDS = 30.0  # an engine of a group other than the shared one is ended after so long without an isolate

NO_ENGINE = Failure(ErrorCode.UNAVAILABLE, "no engine can take the call now; try again in a moment")
TOO_MANY = Failure(
    ErrorCode.OVERLOADED, "every engine process that may be started for single tenants or workers is busy"
)


class EngineGroup:
    def __init__(self, name: str, now: float) -> None:
        self.name = name  # "" is the shared one
        self.sessions: list[EngineSession] = []
        self.wanted = 1  # engines that should run in it
        self.last_used = now
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # its engine ends for good
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def is_own(self) -> bool:
        """Whether it serves a single tenant or worker."""
        return bool(self.name)

    def open_sessions(self) -> list[EngineSession]:
        """The engines that take loads, the one with the least work first."""
        return sorted((s for s in self.sessions if s.takes_loads), key=lambda session: session.work)

    @property
    def is_open(self) -> bool:
        return any(session.takes_loads for session in self.sessions)

    @property
    def is_whole(self) -> bool:
        return sum(session.takes_loads for session in self.sessions) >= self.wanted

    @property
    def is_empty(self) -> bool:
        return not any(session.isolates or session.calls.calls for session in self.sessions)

    def add(self, session: EngineSession) -> None:
        self.sessions.append(session)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def ready(self, seconds: float) -> None:
        """Wait until one of its engines takes loads; LoadFailed if none does in time."""
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


class EngineGroups:
    """All engine groups of the node. `start` is called with each new group, and starts its engine."""

    def __init__(self, max_own: int, now: float) -> None:
        self.shared = EngineGroup("", now)
        self.own: dict[str, EngineGroup] = {}
        self._max_own = max_own
        self.start: Callable[[EngineGroup], None] = lambda group: None

    def get(self, name: str, now: float) -> EngineGroup:
        """The group of that name; makes it and starts its engine if need be. LoadFailed if there are too many."""
        if not name:
            return self.shared
        group = self.own.get(name)
        if group is None:
            if len(self.own) >= self._max_own and not self._close_an_empty_one():
                raise LoadFailed(TOO_MANY)
            group = self.own[name] = EngineGroup(name, now)
            self.start(group)
        group.last_used = now
        return group

    def all(self) -> list[EngineGroup]:
        return [self.shared, *self.own.values()]

    def sessions(self) -> list[EngineSession]:
        return [session for group in self.all() for session in group.sessions]

    def remove(self, session: EngineSession) -> bool:
        """An engine is gone. False if it was not ready yet, or its group is closed."""
        group = self.own.get(session.group) if session.group else self.shared
        if group is None or session not in group.sessions:
            return False
        group.sessions.remove(session)
        return True

    def sweep(self, now: float) -> None:
        """End the engines of groups in which nothing is loaded."""
        for group in list(self.own.values()):
            if not group.is_empty:
                group.last_used = now
            elif group.last_used < now - OWN_IDLE_SECONDS:
                self._close(group)

    def _close_an_empty_one(self) -> bool:
        empty = [group for group in self.own.values() if group.is_empty and group.is_open]
        if not empty:
            return False
        self._close(min(empty, key=lambda group: group.last_used))
        return True

    def _close(self, group: EngineGroup) -> None:
        del self.own[group.name]
        group.close()
