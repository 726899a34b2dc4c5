"""One client cannot keep the event loop from the others: each packet is processed in bounded steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from packets import Tap, run_packets
from scripted import Front, ScriptedPool, hello, version

from atoll.front.connection import MAX_EMPTY_LINES, ClientConnection
from atoll.front.framing import MAX_BARREN, MAX_FEED, MAX_FEEDS, MAX_PARTS
from atoll.front.line import READ_AHEAD
from atoll.front.options import FrontOptions
from atoll.front.shared import Shared
from atoll.router import Router

GET = b"GET / HTTP/1.1\r\nHost: w.localhost\r\n\r\n"
NOBODY = b"GET / HTTP/1.1\r\nHost: nobody.localhost\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: w.localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


class Held(Tap):
    """A transport that records if it is being read."""

    is_paused = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class Bench:
    """Connections to one front, whose packets the test delivers."""

    def __init__(self) -> None:
        self.pool = ScriptedPool()
        router = Router()
        router.put("w", version("w"))
        self.shared = Shared(self.pool, router, None, FrontOptions())

    def connect(self) -> tuple[ClientConnection, Held]:
        connection, transport = ClientConnection(self.shared), Held()
        connection.connection_made(transport)
        return connection, transport

    async def until(self, condition: Callable[[], bool]) -> int:
        """Runs turns of the loop until the condition holds; returns their number."""
        turns = 0
        while not condition():
            await asyncio.sleep(0)
            turns += 1
        return turns

    async def finish(self) -> int:
        """Runs until no connection waits."""
        return await self.until(lambda: not self.shared.turns.waiting)


@pytest.mark.parametrize("count", [300, 5000])
async def test_one_packet_of_requests_for_unknown_hosts_is_answered_in_steps(count: int) -> None:
    bench = Bench()
    connection, transport = bench.connect()
    connection.data_received(NOBODY * count)
    assert len(connection.buffer) >= (count - 2) * len(NOBODY)
    assert await bench.finish() > 2
    await asyncio.sleep(0)
    assert transport.written.count(b"HTTP/1.1 404") == count


async def test_waiting_connections_take_turns() -> None:
    bench = Bench()
    first, second = bench.connect()[0], bench.connect()[0]
    first.data_received(NOBODY * 5000)
    second.data_received(NOBODY * 100)
    await bench.until(lambda: not second.buffer)
    assert len(first.buffer) > 4000 * len(NOBODY)
    first.connection_lost(None)
    await bench.finish()


async def test_a_packet_behind_waiting_ones_waits_too() -> None:
    """Otherwise a thousand clients would get a thousand steps in one turn."""
    bench = Bench()
    first, second = bench.connect()[0], bench.connect()[0]
    first.data_received(NOBODY * 10)
    second.data_received(CHUNKED[:20])
    second.data_received(CHUNKED[20:] + b"5\r\nhello\r\n0\r\n\r\n")
    assert not bench.pool.calls
    await bench.finish()
    assert [bytes(call.body) for call in bench.pool.calls] == [b"hello"]


async def test_a_plain_request_does_not_wait_behind_others() -> None:
    bench = Bench()
    bench.connect()[0].data_received(NOBODY * 10)
    bench.connect()[0].data_received(GET)
    assert len(bench.pool.calls) == 1
    await bench.finish()


@pytest.mark.parametrize(
    ("unit", "step"),
    [
        (b"1\r\nx\r\n", 6 * MAX_PARTS + MAX_FEED),
        (b"800\r\n" + b"\r\n" * 1024 + b"\r\n", 8 * MAX_FEEDS + 4096),
        (b"1;eeeeee\r\nx\r\n", 2 * MAX_BARREN),
    ],
    ids=["one byte per chunk", "empty lines in chunks", "extensions"],
)
async def test_a_costly_body_is_read_in_steps(unit: bytes, step: int) -> None:
    bench = Bench()
    bench.pool.script = None
    connection, _ = bench.connect()
    connection.data_received(CHUNKED)
    size = 200_000 // len(unit) * len(unit)
    connection.data_received(unit * (size // len(unit)))
    left = len(connection.buffer)
    assert size - step <= left < size
    while connection.buffer:
        before = len(connection.buffer)
        connection.is_waiting = True
        connection.step()
        assert before - len(connection.buffer) <= step
    connection.data_received(b"0\r\n\r\n")
    [call] = bench.pool.calls
    assert len(call.body) + len(call.caller.upload.waiting) == size // len(unit) * (1 if unit[:1] == b"1" else 2048)  # type: ignore[union-attr]
    await bench.finish()


async def test_a_large_body_in_large_chunks_is_read_at_once() -> None:
    bench = Bench()
    bench.pool.script = None
    connection, _ = bench.connect()
    connection.data_received(CHUNKED)
    connection.data_received((b"10000\r\n" + bytes(65536) + b"\r\n") * 4)
    assert not connection.buffer and len(bench.pool.calls[0].body) == 4 * 65536


@pytest.mark.parametrize("data", [NOBODY * 20_000, CHUNKED + b"1\r\nx\r\n" * 60_000], ids=["heads", "chunks"])
async def test_a_client_with_unprocessed_bytes_is_not_read(data: bytes) -> None:
    bench = Bench()
    bench.pool.script = hello
    connection, transport = bench.connect()
    held = 0
    for start in range(0, len(data), 262_144):
        await bench.until(lambda: not transport.is_paused)
        connection.data_received(data[start : start + 262_144])
        held = max(held, len(connection.buffer))
        assert transport.is_paused is (len(connection.buffer) > READ_AHEAD)
    assert held <= READ_AHEAD + 262_144
    await bench.finish()
    connection.connection_lost(None)


@pytest.mark.parametrize("packets", [[b"\r\n" * 100_000], [b"\r\n"] * 100, [b"\r", b"\n"] * 100])
@pytest.mark.parametrize("before", [[], [GET]])
def test_endless_empty_lines_are_refused(packets: list[bytes], before: list[bytes]) -> None:
    outcome = run_packets(before + packets)
    assert outcome.statuses[len(before) :] == [400] and outcome.is_closed
    assert b"empty lines" in outcome.written


def test_some_empty_lines_are_skipped_before_every_request() -> None:
    lines = b"\r\n" * MAX_EMPTY_LINES
    assert run_packets([lines + GET] * 20).statuses == [200] * 20
    assert run_packets([lines, GET] * 20).statuses == [200] * 20


async def test_a_client_that_sends_only_an_empty_line_times_out(front: Front) -> None:
    bench = Bench()
    connection, transport = bench.connect()
    connection.data_received(b"\r\n")
    connection.sweep(bench.shared.now + bench.shared.bounds.header_timeout + 1)
    assert transport.is_closed and not transport.written


async def test_bytes_after_a_refusal_are_dropped_in_turns_for_a_bounded_time() -> None:
    bench = Bench()
    connection, transport = bench.connect()
    connection.data_received(b"GET / HTTP/9.9\r\n\r\n")
    for _ in range(5):
        connection.data_received(bytes(262_144))
        assert transport.is_paused and not connection.buffer
        bench.shared.now += 0.5
        await bench.finish()
        assert not transport.is_paused
    transport.is_closed = False
    connection.sweep(bench.shared.now)
    assert transport.is_closed
