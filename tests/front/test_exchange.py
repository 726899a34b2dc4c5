"""One request and its response, and many of them on one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from scripted import PLAIN, Front, ScriptedCall, echo, version

from atoll.errors import Failure
from atoll.wire.generated import ErrorCode

Start = Callable[..., Awaitable[Front]]

GET = b"GET / HTTP/1.1\r\nHost: w.localhost\r\n\r\n"
HEAD = b"HEAD / HTTP/1.1\r\nHost: w.localhost\r\n\r\n"
GET_10 = b"GET / HTTP/1.0\r\nHost: w.localhost\r\n\r\n"
GET_10_KEPT = b"GET / HTTP/1.0\r\nHost: w.localhost\r\nConnection: keep-alive\r\n\r\n"
GET_CLOSE = b"GET / HTTP/1.1\r\nHost: w.localhost\r\nConnection: close\r\n\r\n"
POST = b"POST /p?q HTTP/1.1\r\nHost: w.localhost\r\nContent-Length: 5\r\n\r\nhello"
POST_CHUNKED = (
    b"POST /p HTTP/1.1\r\nHost: w.localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5;ext=1\r\nhello\r\n6\r\n\r\n\r\nab\r\n0\r\nTrailer: dropped\r\n\r\n"
)
UPGRADE = b"GET /u HTTP/1.1\r\nHost: w.localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
UPGRADE_POST = (
    b"POST /u HTTP/1.1\r\nHost: w.localhost\r\nConnection: Upgrade\r\nUpgrade: foo\r\nContent-Length: 5\r\n\r\nhello"
)


async def test_a_worker_answers_and_the_connection_stays(front: Front) -> None:
    client = await front.connect()
    for _ in range(3):
        client.send(GET)
        response = await client.response()
        assert (response.status, response.body) == (200, b"Hello")
        assert response.headers[b"content-type"] == b"text/plain"
        assert response.headers[b"date"].endswith(b"GMT")
        assert b"connection" not in response.headers


async def test_the_call_carries_the_url_and_the_raw_headers(front: Front) -> None:
    client = await front.connect()
    client.send(b"GET /a/b?c=d HTTP/1.1\r\nhOST:  W.localhost:8080 \r\nX-A: 1\r\nx-a:2\r\n\r\n")
    await client.response()
    (call,) = front.pool.calls
    assert call.version.worker_name == "w"
    head, told, _ = call.head.partition(b"cf-connecting-ip: 127.0.0.1\r\n")
    assert told
    assert head == b"GET http://w.localhost:8080/a/b?c=d\nhOST:  W.localhost:8080 \r\nX-A: 1\r\nx-a:2\r\n"
    assert call.inline == (b"", True)


async def test_a_repeated_head_is_routed_again(front: Front) -> None:
    """The result of parsing a head is cached; its route is looked up each time."""
    client = await front.connect()
    request = b"GET /again HTTP/1.1\r\nHost: w.localhost\r\n\r\n"
    with_body = request.replace(b"\r\n\r\n", b"\r\nContent-Length: 4\r\n\r\nbody")
    older, newer = front.router.find(b"w.localhost", b"/"), replace(version("w"), id="w-2")
    client.send(request + request)
    for _ in range(2):
        assert (await client.response()).status == 200
    front.router.put("w", newer)
    client.send(request + with_body + request)
    for _ in range(3):
        assert (await client.response()).status == 200
    assert [(call.version, call.inline[0]) for call in front.pool.calls] == [
        *((older, b""), (older, b"")),
        *((newer, b""), (newer, b"body"), (newer, b"")),
    ]
    assert len({bytes(call.head) for call in front.pool.calls if not call.inline[0]}) == 1
    front.router.drop("w")
    client.send(request)
    assert (await client.response()).status == 404


async def test_pipelined_requests_are_answered_in_order(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(GET.replace(b"/ ", b"/1 ") + POST + GET.replace(b"/ ", b"/3 "))
    for number, line in enumerate((b"/1", b"/p?q", b"/3"), start=1):
        call = await front.pool.next_call(number)
        assert call.head.split(b"\n")[0].endswith(line)
        assert len(front.pool.calls) == number, "the next request started before this one was answered"
        call.answer(line)
        assert (await client.response()).body == line


async def test_a_thousand_pipelined_requests_answered_at_once_do_not_recurse(front: Front) -> None:
    front.pool.script = ScriptedCall.answer
    client = await front.connect()
    client.send((GET + POST) * 1000)
    for _ in range(2000):
        assert (await client.response()).status == 200


@pytest.mark.parametrize("request_bytes", [POST, POST_CHUNKED])
async def test_a_small_body_travels_inside_the_call(front: Front, request_bytes: bytes) -> None:
    front.pool.script = echo
    client = await front.connect()
    client.send(request_bytes + GET)
    assert (await client.response()).body.endswith(b"|hello\r\n\r\nab" if request_bytes is POST_CHUNKED else b"|hello")
    assert front.pool.calls[0].inline[1] is True
    assert (await client.response()).body == b"GET http://w.localhost/|"


async def test_the_call_waits_for_a_small_body_in_pieces(front: Front) -> None:
    front.pool.script = echo
    client = await front.connect()
    for byte in POST:
        client.send(bytes([byte]))
        await asyncio.sleep(0)
    assert (await client.response()).body == b"POST http://w.localhost/p?q|hello"
    assert front.pool.calls[0].inline == (b"hello", True)


@pytest.mark.parametrize(
    ("request_bytes", "body"),
    [(UPGRADE, b"GET http://w.localhost/u|"), (UPGRADE_POST, b"POST http://w.localhost/u|hello")],
)
async def test_an_unsupported_upgrade_is_ignored_and_ends_the_connection(
    front: Front, request_bytes: bytes, body: bytes
) -> None:
    front.pool.script = echo
    client = await front.connect()
    client.send(request_bytes + GET)
    response = await client.response()
    assert (response.body, response.headers[b"connection"]) == (body, b"close")
    assert b"Upgrade: " in front.pool.calls[0].head
    assert await client.rest() == b""
    assert len(front.pool.calls) == 1


async def test_empty_lines_before_a_request_are_skipped(front: Front) -> None:
    client = await front.connect()
    client.send(b"\r\n\r\n" + GET + b"\r\n" + GET)
    assert (await client.response()).status == 200
    assert (await client.response()).status == 200


async def test_an_absolute_url_as_target(front: Front) -> None:
    front.pool.script = echo
    client = await front.connect()
    client.send(b"GET http://W.localhost/x?y HTTP/1.1\r\nHost: w.localhost\r\n\r\n")
    assert (await client.response()).body == b"GET http://w.localhost/x?y|"
    client.send(b"OPTIONS * HTTP/1.1\r\nHost: w.localhost\r\n\r\n")
    assert (await client.response()).body == b"OPTIONS http://w.localhost/|"


async def test_head_gets_the_length_and_no_body(front: Front) -> None:
    client = await front.connect()
    client.send(HEAD + GET)
    response = await client.response(has_body=False)
    assert response.headers[b"content-length"] == b"5"
    assert (await client.response()).body == b"Hello"


async def test_head_without_a_body_has_the_content_length_of_the_worker_or_none(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    for block, length in ((PLAIN, None), (b"content-length: 1234\r\n" + PLAIN, b"1234")):
        front.pool.calls.clear()
        client.send(HEAD)
        (await front.pool.next_call()).answer(b"", 200, block)
        assert (await client.response(has_body=False)).headers.get(b"content-length") == length
    client.send(GET)
    (await front.pool.next_call(2)).answer(b"")
    assert (await client.response()).headers[b"content-length"] == b"0"


async def test_head_of_a_stream_ends_at_once_and_the_worker_may_finish(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(HEAD)
    call = await front.pool.next_call()
    call.caller.on_response(200, PLAIN, b"", False)
    response = await client.response(has_body=False)
    assert not {b"content-length", b"transfer-encoding"} & set(response.headers)
    client.send(GET)
    second = await front.pool.next_call(2)
    call.caller.on_body(b"x" * 1000, False)
    assert call.granted == 1000
    call.caller.on_body(b"", True)
    second.answer()
    assert (await client.response()).body == b"Hello"


async def test_head_of_an_endless_stream_is_stopped(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(HEAD)
    call = await front.pool.next_call()
    call.caller.on_response(200, PLAIN, b"", False)
    for _ in range(100):
        call.caller.on_body(b"x" * 65536, False)
    assert call.cancelled


@pytest.mark.parametrize("status", [204, 304])
async def test_some_statuses_have_no_body(front: Front, status: int) -> None:
    front.pool.script = lambda call: call.answer(b"dropped", status)
    client = await front.connect()
    client.send(GET)
    response = await client.response()
    assert response.status == status
    assert b"content-length" not in response.headers
    client.send(GET)
    assert (await client.response()).status == status


async def test_http_1_0_connections_close_without_keep_alive(front: Front) -> None:
    answer = await front.exchange(GET_10)
    assert b"\r\nconnection: close\r\n" in answer and answer.endswith(b"\r\n\r\nHello")
    client = await front.connect()
    for _ in range(2):
        client.send(GET_10_KEPT)
        response = await client.response()
        assert response.headers[b"connection"] == b"keep-alive"
        assert response.body == b"Hello"


async def test_a_stream_to_http_1_0_ends_with_the_connection(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(GET_10_KEPT)
    call = await front.pool.next_call()
    call.caller.on_response(200, PLAIN, b"a", False)
    call.caller.on_body(b"b", False)
    call.caller.on_body(b"c", True)
    response = await client.response()
    assert b"transfer-encoding" not in response.headers
    assert response.headers[b"connection"] == b"close"
    assert response.body == b"abc"


async def test_connection_close_is_honoured(front: Front) -> None:
    answer = await front.exchange(GET_CLOSE)
    assert b"\r\nconnection: close\r\n" in answer and answer.endswith(b"\r\n\r\nHello")


async def test_a_stream_is_chunked(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(GET + GET)
    call = await front.pool.next_call()
    call.caller.on_response(201, PLAIN, b"one", False)
    call.caller.on_body(b"two", False)
    call.caller.on_body(b"three", True)
    response = await client.response()
    assert (response.status, response.body) == (201, b"onetwothree")
    (await front.pool.next_call(2)).caller.on_response(200, b"", b"", False)
    front.pool.calls[1].caller.on_body(b"", True)
    assert (await client.response()).body == b""


async def test_a_client_that_disconnects_cancels_its_call(front: Front) -> None:
    front.pool.script = None
    for leave in ("close", "abort"):
        front.pool.calls.clear()
        client = await front.connect()
        client.send(GET)
        call = await front.pool.next_call()
        getattr(client, leave)()
        await call.until(lambda call: call.cancelled)


async def test_a_failure_becomes_a_page(front: Front) -> None:
    front.pool.script = lambda call: call.caller.on_failure(Failure(ErrorCode.CPU, "50 ms of CPU time are used up"))
    client = await front.connect()
    client.send(GET)
    response = await client.response()
    assert response.status == 503
    assert response.headers[b"x-atoll-error"] == b"1102"
    assert response.headers[b"retry-after"] == b"1"
    assert b"50 ms of CPU time" in response.body
    client.send(HEAD)
    assert (await client.response(has_body=False)).status == 503


async def test_a_stream_that_breaks_is_visibly_incomplete(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(GET)
    call = await front.pool.next_call()
    call.caller.on_response(200, PLAIN, b"half", False)
    await client.head()
    assert await client.read(9) == b"4\r\nhalf\r\n"
    call.caller.on_failure(Failure(ErrorCode.STREAM, "broken"))
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await client.read(5)


async def test_an_unknown_host_gets_a_page_that_helps(front: Front) -> None:
    client = await front.connect()
    client.send(b"POST /x HTTP/1.1\r\nHost: nobody.localhost:99\r\nContent-Length: 5\r\n\r\nhello" + GET)
    response = await client.response()
    assert response.status == 404
    assert response.headers[b"x-atoll-error"] == b"1022"
    assert b"nobody.localhost:99" in response.body and b"/api/workers" in response.body
    assert (await client.response()).body == b"Hello"


BAD_BLOCKS = [
    b"content-length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"a: b\r\nCONNECTION: close\r\n", b"keep-alive: 1\r\n",
    b"upgrade: x\r\n", b"trailer: x\r\n", b"a: b\r\n\r\nevil", b"a: b\n", b"a: b", b"a:b\r\n", b" a\nb: c\r\n",
    b"a b: c\r\n", b"a: \x00\r\n", b"a: b\rc\r\n", b": b\r\n", b"a: " + b"b" * 200_000 + b"\r\n",
]  # fmt: skip


@pytest.mark.parametrize("block", BAD_BLOCKS)
async def test_a_hostile_header_block_becomes_a_500(
    front: Front, block: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    front.pool.script = None
    for request in (GET, HEAD):
        front.pool.calls.clear()
        client = await front.connect()
        client.send(request)
        call = await front.pool.next_call()
        call.answer(b"Hello", 200, block)
        response = await client.response(has_body=request is GET)
        assert response.status == 500
        assert call.refused is not None and call.refused.code == ErrorCode.NOT_A_RESPONSE
    assert "refused" in caplog.text


@pytest.mark.parametrize("status", [0, 99, 100, 101, 199, 600, 999, 65535])
async def test_a_status_outside_200_to_599_becomes_a_500(front: Front, status: int) -> None:
    front.pool.script = lambda call: call.answer(b"", status)
    client = await front.connect()
    client.send(GET)
    assert (await client.response()).status == 500


async def test_an_engine_that_answers_twice_changes_nothing(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(GET)
    call = await front.pool.next_call()
    call.answer(b"one")
    call.answer(b"two")
    call.caller.on_body(b"three", True)
    call.caller.on_failure(Failure(ErrorCode.STREAM, "late"))
    assert (await client.response()).body == b"one"
    client.send(GET)
    (await front.pool.next_call(2)).answer(b"next")
    assert (await client.response()).body == b"next"


async def test_a_body_before_its_response_becomes_a_500(front: Front) -> None:
    front.pool.script = lambda call: call.caller.on_body(b"x", False)
    client = await front.connect()
    client.send(GET)
    assert (await client.response()).status == 500


async def test_a_stream_of_known_length_is_not_chunked(front: Front) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(GET + GET)
    call = await front.pool.next_call()
    call.caller.on_response(200, b"content-length: 6\r\n" + PLAIN, b"one", False)
    call.caller.on_body(b"two", False)
    call.caller.on_body(b"", True)
    response = await client.response()
    assert (response.headers[b"content-length"], response.body) == (b"6", b"onetwo")
    assert b"transfer-encoding" not in response.headers
    (await front.pool.next_call(2)).answer(b"next")
    assert (await client.response()).body == b"next"


@pytest.mark.parametrize(("chunks", "arrives"), [((b"longer",), b""), ((b"ab", b"cdef"), b"ab"), ((b"ab",), b"")])
async def test_a_body_that_does_not_match_its_length_is_broken_off(
    front: Front, chunks: tuple[bytes, ...], arrives: bytes
) -> None:
    front.pool.script = None
    client = await front.connect()
    client.send(GET)
    call = await front.pool.next_call()
    call.caller.on_response(200, b"content-length: 5\r\n", b"", False)
    for index, chunk in enumerate(chunks):
        call.caller.on_body(chunk, index == len(chunks) - 1)
    data = await client.rest()
    assert data.partition(b"\r\n\r\n")[2] == arrives


@pytest.mark.parametrize("length", [b"-1", b"1e3", b"9" * 16, b"5, 5", b""])
async def test_a_length_that_is_not_a_number_becomes_a_500(front: Front, length: bytes) -> None:
    block = b"content-length: " + length + b"\r\n"
    front.pool.script = lambda call: call.caller.on_response(200, block, b"", False)
    client = await front.connect()
    client.send(GET)
    assert (await client.response()).status == 500
