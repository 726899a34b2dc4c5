"""One of several ways that may all lead to the same place: https://www.rfc-editor.org/rfc/rfc8305, "Happy Eyeballs".

A host often has addresses that answer nobody, mostly of IPv6. The next one is tried when the one before has failed or
has been silent for a moment; the first that is there wins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

HEAD_START = 0.25  # seconds, as the RFC has it


class Closable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=Closable)


async def race(ways: Sequence[Callable[[], Awaitable[T]]], head_start: float = HEAD_START) -> T:
    """What the first way that works gives. The OSError of the last that failed, when none does."""
    if len(ways) == 1:
        return await ways[0]()
    runners: set[asyncio.Future[T]] = set()
    failure: OSError | None = None
    left = list(ways)
    try:
        while left or runners:
            if left:
                runners.add(asyncio.ensure_future(left.pop(0)()))
            done, _ = await asyncio.wait(
                runners, timeout=head_start if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for runner in done:
                try:
                    winner = runner.result()
                except OSError as error:
                    failure = error
                    runners.discard(runner)
                else:
                    runners.discard(runner)
                    return winner
    finally:
        await _give_up(runners)
    raise failure or OSError("there is no way")


async def _give_up(runners: set[asyncio.Future[T]]) -> None:
    """End those that did not win. One that was about to is closed."""
    for runner in runners:
        runner.cancel()
    for runner in runners:
        with suppress(asyncio.CancelledError, OSError):
            (await runner).close()
