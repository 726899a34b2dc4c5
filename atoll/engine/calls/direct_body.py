"""A response body that goes from a binding to the client without passing through the engine.

It is used when a worker returns a body that it got from a binding and never read. The engine sends RESPONSE, then an op
names the body that follows. While that body is sent, credit from the client comes here.
"""

from __future__ import annotations

import asyncio

from atoll.engine.calls.call import RESPONDED, Call
from atoll.wire.generated import WINDOW


class DirectBody:
    __slots__ = ("_call", "_credit", "_waiter")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._credit = WINDOW
        self._waiter: asyncio.Future[None] | None = None

    async def send(self, chunk: bytes) -> bool:
        """Send a chunk as soon as there is credit. False if the response has not begun, is over or was cancelled."""
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
        """The client has taken `amount` bytes."""
        self._credit = min(self._credit + amount, WINDOW)
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
