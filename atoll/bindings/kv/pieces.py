"""Values on their way in pieces: kept in the call's scope, and no more of them at a time than the node can hold."""

from __future__ import annotations

from atoll.bindings.kv.limits import MAX_VALUE, too_large
from atoll.errors import QuotaExceeded

HELD_BYTES = 512 * 1024 * 1024  # of all calls together


class Budget:
    """What all calls hold at this moment."""

    def __init__(self, most: int = HELD_BYTES) -> None:
        self._left = most

    def take(self, amount: int) -> None:
        if amount > self._left:
            raise QuotaExceeded("too many large values are under way on this node: try again")
        self._left -= amount

    def give(self, amount: int) -> None:
        self._left += amount


class Upload:
    """A value that arrives."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        if self._size + len(piece) > MAX_VALUE:
            raise too_large(self._size + len(piece))
        self._budget.take(len(piece))
        self._size += len(piece)
        self._pieces.append(piece)

    def whole(self) -> bytes:
        return b"".join(self._pieces)

    def close(self) -> None:
        self._budget.give(self._size)
        self._pieces.clear()


class Download:
    """A value that is read."""

    def __init__(self, value: bytes, budget: Budget) -> None:
        budget.take(len(value))
        self._budget = budget
        self._value = value
        self._at = 0

    def take(self, most: int) -> bytes:
        piece = self._value[self._at : self._at + most]
        self._at += len(piece)
        return piece

    def close(self) -> None:
        self._budget.give(len(self._value))
