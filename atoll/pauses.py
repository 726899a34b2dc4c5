"""Long loops in threads beside the event loop: they give the interpreter back often.

A thread that computes keeps the interpreter lock for 5 ms each time, and the event loop may need the lock several times
to answer one request. A loop that pauses after a fraction of a millisecond lets the event loop in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

STEP: Final = 100  # items between two pauses: at a few us each, a fraction of a millisecond
PAUSE_SECONDS: Final = 0.0005


def with_pauses(items: Iterable[T], step: int = STEP) -> Iterable[T]:
    """The items, with a pause after each `step` of them if this thread runs no event loop: at a start nobody waits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _paused(items, step)
    return items


def _paused(items: Iterable[T], step: int) -> Iterator[T]:
    for number, item in enumerate(items):
        yield item
        if number % step == step - 1:
            time.sleep(PAUSE_SECONDS)
