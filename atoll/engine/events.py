"""Calls that no client makes: a cron trigger, a batch of a queue, a method of another worker.

`run_event` starts one and gives back what the handler said. The head of such a call is a line for the logs and a JSON
object; the body is bytes. Its answer is a RESPONSE of status 200 with JSON or bytes, or of 500 with what was thrown,
which becomes the failure of the record and an EventFailed here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from atoll.engine.calls import Call, Caller
from atoll.engine.queue import QUEUE_FULL
from atoll.errors import Failure
from atoll.wire.generated import MAX_PAYLOAD, ErrorCode, Event
from atoll.workers import Version

T = TypeVar("T")

MAX_TEXT = 8_192  # of a message or a stack that a worker tells
MAX_OWN = 96 << 10  # of the properties of an exception


class Calls(Protocol):
    """The pool, as far as events need it."""

    def call(
        self, version: Version, head: bytes, body: bytes, ended: bool, caller: Caller, event: int = 0, hops: int = 0
    ) -> Call: ...


class EventFailed(Exception):
    """The handler threw, or the call ended in another way. `failure` says how."""

    def __init__(self, failure: Failure, said: bytes = b"") -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.was_refused = False  # it never began: its handler knows nothing of it
        self._said = said

    def said(self, shape: type[T]) -> T:
        """What the handler had said before it threw: a `shape` without any word if that was nothing."""
        try:
            return msgspec.json.decode(self._said, type=shape) if self._said else shape()
        except (msgspec.DecodeError, UnicodeDecodeError):
            return shape()


class Thrown(msgspec.Struct):
    """What an engine tells of an exception; a worker may have made it up."""

    name: str = ""
    message: str = ""
    stack: str = ""
    said: msgspec.Raw = msgspec.Raw()
    dom: bool = False  # it is a DOMException
    own: str | None = None  # its own properties, as workers write them

    @property
    def failure(self) -> Failure:
        texts = self.message[:MAX_TEXT], self.name[:MAX_TEXT], self.stack[:MAX_TEXT]
        return Failure(ErrorCode.EXCEPTION, *texts)


def read_thrown(body: bytes) -> Thrown:
    """What an engine tells of an exception."""
    try:
        thrown = msgspec.json.decode(body, type=Thrown)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Thrown(message="an exception that cannot be read")
    if thrown.own is not None and len(thrown.own) > MAX_OWN:
        thrown.own = None
    return thrown


async def run_event(
    calls: Calls, version: Version, event: Event, label: str, meta: Mapping[str, Any], body: bytes = b"", hops: int = 0
) -> bytes:
    """Run one event of a worker; returns what its handler said. EventFailed if it did not end well."""
    ear = EventEar()
    head = label.replace("\n", " ").encode("ascii", "replace") + b"\n" + json.dumps(meta).encode("ascii")
    ear.call = calls.call(version, head, body, True, ear, int(event), hops)
    try:
        return await ear.answer
    except EventFailed as error:
        error.was_refused = ear.call.placement is None or error.failure is QUEUE_FULL
        raise
    except asyncio.CancelledError:
        if not ear.is_over:
            ear.call.cancel()
        raise


class EventEar:
    """The caller of an event: gathers the answer."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.call: Call | None = None
        self.is_over = False
        self._status = 0
        self._chunks: list[bytes] = []
        self._size = 0

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        self._status = status
        self._take(body, ended)

    def on_body(self, chunk: bytes, ended: bool) -> None:
        self._take(chunk, ended)
        if not ended and self.call is not None:
            self.call.grant(len(chunk))

    def on_failure(self, failure: Failure) -> None:
        self._fail(failure)

    def on_upload_credit(self, amount: int) -> None: ...

    def on_upload_stop(self) -> None: ...

    def _take(self, chunk: bytes, ended: bool) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > MAX_PAYLOAD:
            self._fail(Failure(ErrorCode.QUOTA_EXCEEDED, f"the answer is larger than {MAX_PAYLOAD >> 20} MB"))
            if self.call is not None:
                self.call.cancel()
        elif ended:
            self._finish(b"".join(self._chunks))

    def _finish(self, body: bytes) -> None:
        if self._status == 200:
            self.is_over = True
            if not self.answer.done():
                self.answer.set_result(body)
            return
        thrown = read_thrown(body)
        failure = thrown.failure
        if self.call is not None and self.call.failure is None:
            self.call.failure = failure  # before DONE, so that the record of the call has it
        self._fail(failure, bytes(thrown.said))

    def _fail(self, failure: Failure, said: bytes = b"") -> None:
        self.is_over = True
        if not self.answer.done():
            self.answer.set_exception(EventFailed(failure, said))
