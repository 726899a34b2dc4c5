"""Signed requests to the service, repeated with a growing pause if it fails.

The connections are those of the egress client: keep-alive, streams under back-pressure, and a bound for each tenant.
The operator named the server, so no egress rule applies. Requests use path style, which every service understands.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from atoll.bindings.r2.s3.sigv4 import EMPTY, SAFE, SignedRequest, sign
from atoll.bindings.r2.service.settings import ServiceSettings
from atoll.config import Settings
from atoll.egress.client import HttpClient
from atoll.egress.exchange import ServerExchange, pairs_of
from atoll.egress.gate import OpenGate
from atoll.errors import NetworkError, StorageFailed
from atoll.holdings import Holdings
from atoll.pacer import Pacer
from atoll.workers import Version

A = TypeVar("A")

log = logging.getLogger("atoll.bindings")

ATTEMPTS = 4
FIRST_PAUSE = 0.1  # seconds; each further pause is three times as long
PIECE = 256 << 10  # bytes of a payload that are sent at once
MAX_ANSWER = 4 << 20  # bytes of an answer that is not a content
CONNECT_SECONDS = 5.0
SILENT_SECONDS = 60.0  # services may need long to put a large object together
TOLD_AGAIN = 60.0  # seconds after which the same fault is logged again
CODE = re.compile(rb"<Code>\s*([A-Za-z0-9.]{1,80})\s*</Code>")
UNREACHABLE = "the S3 service that holds the contents of R2 cannot be reached: try again later"

Query = Sequence[tuple[str, str]]
ReadPiece = Callable[[int, int], Awaitable[bytes]]  # (offset, length)


class Payload(NamedTuple):
    """The body of a request, which can be read again for another attempt."""

    size: int
    sha256: str
    read: ReadPiece


class ServiceReply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The error code of S3, or the status."""
        found = CODE.search(self.body)
        return found[1].decode() if found else str(self.status)


class ServiceClient:
    def __init__(self, node: Settings, settings: ServiceSettings, pacer: Pacer, holdings: Holdings) -> None:
        self.settings = settings
        own = dataclasses.replace(
            node, connect_timeout=CONNECT_SECONDS, fetch_timeout=SILENT_SECONDS, fetch_bytes=2**53
        )
        self._gate = OpenGate(own)
        self._http = HttpClient(own, self._gate, pacer, holdings)
        self._told: dict[str, float] = {}  # faults that were logged, and when

    def close(self) -> None:
        self._http.close()
        self._gate.close()

    async def call(
        self, tenant: str, method: str, name: str, query: Query = (), payload: Payload | None = None
    ) -> ServiceReply:
        """Send a request and read its answer. The answer of the last attempt, unless that got none: StorageFailed."""

        async def act() -> ServiceReply:
            exchange = await self._send(tenant, method, name, query, payload)
            try:
                return ServiceReply(exchange.status, dict(pairs_of(exchange.lines)), await _read_all(exchange))
            finally:
                exchange.close()

        return await self._repeated(act, lambda reply: reply.status)

    async def stream(self, tenant: str, name: str, first: int, last: int) -> ServerExchange:
        """Begin to read a range of an object, given by its first and last byte. The caller closes the exchange."""

        async def act() -> ServerExchange:
            return await self._send(tenant, "GET", name, (), None, f"bytes={first}-{last}")

        exchange = await self._repeated(act, lambda exchange: exchange.status)
        if exchange.status in (200, 206) and exchange.length == last - first + 1:
            # The status says little: some services answer ranges with 200.
            given = dict(pairs_of(exchange.lines)).get("content-range", "bytes 0-")
            if given.startswith(f"bytes {first}-"):
                return exchange
        try:
            reply = ServiceReply(exchange.status, {}, await _read_all(exchange) if exchange.status >= 400 else b"")
        except NetworkError as error:
            raise self.failure(UNREACHABLE, str(error)) from None
        finally:
            exchange.close()
        raise self.refusal(f"GET {name}", reply)

    def refusal(self, what: str, reply: ServiceReply) -> StorageFailed:
        """An answer that is not the expected one, in words."""
        if reply.status in (401, 403):
            words = (
                "the S3 service that holds the contents of R2 refuses this node: the operator must check its settings"
            )
        elif reply.status == 404:
            words = "the storage of this node is damaged"
        else:
            words = UNREACHABLE
        return self.failure(words, f"{what}: {reply.status} {reply.code}")

    def failure(self, words: str, detail: str) -> StorageFailed:
        now = time.monotonic()
        if now - self._told.get(words, -TOLD_AGAIN) >= TOLD_AGAIN:
            self._told[words] = now
            log.error("R2: %s (%s: %s)", words, self.settings, detail)
        return StorageFailed(words, str(self.settings))

    async def _repeated(self, act: Callable[[], Awaitable[A]], status: Callable[[A], int]) -> A:
        if asyncio.current_task() is None:  # the first step of an op: timeouts need a task
            await asyncio.sleep(0)
        pause = FIRST_PAUSE
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answer = await act()
            except NetworkError as error:
                if attempt == ATTEMPTS:
                    raise self.failure(UNREACHABLE, str(error)) from None
            else:
                if attempt == ATTEMPTS or not (status(answer) >= 500 or status(answer) == 429):
                    return answer
                if isinstance(answer, ServerExchange):
                    answer.close()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause *= 3
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _send(
        self, tenant: str, method: str, name: str, query: Query, payload: Payload | None, span: str = ""
    ) -> ServerExchange:
        """Send a request and wait for the head of its answer."""
        data = self._head(method, name, query, payload, span)
        version = Version("", "", "", tenant, (), "")  # the client counts connections by its tenant
        target = self.settings.origin
        if payload is None:
            return await self._http.answered(version, target, data, method=method)
        exchange = await self._http.request(version, target, data, method=method, is_whole=False, chunked=False)
        try:
            at = 0
            while True:
                piece = await payload.read(at, min(PIECE, payload.size - at)) if payload.size else b""
                at += len(piece)
                if not piece and payload.size:
                    raise StorageFailed("the storage of this node is damaged")
                if not await exchange.write(piece, at == payload.size) or at == payload.size:
                    break  # all is sent, or the service has answered early
            await exchange.head()
        except BaseException:
            exchange.close()
            raise
        return exchange

    def _head(self, method: str, name: str, query: Query, payload: Payload | None, span: str) -> bytes:
        settings = self.settings
        path = settings.path(name)
        headers = {
            "host": settings.host,
            "x-amz-content-sha256": payload.sha256 if payload else EMPTY,
            "x-amz-date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        }
        if settings.key.token:
            headers["x-amz-security-token"] = settings.key.token
        request = SignedRequest(method, path.encode(), [(k.encode(), v.encode()) for k, v in query], headers)
        headers["authorization"] = sign(request, settings.key.id, settings.key.secret, settings.region)
        if payload is not None or method in ("PUT", "POST"):
            headers["content-length"] = str(payload.size if payload else 0)
        if span:
            headers["range"] = span
        asked = "&".join(f"{quote(k, safe=SAFE)}={quote(v, safe=SAFE)}" for k, v in query)
        lines = [f"{method} {path}{'?' if asked else ''}{asked} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _read_all(exchange: ServerExchange) -> bytes:
    pieces, size = [], 0
    while piece := await exchange.read():
        size += len(piece)
        if size > MAX_ANSWER:
            raise NetworkError(f"{exchange.where} sent an answer of more than {MAX_ANSWER:,} bytes")
        pieces.append(piece)
    return b"".join(pieces)
