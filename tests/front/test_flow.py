"""Streaming bodies in both directions, and slow clients and workers."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Awaitable, Callable

import pytest
from scripted import PLAIN, Front, ScriptedCall, echo

from atoll.errors import Failure
from atoll.front.flow import DISCARD, GRANT_AT, GRANT_STEP, ClientDownload, ClientUpload
from atoll.holdings import Holdings
from atoll.wire.generated import CHUNK, INLINE_BODY, WINDOW, ErrorCode

Start = Callable[..., Awaitable[Front]]

GET = b"GET / HTTP/1.1\r\nHost: w.localhost\r\n\r\n"
MB = 1 << 20
CHUNKED = b"POST / HTTP/1.1\r\nHost: w.localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def post(length: int, *lines: bytes) -> bytes:
    extra = b"".join(line + b"\r\n" for line in lines)
    return b"POST / HTTP/1.1\r\nHost: w.localhost\r\nContent-Length: %d\r\n%b\r\n" % (length, extra)


def peak_kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Taker:
    """The two halves of a call, with counters."""

    def __init__(self) -> None:
        self.pieces: list[tuple[int, bool]] = []
        self.granted: list[int] = []
        self.unsent = 0

    def send_body(self, chunk: bytes, ended: bool) -> None:
        self.pieces.append((len(chunk), ended))

    def grant(self, amount: int) -> None:
        self.granted.append(amount)


def test_an_upload_never_sends_more_than_its_credit() -> None:
    taker = Taker()
    upload = ClientUpload(taker)
    upload.take(b"x" * (WINDOW + 10), False)
    assert sum(size for size, _ in taker.pieces) == WINDOW
    assert all(size <= CHUNK for size, _ in taker.pieces)
    assert upload.is_full
    upload.add_credit(4)
    assert taker.pieces[-1] == (4, False)
    upload.take(b"yy", True)
    upload.add_credit(10**9)
    assert taker.pieces[-1] == (8, True)
    assert upload.credit <= WINDOW


def test_an_upload_whose_last_byte_uses_up_the_credit_still_ends() -> None:
    taker = Taker()
    ClientUpload(taker).take(b"x" * WINDOW, True)
    assert taker.pieces[-1] == (CHUNK, True)
    taker.pieces.clear()
    upload = ClientUpload(taker)
    upload.take(b"x" * WINDOW, False)
    upload.take(b"", True)
    assert taker.pieces[-1] == (0, True)


def test_a_download_grants_only_while_the_client_reads() -> None:
    taker = Taker()
    download = ClientDownload(taker, False, Holdings(), "a")
    download.sent(GRANT_AT - 1)
    assert taker.granted == []
    download.sent(1)
    assert taker.granted == [GRANT_AT]
    download.pause()
    download.sent(WINDOW)
    assert taker.granted == [GRANT_AT]
    download.resume()
    assert taker.granted == [GRANT_AT, WINDOW]


def test_a_download_of_a_tenant_that_holds_much_has_a_small_window_until_there_is_room() -> None:
    taker, holdings = Taker(), Holdings(1000)
    holdings.count("a", 1001)
    download = ClientDownload(taker, True, holdings, "a")
    download.sent(WINDOW)
    download.resume()
    assert taker.granted == [GRANT_STEP]
    download.sent(GRANT_STEP)
    assert taker.granted == [GRANT_STEP] * 2  # the window stays small, and the body goes on
    holdings.count("a", -1)
    download.sent(GRANT_STEP)
    assert sum(taker.granted) == WINDOW + 2 * GRANT_STEP


async def test_the_call_starts_before_a_large_body_has_arrived(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(post(INLINE_BODY + 1))
    call = await front.pool.next_call()
    assert call.inline == (b"", False)
    client.send(b"x" * (INLINE_BODY + 1))
    await call.until(lambda call: call.ended)
    call.answer()
    assert (await client.response()).status == 200


async def test_a_chunked_body_in_pieces_streams(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(CHUNKED + b"5\r\nhello\r\n")
    call = await front.pool.next_call()
    await call.until(lambda call: call.body == b"hello")
    client.send(b"6\r\n world\r\n0\r\n\r\n" + GET)
    await call.until(lambda call: call.ended)
    assert call.body == b"hello world"
    call.answer()
    await client.response()
    (await front.pool.next_call(2)).answer()
    await client.response()


async def test_a_worker_that_does_not_read_stops_the_upload_at_the_window(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(post(64 * MB))
    call = await front.pool.next_call()
    sending = asyncio.create_task(send_zeros(client.writer, 64 * MB))
    await call.until(lambda call: len(call.body) == WINDOW)
    await asyncio.sleep(0.1)
    assert len(call.body) == WINDOW
    assert not sending.done()
    call.caller.on_upload_credit(1000)
    await call.until(lambda call: len(call.body) == WINDOW + 1000)
    sending.cancel()


async def send_zeros(writer: asyncio.StreamWriter, size: int) -> None:
    block = bytes(MB)
    for _ in range(size // MB):
        writer.write(block)
        await writer.drain()


async def test_an_upload_of_100_megabytes_needs_bounded_memory(start: Start) -> None:
    front = await start(body_bytes=100 * MB)
    seen = 0

    def take(call: ScriptedCall, chunk: bytes, ended: bool) -> None:
        nonlocal seen
        seen += len(chunk)
        call.body.clear()
        loop = asyncio.get_running_loop()
        if ended:
            loop.call_soon(call.answer)
        else:
            loop.call_soon(call.caller.on_upload_credit, len(chunk))

    front.pool.script = None
    front.pool.on_chunk = take
    client = await front.connect()
    client.send(post(100 * MB))
    before = peak_kilobytes()
    await send_zeros(client.writer, 100 * MB)
    assert (await client.response()).status == 200
    assert seen == 100 * MB
    assert peak_kilobytes() - before < 20 * 1024


async def test_a_download_of_100_megabytes_needs_bounded_memory(front: Front) -> None:
    piece = bytes(CHUNK)
    left = 100 * MB

    def more(call: ScriptedCall) -> None:
        nonlocal left
        while left and call.granted >= CHUNK:
            call.granted -= CHUNK
            left -= CHUNK
            asyncio.get_running_loop().call_soon(call.caller.on_body, piece, left == 0)

    def begin(call: ScriptedCall) -> None:
        def respond() -> None:
            call.caller.on_response(200, PLAIN, b"", False)
            call.granted = WINDOW
            more(call)

        asyncio.get_running_loop().call_soon(respond)

    front.pool.script = begin
    front.pool.on_grant = more
    client = await front.connect()
    client.send(GET)
    before = peak_kilobytes()
    await client.head()
    got = 0
    async for chunk in client.chunks():
        got += len(chunk)
    assert got == 100 * MB
    assert peak_kilobytes() - before < 20 * 1024


async def test_no_credit_is_granted_while_the_client_does_not_read(front: Front) -> None:
    front.pool.script = None
    raw = socket.create_connection(("127.0.0.1", front.server.port))
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with raw:
        raw.sendall(GET)
        call = await front.pool.next_call()
        call.caller.on_response(200, PLAIN, b"", False)
        sent, allowed = 0, WINDOW
        for _ in range(1000):  # kernel buffers take some megabytes before the slow client has an effect
            if sent + CHUNK > allowed + call.granted:
                break
            call.caller.on_body(bytes(CHUNK), False)
            sent += CHUNK
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        (connection,) = front.server.shared.connections
        assert connection.is_write_paused
        held = connection.transport.get_write_buffer_size()
        assert held <= WINDOW + 2 * CHUNK
        assert call.granted < sent
    await call.until(lambda call: call.cancelled)


async def test_an_engine_that_ignores_its_credit_is_cut_off(front: Front) -> None:
    front.pool.script = None
    raw = socket.create_connection(("127.0.0.1", front.server.port))
    with raw:
        raw.sendall(GET)
        call = await front.pool.next_call()
        call.caller.on_response(200, PLAIN, b"", False)
        for _ in range(1000):
            call.caller.on_body(bytes(CHUNK), False)
            if call.cancelled:
                break
        assert call.cancelled


async def test_100_continue_is_sent_only_if_the_body_will_be_read(front: Front) -> None:
    front.pool.script = echo
    client = await front.connect()
    client.send(post(5, b"Expect: 100-continue"))
    assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"hello")
    assert (await client.response()).body.endswith(b"|hello")
    client.send(post(5, b"Expect: 100-continue") + b"hello")
    assert (await client.response()).status == 200, "a body that has already arrived needs no 100 Continue"
    client.send(post(5, b"Expect: 100-continue").replace(b"w.localhost", b"nobody.localhost"))
    assert (await client.response()).status == 404


async def test_a_body_over_the_limit_is_refused_before_it_is_sent(start: Start) -> None:
    front = await start(body_bytes=1000)
    answer = await front.exchange(post(1001, b"Expect: 100-continue"))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert front.pool.calls == []


async def test_a_body_over_the_limit_that_has_arrived_is_refused(start: Start) -> None:
    front = await start(body_bytes=3)
    assert (await front.exchange(post(4) + b"1234")).startswith(b"HTTP/1.1 413 ")
    assert front.pool.calls == []


async def test_a_chunked_body_over_the_limit_ends_its_call(start: Start) -> None:
    front = await start(body_bytes=1000)
    front.pool.script = None
    client = await front.connect()
    client.send(CHUNKED)
    call = await front.pool.next_call()
    client.send(b"3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n")
    assert (await client.response()).status == 413
    assert call.cancelled
    assert await client.rest() == b""


async def test_chunk_extensions_and_trailers_are_bounded(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(CHUNKED + b"0\r\n" + b"T: " + b"x" * 70_000)
    assert (await client.response()).status == 400


async def test_the_rest_of_an_unread_body_is_dropped(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(post(DISCARD) + b"x" * 100)
    call = await front.pool.next_call()
    call.caller.on_upload_stop()
    call.answer()
    assert (await client.response()).status == 200
    client.send(b"x" * (DISCARD - 100) + GET)
    (await front.pool.next_call(2)).answer(b"next")
    assert (await client.response()).body == b"next"


async def test_a_large_unread_body_ends_the_connection_after_the_response(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(post(50 * MB) + b"x" * 100)
    call = await front.pool.next_call()
    call.caller.on_upload_stop()
    call.answer()
    response = await client.response()
    assert (response.status, response.headers[b"connection"]) == (200, b"close")
    assert await client.rest() == b""


async def test_a_failure_during_the_upload_is_answered(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(CHUNKED + b"5\r\nhello\r\n")
    call = await front.pool.next_call()
    call.caller.on_failure(Failure(ErrorCode.EXCEPTION, "boom"))
    assert (await client.response()).status == 500
    client.send(b"5\r\nhello\r\n0\r\n\r\n" + GET)
    (await front.pool.next_call(2)).answer(b"next")
    assert (await client.response()).body == b"next"


async def test_both_bodies_may_stream_at_once(front: Front) -> None:
    front.pool.script = None
    front.pool.on_chunk = lambda call, chunk, ended: call.caller.on_body(chunk, ended)
    client = await front.connect()
    client.send(CHUNKED)
    call = await front.pool.next_call()
    call.caller.on_response(200, PLAIN, b"", False)
    await client.head()
    for word in (b"one", b"two"):
        client.send(b"3\r\n" + word + b"\r\n")
        assert await client.read(8) == b"3\r\n" + word + b"\r\n"
    client.send(b"0\r\n\r\n")
    assert await client.read(5) == b"0\r\n\r\n"


async def test_pipelined_bytes_wait_in_the_kernel_while_a_worker_is_slow(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(GET)
    call = await front.pool.next_call()
    flood = asyncio.create_task(flood_with(client.writer, GET * 1000, 500))
    (connection,) = front.server.shared.connections
    await holds(lambda: connection.is_held)
    await asyncio.sleep(0.1)  # long enough for a faulty front to read on
    assert len(connection.buffer) < 1 * MB
    flood.cancel()
    call.answer()
    assert (await client.response()).status == 200


async def test_a_client_that_does_not_read_answers_gets_no_more(front: Front) -> None:
    front.pool.script = lambda call: call.answer(bytes(10_000))
    client = await front.connect(receive_buffer=4096)
    flood = asyncio.create_task(flood_with(client.writer, GET * 100, 1000))
    await holds(lambda: front.server.shared.connections)
    (connection,) = front.server.shared.connections
    await holds(lambda: connection.is_write_paused and connection.is_held)
    await asyncio.sleep(0.1)  # long enough for a faulty front to answer more
    assert connection.transport.get_write_buffer_size() < MB
    answered = len(front.pool.calls)
    flood.cancel()
    for _ in range(answered + 1):
        assert (await client.response()).status == 200


async def holds(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (the condition sends no event)
            await asyncio.sleep(0.01)


async def flood_with(writer: asyncio.StreamWriter, data: bytes, times: int) -> None:
    for _ in range(times):
        writer.write(data)
        await writer.drain()


@pytest.mark.parametrize("head", [post(10), post(MB), CHUNKED])
async def test_a_client_that_disconnects_during_its_upload_cancels_the_call(front: Front, head: bytes) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(head + b"5")
    if head == post(10):
        await asyncio.sleep(0.05)
        assert front.pool.calls == []
        client.abort()
        return
    call = await front.pool.next_call()
    client.abort()
    await call.until(lambda call: call.cancelled)
