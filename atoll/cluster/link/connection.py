"""One connection between two nodes: the greeting, then sealed frames, as long as both hear each other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, cast

from atoll.clock import seconds_up
from atoll.cluster.link.greeting import (
    LENGTH,
    MAX_HEAD,
    TAG,
    GreetingFailed,
    LinkSeals,
    answer,
    ask,
    read_answer,
    read_question,
    refuse,
)

log = logging.getLogger("atoll.cluster")

MAX_FRAME: Final = 8 << 20
PING_SECONDS: Final = 1.0
SILENT_SECONDS: Final = 5.0  # less than a lease: who does not answer is not waited for
GREETING_SECONDS: Final = 3.0
PING: Final = b""


class LinkConnection(asyncio.Protocol):
    """`to`: the session of the node that is called; "" if that node has called this one. `on_open` and `on_over` are
    called once each, the first one maybe never."""

    def __init__(self, key: bytes, me: str, to: str, on_over: Callable[[LinkConnection], None]) -> None:
        self._key = key
        self._me = me
        self.to = to
        self._is_asker = bool(to)
        self._nonce = ""
        self._seals: LinkSeals | None = None
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._on_over = on_over
        self.on_open: Callable[[], None] = lambda: None
        self.on_frame: Callable[[bytes], None] = lambda frame: None
        self._loop = asyncio.get_running_loop()
        self._heard = seconds_up()
        self._timer: asyncio.TimerHandle | None = None
        self.is_over = False

    @property
    def is_open(self) -> bool:
        return self._seals is not None and not self.is_over

    def send(self, frame: bytes) -> None:
        if self._seals is not None and self._transport is not None and not self.is_over:
            self._transport.write(self._seals.out.close(frame))

    def end(self, why: str = "") -> None:
        if self.is_over:
            return
        self.is_over = True
        if why:
            log.warning("the link to the node %s ends: %s", self.to or "that called", why)
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort() if self._seals is not None else self._transport.close()
        self._on_over(self)

    # --- asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is not one by type
        self._timer = self._loop.call_later(GREETING_SECONDS, self.end, "no greeting came")
        if self._is_asker:
            question, self._nonce = ask(self._key, self._me, self.to)
            transport.write(question)

    def connection_lost(self, error: Exception | None) -> None:
        self.end()

    def data_received(self, data: bytes) -> None:
        self._heard = seconds_up()
        self._buffer += data
        try:
            if self._seals is None:
                self._greet()
            if self._seals is not None:
                self._read_frames(self._seals)
        except GreetingFailed as error:
            if self._transport is not None and self._seals is None and not self._is_asker:
                self._transport.write(refuse(error))
            self.end(str(error))

    def _greet(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise GreetingFailed("this is the link between nodes", 400)
            return
        head = bytes(self._buffer[: end + 2])
        del self._buffer[: end + 4]
        if self._is_asker:
            self._seals = read_answer(self._key, self.to, self._nonce, head)
        else:
            question = read_question(self._key, self._me, head)
            self.to = question.sender
            words, seals = answer(self._key, self._me, question)
            assert self._transport is not None
            self._transport.write(words)
            self._seals = seals
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(PING_SECONDS, self._ping)
        self.on_open()

    def _read_frames(self, seals: LinkSeals) -> None:
        at, buffer = 0, self._buffer
        while len(buffer) - at >= LENGTH.size and not self.is_over:
            (length,) = LENGTH.unpack_from(buffer, at)
            if not TAG <= length <= MAX_FRAME:
                raise GreetingFailed(f"a frame has {length} bytes")
            end = at + LENGTH.size + length
            if len(buffer) < end:
                break
            frame = seals.into.open(bytes(buffer[at + LENGTH.size : end]))
            at = end
            if frame:
                self.on_frame(frame)
        del buffer[:at]

    def _ping(self) -> None:
        if seconds_up() - self._heard > SILENT_SECONDS:
            self.end("the other node does not answer")
            return
        self.send(PING)
        self._timer = self._loop.call_later(PING_SECONDS, self._ping)
