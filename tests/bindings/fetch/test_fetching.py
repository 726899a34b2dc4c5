"""One fetch in progress, and the ways in which it ends."""

from __future__ import annotations

import asyncio

import pytest

from atoll.bindings.fetch.fetching import Fetching
from atoll.errors import NetworkError


class Silent:
    """An answerer that is silent until it is closed."""

    at_end = False

    def __init__(self) -> None:
        self.closed = asyncio.get_running_loop().create_future()

    async def read(self) -> bytes:
        await self.closed
        return b""

    def read_nowait(self) -> bytes:
        return b""

    async def write(self, chunk: bytes, ended: bool) -> bool:
        return True

    def close(self) -> None:
        self.closed.set_result(None)


async def test_a_reader_gets_the_reason_of_a_close() -> None:
    fetching = Fetching("server:80", None)
    fetching.begin(Silent())
    reading = asyncio.ensure_future(fetching.read(False))
    await asyncio.sleep(0)
    fetching.close(NetworkError("given up"))
    with pytest.raises(NetworkError, match="given up"):
        await reading


async def test_an_abandoned_read_just_ends() -> None:
    fetching = Fetching("server:80", None)
    fetching.begin(Silent())
    reading = fetching.read(False)
    reading.send(None)  # as the broker does: runs to its first wait, then the call ends
    fetching.close()
    reading.close()
    assert not fetching.is_reading
