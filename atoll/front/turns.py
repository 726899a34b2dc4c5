"""The queue of connections with more work to do, so that no client blocks the event loop for others.

A connection does one bounded step when bytes arrive: one head, or a piece of a body. If it could do more, it waits
here. Each turn of the event loop gives the waiting connections one step each, first come first served, until the time
for it is used up. Then the loop reads sockets again. So the time per turn is bounded, however much one client sends and
however many clients do.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Final

from atoll.front.endpoint import Endpoint

# Limits for one turn of the event loop, for all waiting connections together. Each step may resume reading from a
# socket, so steps are limited too.
TURN_SECONDS: Final = 0.001
TURN_STEPS: Final = 32


class Turns:
    __slots__ = ("is_due", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Endpoint] = deque()
        self.is_due = False  # `run` is scheduled

    def add(self, connection: Endpoint) -> None:
        """Give a connection a step in a later turn of the event loop."""
        self.waiting.append(connection)
        if not self.is_due:
            self.is_due = True
            asyncio.get_running_loop().call_soon(self.run)

    def run(self) -> None:
        waiting = self.waiting
        end = time.monotonic() + TURN_SECONDS
        try:
            for _ in range(min(len(waiting), TURN_STEPS)):
                waiting.popleft().step()
                if time.monotonic() >= end:
                    break
        finally:
            self.is_due = bool(waiting)
            if waiting:
                asyncio.get_running_loop().call_soon(self.run)
