"""A request body that is the response body too, and goes from the client back to the client past the engine.

A worker that answers with the body of its request and never looked at it has nothing to do with its bytes. When the
engine says so (ECHO), it gets no more of them; it sends back what it has, and gives credit for that after it. With the
last of this credit its part is over, and what comes from the client is handed to the client here. The call goes on: the
end of the body is told to the engine, which then ends the response.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from atoll.wire.codec import encode_body
from atoll.wire.generated import WINDOW

if TYPE_CHECKING:
    from atoll.engine.calls import Call


class Echo:
    __slots__ = ("_before", "_call", "_is_handing", "_waiting", "is_open")

    def __init__(self, call: Call) -> None:
        self._call = call
        self.is_open = False  # the engine has sent back its part
        self._before = 0  # bytes of that part which the client has not taken
        self._is_handing = False
        # What came before it was open: no more than the window, since no credit was given for it.
        self._waiting: deque[tuple[bytes, bool]] = deque()

    def on_engine_credit(self) -> None:
        """See whether the engine has sent back all that it got."""
        call = self._call
        if self.is_open or call.uncredited:
            return
        self._before = WINDOW - call.allowed - call.ungranted
        self.is_open = True
        self._hand()

    def take(self, chunk: bytes, ended: bool) -> None:
        """More of the body from the client."""
        self._waiting.append((chunk, ended))
        if self.is_open:
            self._hand()

    def grant(self, amount: int) -> None:
        """The client took some of it: there is room for as much."""
        before = min(amount, self._before)
        self._before -= before
        if amount > before:
            self._call.caller.on_upload_credit(amount - before)

    def _hand(self) -> None:
        """Handing on a piece may bring credit, and that the next piece, before it returns: never two at a time."""
        if self._is_handing:
            return
        self._is_handing = True
        call = self._call
        while self._waiting:
            chunk, ended = self._waiting.popleft()
            if chunk:
                call.caller.on_body(chunk, False)
            if ended and call.table is not None:
                call.table.link.send(encode_body(call.worker, call.id, b"", True))
        self._is_handing = False
