"""Blocking calls on descriptors, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def in_thread(act: Callable[..., T], *args: object) -> T:
    """Run `act` in a thread to its end, even if the caller is cancelled.

    A cancelled caller closes its descriptors. A thread that still uses one could then write to another file that has
    got the same number.
    """
    future = asyncio.get_running_loop().run_in_executor(None, act, *args)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        raise
