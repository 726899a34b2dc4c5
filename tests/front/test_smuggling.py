"""One request gets one answer: no byte of a request is ever run as another request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from packets import Tap, run_packets
from scripted import Front, ScriptedPool, echo, hello, version

from atoll.front.connection import ClientConnection
from atoll.front.options import FrontOptions
from atoll.front.shared import Shared
from atoll.router import Router

Start = Callable[..., Awaitable[Front]]

H = b"Host: w.localhost\r\n"
GET = b"GET / HTTP/1.1\r\n" + H + b"\r\n"
EVIL = b"GET /evil HTTP/1.1\r\nHost: w.localhost\r\n\r\n"
SOCKET = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
COUNTED = b"Content-Length: %d\r\n\r\n" % len(EVIL) + EVIL
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(EVIL) + EVIL + b"\r\n0\r\n\r\n"


@pytest.mark.parametrize("body", [COUNTED, CHUNKED, b"Transfer-Encoding: chunked\r\n\r\n" + EVIL])
@pytest.mark.parametrize("cut", [None, -len(EVIL), -1, 40])
def test_the_body_of_a_websocket_request_is_never_the_next_request(body: bytes, cut: int | None) -> None:
    data = b"GET /first HTTP/1.1\r\n" + H + SOCKET + body
    outcome = run_packets([data] if cut is None else [data[:cut], data[cut:]], hello)
    assert (outcome.statuses, outcome.calls, outcome.is_closed) == ([400], [], True)
    assert b"a request for a WebSocket must have no body" in outcome.written


@pytest.mark.parametrize("answer", [200, 400, 426, 500])
async def test_a_refused_websocket_request_is_the_last_of_its_connection(front: Front, answer: int) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(b"GET /first HTTP/1.1\r\n" + H + SOCKET + b"\r\n" + EVIL)
    (await front.pool.next_call()).answer(status=answer)
    response = await client.response()
    assert (response.status, response.headers[b"connection"]) == (answer, b"close")
    assert await client.rest() == b""
    assert len(front.pool.calls) == 1


UPGRADES = {
    "h2c": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
    "unknown protocol": b"Connection: upgrade\r\nUpgrade: other\r\n",
    "two lines": b"Connection: upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n",
    "a list": b"Upgrade: websocket, h2c\r\nConnection: keep-alive, Upgrade\r\n",
    "capitals": b"CONNECTION: UPGRADE\r\nUPGRADE: OTHER\r\n",
    "no space": b"connection:upgrade\r\nupgrade:other\r\n",
}


@pytest.mark.parametrize("lines", UPGRADES.values(), ids=UPGRADES.keys())
@pytest.mark.parametrize("method", [b"GET", b"POST", b"HEAD", b"OPTIONS", b"PUT"])
@pytest.mark.parametrize("body", [b"\r\n", COUNTED, CHUNKED])
@pytest.mark.parametrize("host", [H, b"Host: nobody.localhost\r\n"])
@pytest.mark.parametrize("http", [b" /first HTTP/1.1\r\n", b" /first HTTP/1.0\r\nConnection: keep-alive\r\n"])
def test_nothing_after_an_upgrade_request_is_a_request(
    lines: bytes, method: bytes, body: bytes, host: bytes, http: bytes
) -> None:
    outcome = run_packets([method + http + host + lines + body + EVIL])
    if body is CHUNKED and b"1.0" in http:
        assert (outcome.statuses, outcome.calls, outcome.is_closed) == ([400], [], True)
        return
    assert len(outcome.statuses) == 1 and outcome.is_closed
    assert b"connection: close\r\n" in outcome.written
    assert len(outcome.calls) == (host is H)
    for call in outcome.calls:
        assert call.head.split(b"\n")[0].endswith(b"/first")
        assert bytes(call.body) == (b"" if body == b"\r\n" else EVIL)


def test_connect_is_refused_and_later_bytes_are_not_read() -> None:
    for lines in (b"\r\n", COUNTED, b"Connection: upgrade\r\nUpgrade: x\r\n\r\n"):
        outcome = run_packets([b"CONNECT w.localhost:80 HTTP/1.1\r\n" + H + lines + EVIL])
        assert (outcome.statuses, outcome.calls, outcome.is_closed) == ([501], [], True)


@pytest.mark.parametrize("blank", [b"\n", b"\r", b" ", b"\t", b"\0", b"\r\n\n", b"\r\r\n"])
@pytest.mark.parametrize("before", [b"", GET])
def test_only_empty_lines_may_precede_a_method(blank: bytes, before: bytes) -> None:
    """llhttp skips single CRs and LFs, so they could become part of the method that a worker receives."""
    outcome = run_packets([before + blank + EVIL])
    assert outcome.statuses[-1] == 400 and outcome.is_closed
    assert len(outcome.calls) == len(before) / len(GET)


@pytest.mark.parametrize(
    "lines", [b"Connection: keep-alive\r\nConnection: close\r\n", b"Connection: keep-alive, close\r\n"]
)
def test_connection_close_holds_even_if_the_answer_precedes_the_body(lines: bytes) -> None:
    first = b"POST /first HTTP/1.1\r\nHost: nobody.localhost\r\n" + lines + b"Content-Length: 5\r\n\r\n"
    outcome = run_packets([first, b"hello" + EVIL])
    assert (outcome.statuses, outcome.calls, outcome.is_closed) == ([404], [], True)


BROKEN = {
    "a chunk that is none": (b"Transfer-Encoding: chunked\r\n\r\n", b"-1\r\nx\r\n"),
    "a trailer that frames": (b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n0\r\nContent-Length: 5\r\n\r\n"),
    "too much": (b"Transfer-Encoding: chunked\r\n\r\n", b"40\r\n" + bytes(64) + b"\r\n"),
}


@pytest.mark.parametrize(("framing", "body"), BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("host", [H, b"Host: nobody.localhost\r\n"])
async def test_a_body_that_breaks_after_the_answer_gets_no_second_answer(
    start: Start, framing: bytes, body: bytes, host: bytes
) -> None:
    front = await start(body_bytes=50)
    front.pool.script = hello
    client = await front.connect()
    client.send(b"POST /first HTTP/1.1\r\n" + host + framing)
    assert (await client.response()).status in (200, 404)
    client.send(body + EVIL)
    assert await client.rest() == b""


async def test_a_body_that_never_ends_after_the_answer_gets_no_second_answer(start: Start) -> None:
    front = await start(body_timeout=0.1)
    client = await front.connect()
    client.send(b"POST /first HTTP/1.1\r\nHost: nobody.localhost\r\nContent-Length: 5\r\n\r\nx")
    assert (await client.response()).status == 404
    assert await client.rest() == b""


async def test_bytes_of_a_body_stay_in_order_while_the_client_does_not_read() -> None:
    """The next packet must not overtake the part that waits in the buffer, and become a request."""
    pool = ScriptedPool()
    pool.script = echo
    router = Router()
    router.put("w", version("w"))
    shared = Shared(pool, router, None, FrontOptions())
    connection = ClientConnection(shared)

    class Full(Tap):
        """A client that stops reading after the first answer."""

        def write(self, data: bytes | bytearray | memoryview) -> None:
            super().write(data)
            connection.pause_writing()

    connection.connection_made(Full())
    # 129 answers are written at once, without waiting for the end of the turn
    shared.out.extend([(connection, b"")] * 128)
    head = b"POST / HTTP/1.1\r\nHost: nobody.localhost\r\nContent-Length: %d\r\n\r\n" % len(EVIL)
    connection.data_received(head + EVIL)
    assert connection.is_write_paused and connection.is_reading and bytes(connection.buffer) == EVIL
    connection.data_received(EVIL.replace(b"evil", b"good"))
    connection.resume_writing()
    for _ in range(10):
        await asyncio.sleep(0)
    assert [call.head.split(b"\n")[0] for call in pool.calls] == [b"GET http://w.localhost/good"]
    connection.connection_lost(None)


async def test_a_smuggled_request_does_not_reach_the_control_api(start: Start) -> None:
    asked: list[str] = []

    async def control(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"secrets"})

    front = await start(control=control)
    for smuggled in (b"GET /api/backup", b"DELETE /api/workers/x"):
        inner = smuggled + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for body in (
            b"Content-Length: %d\r\n\r\n" % len(inner) + inner,
            b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(inner), inner),
            b"Transfer-Encoding: chunked\r\n\r\n" + inner,
            b"\r\n" + inner,
        ):
            for upgrade in (SOCKET, *UPGRADES.values()):
                answer = await front.exchange(b"GET / HTTP/1.1\r\n" + H + upgrade + body)
                assert answer.count(b"HTTP/1.1 ") == 1 and b"secrets" not in answer
    assert not asked
    client = await front.connect()
    client.send(b"GET /api/backup HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await client.response()).body == b"secrets"  # the request works when it is not smuggled
