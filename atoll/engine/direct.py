"""A response body that goes from a binding to the client past the engine.

A worker that answers with a body it got from a binding and never looked at has nothing to do with its bytes. The
engine sends RESPONSE, and then an op says which body follows; credit from the client comes here meanwhile.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from atoll.wire.generated import WINDOW

if TYPE_CHECKING:
    from atoll.engine.calls import Call

RESPONDED = 2  # as in calls.py, which needs this file


class DirectBody:
    __slots__ = ("_call", "_credit", "_waiter")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._credit = WINDOW
        self._waiter: asyncio.Future[None] | None = None

    async def send(self, chunk: bytes) -> bool:
        """Send a piece, when there is credit. False: the response has not begun, is over, or nobody wants it."""
        call = self._call
        call.direct = self
        while self._credit <= 0 and call.state == RESPONDED:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if call.state != RESPONDED:
            return False
        self._credit -= len(chunk)
        call.caller.on_body(chunk, False)
        return True

    def on_grant(self, amount: int) -> None:
        """The client took some."""
        self._credit = min(self._credit + amount, WINDOW)
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
