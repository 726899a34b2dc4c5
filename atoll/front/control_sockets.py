"""A WebSocket to a control host: a call whose messages come from the ASGI application.

The endpoints of the control API only send. What a client says is dropped, and its credit is given back at once.
"""

from __future__ import annotations

import logging
from typing import Final

from atoll.engine.calls.call import CallListener
from atoll.errors import Failure
from atoll.front.control import AsgiApp, Control, ControlCall, Message, block_of, scope_of
from atoll.wire.generated import WINDOW, ErrorCode
from atoll.wire.sockets import INTERNAL_ERROR, pack_close, pack_message

log = logging.getLogger("atoll.front")

TEXT: Final = 1
SWITCHING: Final = 101
NORMAL: Final = 1000


def socket_scope(scope: Message) -> Message:
    """The scope of a WebSocket for that of the request which asks for it."""
    offered = [value for name, value in scope["headers"] if name == b"sec-websocket-protocol"]
    words = [word.strip().decode("latin-1") for value in offered for word in value.split(b",")]
    rest = {name: value for name, value in scope.items() if name != "method"}
    return rest | {
        "type": "websocket", "scheme": "ws", "subprotocols": words, "extensions": {"websocket.http.response": {}},
    }  # fmt: skip


class SocketControl(Control):
    """Makes calls for WebSockets too."""

    def open(self, head: bytes, caller: CallListener, address: tuple[str, int]) -> ControlCall:
        call = ControlSocket(caller)
        self.add(call, socket_scope(scope_of(head, 1, address)))
        return call


class ControlSocket(ControlCall):
    """Refused with a plain HTTP response, or accepted and open until either side closes it."""

    __slots__ = ("has_begun", "is_accepted")

    def __init__(self, caller: object) -> None:
        super().__init__(caller, b"", False)  # type: ignore[arg-type]
        self.has_begun = False
        self.is_accepted = False

    # The Call side

    def send_body(self, chunk: bytes, ended: bool) -> None:
        if ended:  # the client has closed
            self.cancel()
        else:
            self.caller.on_upload_credit(len(chunk))

    # The application side

    async def run(self, app: AsgiApp, scope: Message) -> None:
        try:
            await app(scope, self.receive, self.send)
        except Exception as error:
            if not self.is_gone:
                log.exception("the control API failed on the WebSocket %s", scope["path"])
                self.fail(error)
        else:
            self.end(NORMAL)

    def fail(self, error: Exception) -> None:
        if self.is_accepted:
            self.end(INTERNAL_ERROR)
        elif not self.is_over:
            self.is_over = True
            self.caller.on_failure(Failure(ErrorCode.INTERNAL, repr(error)))

    def end(self, code: int, reason: str = "") -> None:
        """Close the socket, unless the client has."""
        if self.is_accepted and not self.is_over:
            self.is_over = True
            self.changed.set()
            self.caller.on_body(b"" if self.is_gone else pack_close(code, reason), True)

    async def receive(self) -> Message:
        if not self.has_begun:
            self.has_begun = True
            return {"type": "websocket.connect"}
        while not self.is_gone and not self.is_over:
            await self.wait()
        return {"type": "websocket.disconnect", "code": NORMAL}

    async def send(self, message: Message) -> None:
        if self.is_gone:
            raise OSError("the client is gone")
        kind = message["type"]
        if kind == "websocket.accept":
            chosen = message.get("subprotocol")
            headers = [(b"sec-websocket-protocol", chosen.encode("latin-1"))] if chosen else []
            self.is_accepted = self.is_started = True
            self.caller.on_response(SWITCHING, block_of(headers), b"", False)
        elif kind == "websocket.send":
            data = pack_message(TEXT, message["text"].encode())
            for start in range(0, len(data), WINDOW):
                if self.is_gone:
                    raise OSError("the client is gone")
                await self.send_piece(data[start : start + WINDOW], False)
        elif kind == "websocket.close" and self.is_accepted:
            self.end(message.get("code", NORMAL), message.get("reason") or "")
        elif kind == "websocket.close":  # no endpoint takes this path
            await super().send({"type": "http.response.start", "status": 404})
            await super().send({"type": "http.response.body", "body": b"there is no WebSocket here\n"})
        else:  # the response of a refusal
            await super().send({**message, "type": kind.removeprefix("websocket.")})
