"""Writes in groups: all that wait become one transaction, so a commit is paid once for all of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from atoll.errors import StorageAway

W = TypeVar("W")

MAX_WRITES = 256
MAX_BYTES = 8 << 20  # of one transaction


class Groups(Generic[W]):
    """`act` makes some writes in one transaction; returns the error of each, or None. What it raises is the error of
    all of them. Repeating a group must be safe: it may have been committed although it failed."""

    def __init__(
        self, act: Callable[[list[W]], Awaitable[list[BaseException | None]]], *, weigh: Callable[[W], int]
    ) -> None:
        self._act = act
        self._weigh = weigh
        self._waiting: deque[tuple[W, asyncio.Future[None]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    async def add(self, write: W) -> None:
        """Returns once the write is committed."""
        if self._is_closed:
            raise StorageAway("the node is stopping")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((write, future))
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())
        await future

    async def close(self) -> None:
        self._is_closed = True
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while self._waiting:
                group = self._take()
                errors: list[BaseException | None]
                try:
                    errors = await self._act([write for write, _ in group])
                except Exception as error:
                    errors = [error] * len(group)
                for (_, future), failed in zip(group, errors, strict=True):
                    if future.done():  # the caller went away; the write was made
                        continue
                    if failed is None:
                        future.set_result(None)
                    else:
                        future.set_exception(failed)
        finally:
            self._task = None

    def _take(self) -> list[tuple[W, asyncio.Future[None]]]:
        group = [self._waiting.popleft()]
        size = self._weigh(group[0][0])
        while self._waiting and len(group) < MAX_WRITES and size < MAX_BYTES:
            group.append(self._waiting.popleft())
            size += self._weigh(group[-1][0])
        return group
