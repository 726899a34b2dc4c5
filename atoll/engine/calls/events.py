"""Calls without a client: a cron trigger, a batch of a queue, a method of another worker.

`EventRunner.run` runs one and returns the answer of the handler. The head of such a call is a line for the logs and a
JSON object; the body is bytes. The answer is a RESPONSE with status 200 and JSON or bytes, or with status 500 and the
exception, which becomes the failure in the record and an EventFailed here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from atoll.bindings.events import EventFailed, EventKind
from atoll.engine.calls.call import Call, CallListener
from atoll.engine.calls.call_queue import QUEUE_FULL
from atoll.engine.calls.isolate_state import IsolateState
from atoll.errors import Failure
from atoll.wire.generated import MAX_PAYLOAD, ErrorCode, Event
from atoll.workers import Version

MAX_TEXT = 8_192  # characters of the message or stack of an exception
MAX_OWN = 96 << 10  # characters of its own properties
GIVEN_UP = Failure(ErrorCode.SHUTTING_DOWN, "the node restarts")


class Calls(Protocol):
    """What is used of the pool."""

    def call(
        self,
        version: Version,
        head: bytes,
        body: bytes,
        ended: bool,
        caller: CallListener,
        event: int = 0,
        hops: int = 0,
        near: IsolateState | None = None,
    ) -> Call: ...


class ThrownError(msgspec.Struct):
    """An exception as the engine describes it. Not verified: a worker may have made it up."""

    name: str = ""
    message: str = ""
    stack: str = ""
    said: msgspec.Raw = msgspec.Raw()
    dom: bool = False  # whether it is a DOMException
    own: str | None = None  # its own properties, serialized by the worker

    @property
    def failure(self) -> Failure:
        texts = self.message[:MAX_TEXT], self.name[:MAX_TEXT], self.stack[:MAX_TEXT]
        return Failure(ErrorCode.EXCEPTION, *texts)


def read_thrown(body: bytes) -> ThrownError:
    """Read the description of an exception."""
    try:
        thrown = msgspec.json.decode(body, type=ThrownError)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ThrownError(message="an exception that cannot be read")
    if thrown.own is not None and len(thrown.own) > MAX_OWN:
        thrown.own = None
    return thrown


class EventRunner:
    """Runs events for bindings (bindings/events.py). `calls` is set once the pool is made."""

    def __init__(self, calls: Calls | None = None) -> None:
        self.calls = calls
        self._under_way: set[EventEar] = set()

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    def give_up(self) -> None:
        """End all events: another process takes over what started them, and starts them again where that is due."""
        for ear in list(self._under_way):
            if not ear.is_over and ear.call is not None:
                ear.call.cancel()
            ear.fail(GIVEN_UP)

    async def run(
        self,
        version: Version,
        event: EventKind,
        label: str,
        meta: Mapping[str, Any],
        body: bytes = b"",
        hops: int = 0,
    ) -> bytes:
        assert self.calls is not None, "an event before there are engines"
        ear = EventEar()
        line = f"{event.name} {label}".replace("\n", " ").encode("ascii", "replace")
        head = line + b"\n" + json.dumps(meta).encode("ascii")
        start = Event.BACKGROUND if event.is_background else Event.EVENT
        ear.call = self.calls.call(version, head, body, True, ear, int(start), hops)
        self._under_way.add(ear)
        try:
            return await ear.answer
        except EventFailed as error:
            error.was_refused = ear.call.isolate is None or error.failure is QUEUE_FULL
            raise
        except asyncio.CancelledError:
            if not ear.is_over:
                ear.call.cancel()
            raise
        finally:
            self._under_way.discard(ear)


class EventEar:
    """The caller of an event: collects the answer."""

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
        self.fail(failure)

    def on_upload_credit(self, amount: int) -> None: ...

    def on_upload_stop(self) -> None: ...

    def _take(self, chunk: bytes, ended: bool) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > MAX_PAYLOAD:
            self.fail(Failure(ErrorCode.QUOTA_EXCEEDED, f"the answer is larger than {MAX_PAYLOAD >> 20} MB"))
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
        self.fail(failure, bytes(thrown.said))

    def fail(self, failure: Failure, said: bytes = b"") -> None:
        self.is_over = True
        if not self.answer.done():
            self.answer.set_exception(EventFailed(failure, said))
