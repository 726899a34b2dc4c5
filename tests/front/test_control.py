"""The control API behind the front: an ASGI application on the control hosts, and only there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from scripted import Client, Front
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

Start = Callable[..., Awaitable[Front]]

MB = 1 << 20
seen: dict[str, asyncio.Event] = {}


async def show(request: Request) -> Response:
    assert request.client is not None
    return JSONResponse(
        {
            "method": request.method,
            "url": str(request.url),
            "query": dict(request.query_params),
            "client": request.client.host,
        }
    )


async def count(request: Request) -> Response:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
    return PlainTextResponse(str(size))


async def stream(request: Request) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield bytes(65536)

    return StreamingResponse(pieces(), media_type="application/octet-stream")


async def lumps(request: Request) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        for size in (3 * MB, 0, 1, 2 * MB):
            yield b"x" * size

    return StreamingResponse(pieces(), media_type="application/octet-stream")


async def fail(request: Request) -> Response:
    raise RuntimeError("a secret")


async def wait(request: Request) -> Response:
    seen["begun"].set()
    try:
        async for _ in request.stream():
            pass
    except ClientDisconnect:
        seen["left"].set()
    return PlainTextResponse("late")


async def evil(request: Request) -> Response:
    return PlainTextResponse("x", headers={"x-evil": "a\r\nb: c"})


APP = Starlette(
    routes=[
        Route("/api/show", show, methods=["GET", "POST"]),
        Route("/api/count", count, methods=["POST"]),
        Route("/api/stream", stream),
        Route("/api/lumps", lumps),
        Route("/api/fail", fail),
        Route("/api/wait", wait, methods=["POST"]),
        Route("/api/evil", evil),
    ]
)


@pytest_asyncio.fixture
async def client(start: Start) -> Client:
    return await (await start(control=APP)).connect()


def request(method: bytes, path: bytes, *lines: bytes) -> bytes:
    return b"%b %b HTTP/1.1\r\nHost: localhost:8080\r\n%b\r\n" % (method, path, b"".join(li + b"\r\n" for li in lines))


async def test_a_control_host_reaches_the_application(client: Client) -> None:
    client.send(request(b"GET", b"/api/show?a=b%20c"))
    response = await client.response()
    assert response.status == 200
    assert response.headers[b"content-type"] == b"application/json"
    assert response.body == (
        b'{"method":"GET","url":"http://localhost:8080/api/show?a=b%20c","query":{"a":"b c"},"client":"127.0.0.1"}'
    )


async def test_a_worker_host_never_reaches_the_application(start: Start) -> None:
    front = await start(control=APP)
    client = await front.connect()
    client.send(b"GET /api/show HTTP/1.1\r\nHost: w.localhost\r\n\r\n")
    assert (await client.response()).body == b"Hello"
    client.send(b"GET /api/show HTTP/1.1\r\nHost: x.localhost\r\n\r\n")
    assert (await client.response()).status == 404


async def test_without_an_application_the_control_host_is_unknown(front: Front) -> None:
    client = await front.connect()
    client.send(request(b"GET", b"/api/show"))
    assert (await client.response()).status == 404


async def test_head_and_unknown_paths(client: Client) -> None:
    client.send(request(b"HEAD", b"/api/show"))
    response = await client.response(has_body=False)
    assert int(response.headers[b"content-length"]) > 0
    client.send(request(b"GET", b"/nothing"))
    assert (await client.response()).status == 404


async def test_bodies_of_any_size_are_read(client: Client) -> None:
    for size in (0, 5, 65536, 65537, 10 * MB):
        client.send(request(b"POST", b"/api/count", b"Content-Length: %d" % size) + bytes(size))
        assert (await client.response()).body == str(size).encode()
    client.send(request(b"POST", b"/api/count", b"Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n")
    assert (await client.response()).body == b"5"


async def test_a_streamed_response_arrives_complete(client: Client) -> None:
    client.send(request(b"GET", b"/api/stream"))
    response = await client.response()
    assert response.headers[b"transfer-encoding"] == b"chunked"
    assert response.body == bytes(4 * MB)
    client.send(request(b"GET", b"/api/lumps"))  # each lump is larger than the write buffer
    assert (await client.response()).body == b"x" * (5 * MB + 1)


async def test_a_failure_of_the_application_is_a_500_without_details(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.send(request(b"GET", b"/api/fail"))
    response = await client.response()
    assert response.status == 500
    assert b"secret" not in response.body
    assert "a secret" in caplog.text


async def test_a_header_that_would_split_the_response_is_a_500(client: Client) -> None:
    client.send(request(b"GET", b"/api/evil"))
    response = await client.response()
    assert response.status == 500
    assert b"b: c" not in response.head


async def test_the_application_is_notified_when_its_client_disconnects(client: Client) -> None:
    seen.update(begun=asyncio.Event(), left=asyncio.Event())
    client.send(request(b"POST", b"/api/wait", b"Content-Length: 100000"))
    async with asyncio.timeout(5):
        await seen["begun"].wait()
        client.abort()
        await seen["left"].wait()


async def test_the_body_limit_applies_to_the_control_api(start: Start) -> None:
    front = await start(control=APP, body_bytes=1000)
    answer = await front.exchange(request(b"POST", b"/api/count", b"Content-Length: 1001"))
    assert answer.startswith(b"HTTP/1.1 413 ")
