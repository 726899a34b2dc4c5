"""Waits for a condition that another task brings about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def eventually(condition: Callable[[], Awaitable[object]], what: str, seconds: float = 20) -> None:
    try:
        async with asyncio.timeout(seconds):
            while not await condition():  # noqa: ASYNC110 (the condition sends no event)
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"waited too long for {what}") from None
