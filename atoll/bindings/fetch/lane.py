"""The fetches of one call, by the numbers that the worker gave them, and the six connections of one request.

The six are shared with the workers that it calls through service bindings; those calls do not count as connections. A
fetch holds its place until its response has been read, so a worker that waits for a seventh fetch before it reads one
of the six would wait without end. If none of the six is read for a while, the one idle longest is closed.
"""

from __future__ import annotations

import asyncio
from collections import deque

from atoll.bindings.fetch.fetching import Fetching
from atoll.bindings.scope import CallScope
from atoll.errors import InvalidArgument, NetworkError, QuotaExceeded

AT_ONCE = 6
MAX_OPEN = 1_000
PATIENCE = 0.5  # seconds without a read of any of the six
AT_A_LOOK = 100  # waiting fetches that one check refuses


class LanePlaces:
    """The connections of one request."""

    def __init__(self) -> None:
        self._held: dict[Fetching, None] = {}  # the one idle longest first
        self._waiters: deque[tuple[asyncio.Future[None], Fetching]] = deque()  # in order of arrival
        self._has_moved = False  # one was read since the last check
        self._timer: asyncio.TimerHandle | None = None

    @property
    def has_room(self) -> bool:
        """Whether a fetch may begin without waiting."""
        return len(self._held) < AT_ONCE and not self._waiters

    def take(self, fetching: Fetching) -> None:
        self._held[fetching] = None

    async def enter(self, fetching: Fetching) -> None:
        """Wait for a place."""
        if self.has_room:
            self.take(fetching)
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((waiter, fetching))
        self._watch()
        try:
            await waiter
        except BaseException:
            if not waiter.cancelled():
                self.leave(fetching)  # pass its place on
            self._purge()
            raise

    def _purge(self) -> None:
        """Drop waiters at the head of the line that do not wait any more."""
        while self._waiters and self._waiters[0][0].done():
            self._waiters.popleft()

    def _watch(self) -> None:
        """Check after a while whether any fetch makes progress: one timer for all waiters, which may be a thousand."""
        if self._timer is None and self._waiters:
            self._has_moved = False
            self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._look)

    def _look(self) -> None:
        self._timer = None
        self._purge()
        if not self._waiters:
            return
        try:
            self._give_up_one()
        except QuotaExceeded as refusal:
            for _ in range(min(AT_A_LOOK, len(self._waiters))):
                waiter, _ = self._waiters.popleft()
                if not waiter.done():
                    waiter.set_exception(QuotaExceeded(str(refusal)))
        self._watch()

    def touch(self, fetching: Fetching) -> None:
        """Record that a fetch was read."""
        self._has_moved = True
        if fetching in self._held:
            del self._held[fetching]
            self._held[fetching] = None

    def _give_up_one(self) -> None:
        fetches = [fetching for fetching in self._held if not fetching.is_socket]
        if not fetches:
            raise QuotaExceeded(
                f"the {AT_ONCE} connections that a request may hold are all sockets: close one of them first"
            )
        if self._has_moved or any(not fetching.has_head or fetching.is_reading for fetching in fetches):
            return  # some fetch makes progress
        oldest = fetches[0]
        oldest.close(
            NetworkError(
                f"the response of {oldest.where} was given up: a request may hold {AT_ONCE} connections, "
                "and another fetch waited while none of them was read"
            )
        )
        self.leave(oldest)

    def leave(self, fetching: Fetching) -> None:
        """Release the place of a fetch, if it has one."""
        if fetching in self._held:
            del self._held[fetching]
            self._wake()

    def _wake(self) -> None:
        """Give free places to those who have waited longest, before any new fetch."""
        while self._waiters and len(self._held) < AT_ONCE:
            waiter, fetching = self._waiters.popleft()
            if not waiter.done():  # else it was cancelled
                self.take(fetching)
                waiter.set_result(None)
        self._purge()


class Lane:
    """The fetches of one call."""

    def __init__(self, scope: CallScope) -> None:
        self._fetches: dict[int, Fetching] = {}
        self._tenant = scope.version.tenant
        caller = scope.caller
        self.places: LanePlaces = LanePlaces() if caller is None or caller.is_over else caller.local(Lane).places

    def add(self, number: object, fetching: Fetching) -> int:
        checked = self.checked(number)
        fetching.tenant = self._tenant
        self._fetches[checked] = fetching
        return checked

    def checked(self, number: object) -> int:
        """Check the number that the worker gave to a new fetch."""
        if isinstance(number, bool) or not isinstance(number, int) or number in self._fetches:
            raise InvalidArgument("fetch: a fetch needs a number of its own")
        if len(self._fetches) >= MAX_OPEN:
            raise QuotaExceeded(f"more than {MAX_OPEN} fetches are open in one request: read or cancel their bodies")
        return number

    def find(self, number: object) -> Fetching:
        found = self._fetches.get(number) if isinstance(number, int) else None
        if found is None:
            raise InvalidArgument("the fetch is over, or it belongs to another request")
        return found

    def drop(self, number: object) -> None:
        """Forget a fetch that is over or cancelled."""
        fetching = self._fetches.pop(number, None) if isinstance(number, int) else None
        if fetching is not None:
            fetching.close()
            self.places.leave(fetching)

    def close(self) -> None:
        fetches, self._fetches = self._fetches, {}
        for fetching in fetches.values():
            fetching.close()
            self.places.leave(fetching)
