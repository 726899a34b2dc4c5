"""Large values in transit, in pieces: kept in the call's scope, and bounded for the whole node."""

from __future__ import annotations

import asyncio
from collections import Counter

from atoll.bindings.kv.limits import MAX_VALUE, too_large
from atoll.errors import QuotaExceeded

HELD_BYTES = 512 * 1024 * 1024  # of all calls together
PATIENCE = 10.0  # seconds that a value waits for room


class Budget:
    """The bytes that all calls hold now. One tenant gets at most half."""

    def __init__(self, most: int = HELD_BYTES, patience: float = PATIENCE) -> None:
        self._left = most
        self._share = most // 2
        self._patience = patience
        self._held: Counter[str] = Counter()  # by tenant
        self._waiting: dict[asyncio.Future[None], tuple[str, int]] = {}  # in order of arrival

    def take(self, tenant: str, amount: int) -> None:
        if not self._fits(tenant, amount):
            raise QuotaExceeded("too many large values are in transit on this node: try again")
        self._left -= amount
        self._held[tenant] += amount

    async def wait_for(self, tenant: str, amount: int) -> None:
        """Take bytes from the budget, once there is room."""
        if self._fits(tenant, amount):
            return self.take(tenant, amount)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = tenant, amount
        try:
            await asyncio.wait([turn], timeout=self._patience)
        except asyncio.CancelledError:
            if turn.done():  # the room was given too late
                self.give(tenant, amount)
            raise
        finally:
            self._waiting.pop(turn, None)
        if not turn.done():
            raise QuotaExceeded("too many large values are in transit on this node: try again")

    def give(self, tenant: str, amount: int) -> None:
        self._left += amount
        self._held[tenant] -= amount
        if not self._held[tenant]:
            del self._held[tenant]
        for turn, (other, wanted) in list(self._waiting.items()):
            if not turn.done() and self._fits(other, wanted):
                self.take(other, wanted)
                turn.set_result(None)

    def _fits(self, tenant: str, amount: int) -> bool:
        return amount <= self._left and self._held[tenant] + amount <= self._share


class ValueUpload:
    """A value that is being uploaded."""

    def __init__(self, budget: Budget, tenant: str) -> None:
        self._budget = budget
        self._tenant = tenant
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        if self._size + len(piece) > MAX_VALUE:
            raise too_large(self._size + len(piece))
        self._budget.take(self._tenant, len(piece))
        self._size += len(piece)
        self._pieces.append(piece)

    def whole(self) -> bytes:
        return b"".join(self._pieces)

    def close(self) -> None:
        self._budget.give(self._tenant, self._size)
        self._pieces.clear()


class ValueDownload:
    """A value that is being read. Its length was taken from the budget."""

    def __init__(self, value: bytes, budget: Budget, tenant: str) -> None:
        self._budget = budget
        self._tenant = tenant
        self._value = value
        self._at = 0

    @property
    def is_over(self) -> bool:
        return self._at == len(self._value)

    def take(self, most: int) -> bytes:
        piece = self._value[self._at : self._at + most]
        self._at += len(piece)
        return piece

    def close(self) -> None:
        self._budget.give(self._tenant, len(self._value))
