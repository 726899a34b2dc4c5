"""Connections: reused within one tenant, bounded, dropped when they are broken."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
import pytest_asyncio

from atoll.config import Settings
from atoll.egress.client import HttpClient, Origin
from atoll.egress.exchange import ServerExchange
from atoll.egress.gate import EgressGate
from atoll.errors import NetworkError, QuotaExceeded
from atoll.holdings import Holdings
from atoll.pacer import Pacer
from atoll.workers import EgressRules, Version
from tests.eventually import eventually
from tests.upstream import Conversation, Upstream


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


class Way:
    """A client with helpers for tests."""

    def __init__(self, upstream: Upstream, **settings: object) -> None:
        chosen = Settings(egress_allow=("127.0.0.1",), **settings)  # type: ignore[arg-type]
        self.gate = EgressGate(chosen)
        self.client = HttpClient(chosen, self.gate, Pacer(), Holdings())
        self.target = Origin(False, "127.0.0.1", upstream.port)

    async def ask(
        self, path: str = "/", tenant: str = "a", egress: EgressRules | None = None, method: str = "GET"
    ) -> ServerExchange:
        version = Version("v", "w", "worker", tenant, (), "", egress=egress or EgressRules())
        data = f"{method} {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode()
        return await self.client.answered(version, self.target, data, method=method)

    async def get(self, path: str = "/", tenant: str = "a", egress: EgressRules | None = None) -> bytes:
        exchange = await self.ask(path, tenant, egress)
        body = b""
        while chunk := await exchange.read():
            body += chunk
        return body

    def wait_for_their_ends(self) -> None:
        """Waits until the servers have closed all idle connections, with a blocked event loop, as on a busy node."""
        for tenant in self.client._tenants.values():
            for connection in tenant.idle:
                while not connection.is_stale:
                    time.sleep(0.001)

    def close(self) -> None:
        self.client.close()
        self.gate.close()


@pytest_asyncio.fixture
async def way(upstream: Upstream) -> AsyncIterator[Way]:
    way = Way(upstream)
    yield way
    way.close()


async def test_a_connection_is_reused(way: Way, upstream: Upstream) -> None:
    for number in range(5):
        assert await way.get(f"/{number}") == f"GET /{number}".encode()
    assert upstream.connections == 1
    assert (way.client.stats.connects, way.client.stats.reused) == (1, 4)


async def test_a_connection_of_another_tenant_or_other_rules_is_not_reused(way: Way, upstream: Upstream) -> None:
    await way.get(tenant="a")
    await way.get(tenant="b")
    await way.get(tenant="a", egress=EgressRules(deny=("10.0.0.0/8",)))
    assert upstream.connections == 3
    await way.get(tenant="b")
    assert upstream.connections == 3


async def test_a_connection_closed_by_the_server_is_replaced(way: Way, upstream: Upstream) -> None:
    assert await way.get("/once") == b"once"
    assert await way.get("/again") == b"GET /again"
    assert upstream.connections == 2


async def test_a_request_that_may_have_taken_effect_is_not_repeated(way: Way, upstream: Upstream) -> None:
    await way.get("/fine")
    exchange = await way.ask("/fine")
    assert exchange.is_reused
    with pytest.raises(NetworkError):
        await way.ask("/hang-up", method="POST")
    assert len([seen for seen in upstream.seen if "hang-up" in seen.line]) == 1


async def test_an_unrepeatable_request_does_not_use_a_connection_with_an_unread_close(
    way: Way, upstream: Upstream
) -> None:
    exchange = await way.ask("/bye")
    assert await exchange.read() == b"bye"
    way.wait_for_their_ends()
    assert (await way.ask("/fine", method="POST")).status == 200
    assert upstream.connections == 2


async def test_connections_of_a_tenant_are_limited_and_further_requests_wait(upstream: Upstream) -> None:
    way = Way(upstream, tenant_connections=2, connect_timeout=0.3)
    first = await way.ask("/endless")
    second = await way.ask("/endless")
    with pytest.raises(QuotaExceeded, match="2 connections"):
        await way.ask("/third")
    assert await way.get("/other", tenant="b") == b"GET /other"  # another tenant is not affected
    waiting = asyncio.ensure_future(way.get("/third"))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    first.close()
    assert await waiting == b"GET /third"
    second.close()
    way.close()


async def test_a_waiting_request_gets_the_place_of_a_connection_that_becomes_idle(upstream: Upstream) -> None:
    way = Way(upstream, tenant_connections=1, connect_timeout=30)
    other = Upstream()
    first = await way.ask("/wait")
    way.target = Origin(False, "127.0.0.1", other.port)
    waiting = [asyncio.ensure_future(way.get(f"/{number}")) for number in range(3)]

    async def has_waiters(count: int) -> bool:
        return len(way.client._tenants["a"].waiters) == count

    await eventually(lambda: has_waiters(3), "three that wait")
    waiting[1].cancel()
    await eventually(lambda: has_waiters(2), "one of them to go")
    upstream.release.set()
    while await first.read():
        pass
    async with asyncio.timeout(25):
        assert await waiting[0] == b"GET /0"
        assert await waiting[2] == b"GET /2"
    assert [seen.line for seen in other.seen] == ["GET /0 HTTP/1.1", "GET /2 HTTP/1.1"]
    assert way.client._tenants["a"].open == way.client.stats.open == 1
    way.close()
    other.close()


async def test_an_idle_connection_makes_room_for_one_to_another_server(upstream: Upstream) -> None:
    way, other = Way(upstream, tenant_connections=1), Upstream()
    assert await way.get("/a") == b"GET /a"
    way.target = Origin(False, "127.0.0.1", other.port)
    assert await way.get("/b") == b"GET /b"
    way.close()
    other.close()


async def test_a_response_longer_than_the_limit_is_broken_off(upstream: Upstream) -> None:
    way = Way(upstream, fetch_bytes=100_000)
    assert len(await way.get("/bytes/100000")) == 100_000
    for path in ("/bytes/100001", "/endless"):
        with pytest.raises(NetworkError, match="longer than 100000 bytes"):
            await way.get(path)
    way.close()


async def test_no_connection_is_counted_after_all_responses_are_read(way: Way) -> None:
    for path in ("/fine", "/chunked", "/until-close", "/status/204"):
        await way.get(path)
    with pytest.raises(NetworkError):
        await way.get("/short")
    assert not way.client._busy
    assert not way.client._tenants  # the last connection broke, so none is counted


class Pusher(Upstream):
    """`/push` is answered twice: the second answer, which nobody asked for, comes once `release` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.pushed = threading.Event()


