"""The fetches of one call, by the numbers the worker gave them, and the connections that one request may hold: six.

The six are shared with the workers that it calls through service bindings, which are no connections themselves. A fetch
holds its place until its response has been read, so a worker that waits for a seventh before it reads any of six could
wait for ever. When none of the six has been read from for a while, the one left alone longest is given up.
"""

from __future__ import annotations

import asyncio
from collections import deque

from atoll.bindings.fetch.fetching import Fetching
from atoll.bindings.scope import Scope
from atoll.errors import InvalidArgument, NetworkError, QuotaExceeded

AT_ONCE = 6
MAX_OPEN = 1_000
PATIENCE = 0.5  # seconds without a read of any of the six


class Places:
    """The connections of one request."""

    def __init__(self) -> None:
        self._held: dict[Fetching, None] = {}  # the one left alone longest first
        self._waiters: deque[tuple[asyncio.Future[None], Fetching]] = deque()  # who came first is first
        self._has_moved = False  # one was read from since somebody began to wait

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
        waits = waiter, fetching
        self._waiters.append(waits)
        try:
            while not waiter.done():
                self._has_moved = False
                await asyncio.wait([waiter], timeout=PATIENCE)
                if not waiter.done():
                    self._give_up_one()
        except BaseException:
            if waiter.done():
                self.leave(fetching)  # the place it was given is another's
            else:
                self._waiters.remove(waits)
            raise

    def touch(self, fetching: Fetching) -> None:
        """It was read from."""
        self._has_moved = True
        if fetching in self._held:
            del self._held[fetching]
            self._held[fetching] = None

    def _give_up_one(self) -> None:
        fetches = [fetching for fetching in self._held if not fetching.is_socket]
        if not fetches:
            raise QuotaExceeded(
                f"the {AT_ONCE} connections that a request may hold are all WebSockets: close one of them first"
            )
        if self._has_moved or any(not fetching.has_head or fetching.is_reading for fetching in fetches):
            return  # something moves
        oldest = fetches[0]
        oldest.close(
            NetworkError(
                f"the response of {oldest.where} was given up: a request may hold {AT_ONCE} connections, "
                "and more were wanted while none of them was read"
            )
        )
        self.leave(oldest)

    def leave(self, fetching: Fetching) -> None:
        """Its place is another's, if it had one."""
        if fetching in self._held:
            del self._held[fetching]
            self._wake()

    def _wake(self) -> None:
        """Give a place that is free to the one who has waited longest: nobody who comes now can take it before him."""
        if self._waiters and len(self._held) < AT_ONCE:
            waiter, fetching = self._waiters.popleft()
            self.take(fetching)
            waiter.set_result(None)


class Lane:
    """The fetches of one call."""

    def __init__(self, scope: Scope) -> None:
        self._fetches: dict[int, Fetching] = {}
        caller = scope.caller
        self.places: Places = Places() if caller is None or caller.is_over else caller.local(Lane).places

    def add(self, number: object, fetching: Fetching) -> int:
        checked = self.checked(number)
        self._fetches[checked] = fetching
        return checked

    def checked(self, number: object) -> int:
        """A number for one more fetch, as the worker gave it."""
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
        """A fetch is over, or nobody wants it any more."""
        fetching = self._fetches.pop(number, None) if isinstance(number, int) else None
        if fetching is not None:
            fetching.close()
            self.places.leave(fetching)

    def close(self) -> None:
        fetches, self._fetches = self._fetches, {}
        for fetching in fetches.values():
            fetching.close()
            self.places.leave(fetching)
