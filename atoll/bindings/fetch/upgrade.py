"""A fetch that becomes a WebSocket: messages then go by fetch.read and fetch.write, as frames (wire/sockets.py).

To another server it is a ServerSocket, to a worker of this node the bodies of the inner call, which carry the very same
frames: nothing is encoded on the way.
"""

from __future__ import annotations

from atoll.bindings.base import Reply
from atoll.bindings.fetch.fetching import Answerer, Fetching
from atoll.bindings.fetch.messages import response_text
from atoll.bindings.services import InnerCall
from atoll.wire.sockets import CLOSE_SECONDS, GOING_AWAY, pack_close


class InnerSocket:
    """A WebSocket to a worker of this node."""

    def __init__(self, call: InnerCall) -> None:
        self._call = call
        self.read = call.read
        self.read_nowait = call.read_nowait
        self.write = call.write

    @property
    def at_end(self) -> bool:
        return self._call.at_end

    def close(self) -> None:
        """The one who opened it is over: the other worker is told as a server would be."""
        self._call.leave(pack_close(GOING_AWAY), CLOSE_SECONDS)


def switched(fetching: Fetching, socket: Answerer, lines: bytes) -> Reply:
    """The answer to a request that has become a WebSocket."""
    fetching.answerer = socket
    fetching.is_socket = True
    fetching.has_head = True
    head, _ = response_text(lines)
    meta = {"status": 101, "reason": "Switching Protocols", "head": head, "coding": "", "ended": False}
    return Reply(meta)
