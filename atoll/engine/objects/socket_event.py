"""One event of a hibernatable WebSocket, as the caller of its object: a message, a close or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from atoll.engine.calls.call import Call
from atoll.engine.calls.events import read_thrown
from atoll.engine.objects.held_socket import ERROR, Heard, HeldSocket
from atoll.errors import Failure
from atoll.wire.outgoing import CLOSE_KIND

MAX_TOLD: Final = 1 << 20  # bytes of the description of an exception
LABELS: Final = {CLOSE_KIND: "CLOSE", ERROR: "ERROR"}


class SocketEvent:
    """`on_over` is called once, when the handler is done or the event failed."""

    def __init__(self, socket: HeldSocket, heard: Heard, on_over: Callable[[SocketEvent], None]) -> None:
        self.socket = socket
        self.heard = heard
        self._on_over = on_over
        self.call: Call | None = None
        self.was_refused = False  # the object cannot be reached
        self.reason = ""
        self._status = 0
        self._told = b""

    def head(self, class_name: str) -> bytes:
        """For the call: without the address of the object."""
        heard = self.heard
        about: dict[str, int | str | bool] = {"socket": self.socket.number, "what": heard.what}
        if heard.what >= CLOSE_KIND:
            about |= {"code": heard.code, "reason": heard.reason, "clean": heard.is_clean}
        label = LABELS.get(heard.what, "MESSAGE")
        return f"objectsocket {label} {class_name}\n".encode() + msgspec.json.encode(about)

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        self._status = status
        self.on_body(body, ended)

    def on_body(self, chunk: bytes, ended: bool) -> None:
        if len(self._told) < MAX_TOLD:
            self._told += chunk
        if not ended:
            if self.call is not None:
                self.call.grant(len(chunk))
            return
        if self._status != 200 and self.call is not None and self.call.failure is None:
            self.call.failure = read_thrown(self._told).failure  # before DONE, so that the record of the call has it
        self._on_over(self)

    def on_failure(self, failure: Failure) -> None:
        self.was_refused = self.call is None or self.call.isolate is None
        self.reason = failure.message
        self._on_over(self)

    def on_upload_credit(self, amount: int) -> None: ...

    def on_upload_stop(self) -> None: ...
