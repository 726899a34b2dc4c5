"""Echo: returns its input, at once or later. A template to copy, and a test of ops."""

from __future__ import annotations

import asyncio

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.errors import InvalidArgument

MAX_WAIT_MS = 10_000


class Echo(Binding):
    kind = "echo"
    keeps_data = False

    @op("echo.say")
    def say(self, call: OpCall) -> Reply:
        """Reply with the meta and the body of the op."""
        return Reply(call.meta, call.body)

    @op("echo.wait")
    async def wait(self, call: OpCall) -> Reply:
        """Reply with the meta after `ms` milliseconds."""
        ms = call.meta.get("ms")
        if isinstance(ms, bool) or not isinstance(ms, int | float) or not 0 <= ms <= MAX_WAIT_MS:
            raise InvalidArgument(f"ms must be a number from 0 to {MAX_WAIT_MS}")
        if ms:
            await asyncio.sleep(ms / 1000)
        return Reply(call.meta)
