"""Starting, running out of time, and stopping."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable

import pytest
from scripted import PLAIN, Front

from atoll.errors import StartError
from atoll.front.server import Server, listen

Start = Callable[..., Awaitable[Front]]

GET = b"GET / HTTP/1.1\r\nHost: w.localhost\r\n\r\n"


async def test_the_error_for_a_taken_port_names_its_owner(front: Front) -> None:
    port = front.server.port
    with pytest.raises(StartError) as caught:
        listen("127.0.0.1", port)
    assert str(port) in str(caught.value)
    assert f"process {os.getpid()}" in str(caught.value)
    assert f"--port {port + 1}" in caught.value.hint


def test_an_address_of_another_machine_is_a_start_error() -> None:
    with pytest.raises(StartError, match=r"192\.0\.2\.1"):
        listen("192.0.2.1", 0)


def test_localhost_is_one_port_in_every_address_family() -> None:
    listening = listen("localhost", 0)
    assert {sock.getsockname()[1] for sock in listening.sockets} == {listening.port}
    listening.close()


async def test_a_client_may_connect_before_the_server_is_ready(front: Front) -> None:
    listening = listen("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", listening.port)) as early:
        early.sendall(GET)
        server = Server(front.pool, front.router)
        await server.startup(listening)
        await front.pool.next_call()
        await server.shutdown()


async def test_a_head_that_arrives_too_slowly_is_refused(start: Start) -> None:
    front = await start(header_timeout=0.1, idle_timeout=30)
    client = await front.connect()
    client.send(GET)
    await client.response()
    dribble = asyncio.create_task(send_slowly(client.writer, GET))
    assert (await client.response()).status == 408
    assert await client.rest() == b""
    dribble.cancel()


async def send_slowly(writer: asyncio.StreamWriter, data: bytes) -> None:
    for byte in data:
        writer.write(bytes([byte]))
        await asyncio.sleep(0.02)


async def test_a_connection_that_never_sends_is_closed(start: Start) -> None:
    front = await start(header_timeout=0.1, idle_timeout=30)
    assert await (await front.connect()).rest() == b""


async def test_an_idle_connection_is_closed(start: Start) -> None:
    front = await start(idle_timeout=0.1)
    client = await front.connect()
    client.send(GET)
    assert (await client.response()).status == 200
    assert await client.rest() == b""


@pytest.mark.parametrize("length", [10, 1_000_000])
async def test_a_body_that_stalls_is_refused(start: Start, length: int) -> None:
    front = await start(body_timeout=0.1)
    front.pool.script = None
    client = await front.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: w.localhost\r\nContent-Length: %d\r\n\r\nx" % length)
    assert (await client.response()).status == 408
    assert all(call.cancelled for call in front.pool.calls)


async def test_the_time_limit_of_a_body_starts_with_its_head(start: Start) -> None:
    """The time limit for a body starts with its head. A body that follows its head after a moment is not too late."""
    front = await start(header_timeout=1, body_timeout=2, idle_timeout=60)
    client = await front.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: w.localhost\r\nContent-Length: 1\r\n\r\n")
    await asyncio.sleep(3 * front.server.period)
    client.send(b"x")
    assert (await client.response()).status == 200


async def test_a_slow_worker_does_not_time_out_its_client(start: Start) -> None:
    front = await start(header_timeout=0.05, body_timeout=0.05, idle_timeout=0.05)
    front.pool.script = None
    client = await front.connect()
    client.send(GET)
    call = await front.pool.next_call()
    await asyncio.sleep(0.2)
    call.answer()
    assert (await client.response()).status == 200


async def test_a_client_that_stops_reading_is_cut_off(start: Start) -> None:
    front = await start(idle_timeout=0.2)
    front.pool.script = None
    with socket.create_connection(("127.0.0.1", front.server.port)) as raw:
        raw.sendall(GET)
        call = await front.pool.next_call()
        call.caller.on_response(200, PLAIN, b"", False)
        while not front_connection(front).is_write_paused:
            call.caller.on_body(bytes(65536), False)
            await asyncio.sleep(0)
        await call.until(lambda call: call.cancelled)


def front_connection(front: Front):  # type: ignore[no-untyped-def]
    (connection,) = front.server.shared.connections
    return connection


async def test_shutdown_lets_exchanges_in_flight_finish(start: Start) -> None:
    front = await start()
    front.pool.script = None
    idle, busy = await front.connect(), await front.connect()
    idle.send(GET)
    (await front.pool.next_call()).answer()
    await idle.response()
    busy.send(GET + GET)
    call = await front.pool.next_call(2)
    stopping = asyncio.create_task(front.server.shutdown())
    assert await idle.rest() == b"", "an idle connection is closed at once"
    with pytest.raises(OSError):
        await front.connect()
    call.answer(b"last")
    response = await busy.response()
    assert (response.body, response.headers[b"connection"]) == (b"last", b"close")
    assert await busy.rest() == b""
    await stopping
    assert len(front.pool.calls) == 2


async def test_shutdown_ends_exchanges_that_do_not_finish_in_time(start: Start) -> None:
    front = await start(drain_seconds=0.1)
    front.pool.script = None
    client = await front.connect()
    client.send(GET)
    call = await front.pool.next_call()
    await front.server.shutdown()
    assert call.cancelled
    assert not front.server.shared.connections
