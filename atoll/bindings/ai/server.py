"""Requests to the AI server: whole answers, bounded, and streams under back-pressure. Both count tokens.

The connections are those of the egress client. The operator named the server, so no egress rule applies.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable

import msgspec

from atoll.bindings.ai.faults import AiFault, fault_of
from atoll.bindings.ai.settings import AiSettings
from atoll.config import Settings
from atoll.egress.client import HttpClient
from atoll.egress.exchange import ServerExchange
from atoll.egress.gate import OpenGate
from atoll.errors import AtollError, InvalidArgument, NetworkError
from atoll.holdings import Holdings
from atoll.pacer import Pacer
from atoll.workers import Version

log = logging.getLogger("atoll.bindings")

MAX_ANSWER = 16 << 20  # bytes of an answer that is not streamed
MAX_ERROR = 64 << 10
MAX_EVENT = 64 << 10  # bytes of an event of a stream that is searched for usage
TOLD_AGAIN = 60.0  # seconds after which a fault is logged again
BYTES_PER_TOKEN = 4  # if the server does not say how many tokens there were


class TokenUse(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class _Answer(msgspec.Struct):
    usage: TokenUse | None = None


ANSWER = msgspec.json.Decoder(_Answer)
Count = Callable[[int, int], None]  # (prompt tokens, completion tokens), called once for each request


class AiServer:
    def __init__(self, node: Settings, settings: AiSettings, pacer: Pacer, holdings: Holdings) -> None:
        self.settings = settings
        own = dataclasses.replace(node, fetch_timeout=settings.timeout, fetch_bytes=2**53)
        self._gate = OpenGate(own)
        self._http = HttpClient(own, self._gate, pacer, holdings)
        self._told = -TOLD_AGAIN

    def close(self) -> None:
        self._http.close()
        self._gate.close()

    async def whole(self, version: Version, model: str, path: str, body: bytes, count: Count) -> bytes:
        """Send a request; returns the JSON of its answer. AiFault if it is none."""
        exchange = await self._send(version, model, path, body)
        use: TokenUse | None = None
        answer = b""
        try:
            answer = await _read(exchange, MAX_ANSWER)
            use = ANSWER.decode(answer).usage
        except NetworkError as error:
            raise self._failure(error) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._failure("the answer is no JSON") from None
        finally:
            exchange.close()
            count(*_tokens(use, len(body), len(answer) // BYTES_PER_TOKEN))
        return answer

    async def stream(self, version: Version, model: str, path: str, body: bytes, count: Count) -> AiStream:
        """Send a request whose answer is a stream of events. The caller closes it."""
        exchange = await self._send(version, model, path, body)
        return AiStream(exchange, len(body), count, self._failure)

    async def _send(self, version: Version, model: str, path: str, body: bytes) -> ServerExchange:
        settings = self.settings
        lines = [
            f"POST {settings.base}{path} HTTP/1.1",
            f"host: {settings.host}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            "user-agent: Atoll",
        ]
        if settings.key:
            lines.append(f"authorization: Bearer {settings.key}")
        data = ("\r\n".join(lines) + "\r\n\r\n").encode() + body
        try:
            exchange = await self._http.answered(version, settings.origin, data, method="POST")
        except NetworkError as error:
            raise self._failure(error) from None
        if exchange.status == 200:
            return exchange
        try:
            answer = await _read(exchange, MAX_ERROR)
        except NetworkError:
            answer = b""
        finally:
            exchange.close()
        fault = fault_of(model, exchange.status, answer)
        if fault.status == 500:
            self._tell(f"it answered {exchange.status}")
        raise fault

    def _failure(self, error: AtollError | str) -> AiFault:
        self._tell(error)
        return AiFault(3040, "the AI server of this node cannot be reached, please try again.", 429)

    def _tell(self, error: AtollError | str) -> None:
        now = time.monotonic()
        if now - self._told >= TOLD_AGAIN:
            self._told = now
            log.error("the AI server %s fails: %s", self.settings, error)


class AiStream:
    """The events of an answer, as they come. A stream that is closed early is counted by what has come."""

    def __init__(
        self, exchange: ServerExchange, asked: int, count: Count, failure: Callable[[AtollError], AiFault]
    ) -> None:
        self._exchange = exchange
        self._asked = asked
        self._count: Count | None = count
        self._failure = failure
        self._is_reading = False
        self._line = b""  # the begun one
        self._is_skipping = False  # the begun one is too long to be searched
        self._events = 0
        self._use: TokenUse | None = None

    async def read(self) -> bytes:
        """More of it; b"" at its end."""
        if self._is_reading:
            raise InvalidArgument("the stream is being read already")
        self._is_reading = True
        try:
            piece = await self._exchange.read()
        except NetworkError as error:
            self.close()
            raise self._failure(error) from None
        finally:
            self._is_reading = False
        self._search(piece)
        if not piece:
            self.close()
        return piece

    @property
    def at_end(self) -> bool:
        return self._exchange.at_end

    def _search(self, piece: bytes) -> None:
        lines = (self._line + piece).split(b"\n")
        self._line = lines.pop()
        for line in lines:
            if self._is_skipping:
                self._is_skipping = False
            elif line.startswith(b"data:"):
                self._read_event(line)
        if len(self._line) > MAX_EVENT:
            self._line, self._is_skipping = b"", True

    def _read_event(self, line: bytes) -> None:
        self._events += 1
        if b'"usage"' not in line or len(line) > MAX_EVENT:
            return
        try:
            self._use = ANSWER.decode(line[5:]).usage or self._use
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass

    def close(self) -> None:
        self._exchange.close()
        count, self._count = self._count, None
        if count is not None:
            count(*_tokens(self._use, self._asked, self._events))


def _tokens(use: TokenUse | None, asked: int, completed: int) -> tuple[int, int]:
    """Tokens of a request and its answer: those that the server tells, or a guess."""
    if use is None or not (0 < use.prompt_tokens + use.completion_tokens < 2**40 and use.completion_tokens >= 0):
        return asked // BYTES_PER_TOKEN + 1, completed
    return use.prompt_tokens, use.completion_tokens


async def _read(exchange: ServerExchange, most: int) -> bytes:
    pieces, size = [], 0
    while piece := await exchange.read():
        size += len(piece)
        if size > most:
            raise NetworkError(f"{exchange.where} sent an answer of more than {most:,} bytes")
        pieces.append(piece)
        await asyncio.sleep(0)
    return b"".join(pieces)
