"""A request body that is the response body too, and goes from the client back to the client past the engine.

A worker that answers with the body of its request and never looked at it has nothing to do with its bytes. When the
engine says so (ECHO), it is told that the request body ends where it is; it sends back what it has got of it, ends the
response, and is done with the call. What comes from the client after that is handed to the client here.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

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

    def open(self) -> None:
        """The engine's part has gone out, and it takes and sends nothing more."""
        call = self._call
        self._before = WINDOW - call.allowed - call.ungranted
        self.is_open = True
        uncredited, call.uncredited = call.uncredited, 0
        if uncredited:
            call.caller.on_upload_credit(uncredited)
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
        while self._waiting:
            self._call.caller.on_body(*self._waiting.popleft())
        self._is_handing = False
