"""Try several addresses of a host: https://www.rfc-editor.org/rfc/rfc8305, "Happy Eyeballs".

Hosts often have addresses that do not answer, mostly IPv6 ones. The next attempt starts when the one before has failed
or has taken HEAD_START seconds. The first success wins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

HEAD_START = 0.25  # seconds, as in the RFC


class Contender(Protocol):
    """The result of an attempt. Those that lose the race are closed."""

    def close(self) -> None: ...


T = TypeVar("T", bound=Contender)


async def race(ways: Sequence[Callable[[], Awaitable[T]]], head_start: float = HEAD_START) -> T:
    """The result of the first attempt that succeeds. Raises the last OSError if all fail."""
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
    raise failure or OSError("no address to connect to")


async def _give_up(runners: set[asyncio.Future[T]]) -> None:
    """Cancel the attempts that did not win, and close what they opened."""
    for runner in runners:
        runner.cancel()
    for runner in runners:
        with suppress(asyncio.CancelledError, OSError):
            (await runner).close()
