"""Spreads work over turns of the event loop, for connections that bring more of it than one turn has time for.

Work on untrusted input is cut into small steps. A Pacer runs them at once while the current turn has time left, else in
later turns, in rotation over tenants and connections. So each turn spends a bounded time on such input, and other
clients are served in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import TypeAlias, TypeVar

log = logging.getLogger("atoll")

T = TypeVar("T")

# Seconds per turn for steps that begin at once, and again for deferred steps. A request takes about four turns, so the
# sum stays far below what users notice.
TURN_SECONDS = 0.003

# One small piece of work, well below a millisecond. True: more is left to do now.
Step: TypeAlias = Callable[[], bool]


class Pacer:
    """Shares the time of one event loop between tenants."""

    __slots__ = ("_is_set", "_left", "_queues")

    def __init__(self) -> None:
        self._left = TURN_SECONDS  # of this turn
        self._is_set = False  # the next turn is scheduled
        self._queues: dict[str, deque[Step]] = {}  # deferred steps, by tenant

    def run(self, tenant: str, step: Step) -> bool:
        """Repeat `step` while it has more to do and this turn has time. False: later turns continue it."""
        if self._left > 0:
            began = now = perf_counter()
            end = began + self._left
            is_over = False
            while now < end and not is_over:
                is_over = not step()
                now = perf_counter()
            self._left -= now - began
            if is_over:
                if not self._is_set:
                    self._ask()
                return True
        self._put_off(tenant, step)
        return False

    async def do(self, tenant: str, work: Callable[[], T]) -> T:
        """Run a piece of work: at once while this turn has time, else in a later turn."""
        if self._left > 0:
            began = perf_counter()
            try:
                return work()
            finally:
                self._left -= perf_counter() - began
                if not self._is_set:
                    self._ask()
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def step() -> bool:
            if not done.done():
                try:
                    done.set_result(work())
                except Exception as error:
                    done.set_exception(error)
            return False

        self._put_off(tenant, step)
        return await done

    @property
    def has_time(self) -> bool:
        """Whether this turn has time left."""
        return self._left > 0

    def _put_off(self, tenant: str, step: Step) -> None:
        queue = self._queues.get(tenant)
        if queue is None:
            self._queues[tenant] = deque((step,))
        else:
            queue.append(step)
        if not self._is_set:
            self._ask()

    def _ask(self) -> None:
        self._is_set = True
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """Start a turn: continue deferred steps, one per tenant in rotation."""
        self._is_set = False
        queues = self._queues
        end = perf_counter() + TURN_SECONDS
        while queues and perf_counter() < end:
            tenant, queue = next(iter(queues.items()))
            del queues[tenant]
            step = queue.popleft()
            try:
                has_more = step()
            except Exception:  # a bug in one step must not affect other connections
                log.exception("a step failed")
                has_more = False
            if has_more:
                queue.append(step)
            if queue:
                queues[tenant] = queue  # behind the other tenants
        self._left = TURN_SECONDS
        if queues:
            self._ask()