def push(conversation: Conversation, path: str, body: bytes) -> None:
    upstream = conversation.upstream
    assert isinstance(upstream, Pusher)
    conversation.respond(b"asked for")
    upstream.release.wait(20)
    conversation.respond(b"smuggled")
    upstream.pushed.set()


@pytest.mark.parametrize("is_read", [True, False], ids=["read by the loop", "unread"])
async def test_an_answer_that_nobody_asked_for_is_not_the_answer_to_the_next_request(
    monkeypatch: pytest.MonkeyPatch, is_read: bool
) -> None:
    monkeypatch.setattr(Conversation, "do_push", push, raising=False)
    upstream = Pusher()
    way = Way(upstream)
    try:
        assert await way.get("/push") == b"asked for"
        upstream.release.set()
        if is_read:
            await eventually(nobody_is_idle(way), "the end of the connection")
        else:
            assert upstream.pushed.wait(20)  # the loop is blocked meanwhile
            way.wait_for_their_ends()
        for number in range(3):
            assert await way.get(f"/{number}") == f"GET /{number}".encode()
        assert upstream.connections == 2
    finally:
        way.close()
        upstream.close()


def nobody_is_idle(way: Way) -> Callable[[], Awaitable[bool]]:
    async def is_so() -> bool:
        return not any(tenant.idle for tenant in way.client._tenants.values())

    return is_so
