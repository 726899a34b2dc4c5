"""Responses that are parsed in steps: the result is the same, and bytes after a response are never another response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from atoll.egress import connection
from atoll.egress.exchange import HIGH, JOINED
from atoll.pacer import Pacer, Step
from tests.egress.test_client import Way
from tests.eventually import eventually
from tests.upstream import Conversation, Upstream

OK = b"HTTP/1.1 200 OK\r\n"
NEXT = OK + b"content-length: 8\r\n\r\nsmuggled"


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


@pytest_asyncio.fixture
async def way(upstream: Upstream) -> AsyncIterator[Way]:
    way = Way(upstream)
    yield way
    way.close()


class OneStepATurn(Pacer):
    """A pacer whose time is used up by others."""

    def run(self, tenant: str, step: Step) -> bool:
        def go_on() -> None:
            if step():
                asyncio.get_running_loop().call_soon(go_on)

        asyncio.get_running_loop().call_soon(go_on)
        return False


def answers(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Answers requests for `/raw` with these bytes."""
    monkeypatch.setattr(Conversation, "do_raw", lambda self, path, body: self.sock.sendall(data), raising=False)


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
async def test_a_response_is_the_same_in_pieces_of_any_size(
    way: Way, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(connection, "FINE", size)
    monkeypatch.setattr(connection, "COARSE", size)
    chunks = [b"x" * length for length in (1, 1, 5000, 3, 70_000, 1, 1)]
    hint = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    answers(monkeypatch, hint * 3 + OK + b"x-a: b\r\ntransfer-encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n")
    for _ in range(2):  # on the same connection
        exchange = await way.ask("/raw")
        assert (exchange.status, b"x-a: b\r\n" in exchange.lines) == (200, True)
        got = b""
        while piece := await exchange.read():
            got += piece
        assert got == b"".join(chunks)
    assert way.client.stats.reused == 1


@pytest.mark.parametrize("size", [1, 50, 1 << 20])
@pytest.mark.parametrize("length", [0, 1, 100, 5000])
async def test_bytes_after_a_response_do_not_answer_the_next_request(
    way: Way, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, size: int, length: int
) -> None:
    """A step ends at the end of the response while more bytes wait: the connection is not reused."""
    way.client._pacer = OneStepATurn()
    monkeypatch.setattr(connection, "COARSE", size)
    head = OK + b"content-length: %d\r\n\r\n" % length
    for fine in (len(head) + length, size):
        monkeypatch.setattr(connection, "FINE", fine)
        answers(monkeypatch, head + bytes(length) + NEXT * 100)
        exchange = await way.ask("/raw")
        while await exchange.read():
            pass
        assert await way.get("/next") == b"GET /next"


async def test_a_flood_of_tiny_chunks_is_read_in_steps(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, OK + b"transfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 600_000 + b"0\r\n\r\n")
    exchange = await way.ask("/raw")

    async def is_full() -> bool:
        return exchange._size > HIGH

    await eventually(is_full, "a full buffer")
    assert len(exchange._chunks) <= HIGH // JOINED + 2
    got = 0
    while piece := await exchange.read():
        got += len(piece)
    assert got == 600_000
