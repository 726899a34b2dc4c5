"""A fetch that becomes a WebSocket: fetch.read and fetch.write then carry messages, as frames (wire/sockets.py).

To another server it is a ServerSocket. To a worker of this node it is the bodies of the inner call, which carry the
same frames, so nothing is encoded on the way.
"""

from __future__ import annotations

from atoll.bindings.base import Reply
from atoll.bindings.fetch.fetching import Answerer, Fetching
from atoll.bindings.fetch.lane import Lane
from atoll.bindings.fetch.messages import response_text
from atoll.bindings.scope import ResponseBody
from atoll.bindings.services import InnerCall
from atoll.errors import InvalidArgument, NetworkError
from atoll.wire.sockets import CLOSE_SECONDS, GOING_AWAY, BadMessage, FrameCheck, pack_close


class InnerSocket:
    """A WebSocket to a worker of this node. Frames of both engines are checked: neither is trusted."""

    def __init__(self, call: InnerCall) -> None:
        self._call = call
        self._from_worker = FrameCheck()
        self._to_worker = FrameCheck()

    async def read(self) -> bytes:
        return self._checked(self._from_worker, await self._call.read())

    def read_nowait(self) -> bytes:
        return self._checked(self._from_worker, self._call.read_nowait())

    async def write(self, chunk: bytes, ended: bool) -> bool:
        before = self._to_worker.messages
        checked = self._checked(self._to_worker, chunk)
        self._call.hear(self._to_worker.messages - before)
        return await self._call.write(checked, ended)

    def _checked(self, check: FrameCheck, chunk: bytes) -> bytes:
        try:
            return check.look(chunk)
        except BadMessage as error:
            self._call.close()
            raise NetworkError(f"WebSocket: {error}") from None

    @property
    def at_end(self) -> bool:
        return self._call.at_end

    @property
    def is_held(self) -> bool:
        return self._call.is_held

    def release(self) -> object | None:
        return self._call.release()

    def close(self) -> None:
        """The call that opened it is over: close it for the other worker, as for a server."""
        self._call.leave(pack_close(GOING_AWAY), CLOSE_SECONDS)


def handed_over(lane: Lane, number: object, response: ResponseBody | None) -> Reply:
    """The response of a worker is the WebSocket of its fetch: nothing of the worker is between the two ends then."""
    answerer = lane.find(number).answerer
    socket = answerer.release() if isinstance(answerer, InnerSocket) else None
    lane.drop(number)
    if socket is None or response is None or not response.hand_over(socket):
        raise InvalidArgument("fetch: the WebSocket cannot be passed on: it is closed, or was used already")
    return Reply()


def switched(fetching: Fetching, socket: Answerer, lines: bytes) -> Reply:
    """The response of a request that became a WebSocket."""
    fetching.answerer = socket
    fetching.is_socket = True
    fetching.has_head = True
    head, _ = response_text(lines)
    meta: dict[str, object] = {
        "status": 101,
        "reason": "Switching Protocols",
        "head": head,
        "coding": "",
        "ended": False,
    }
    if isinstance(socket, InnerSocket) and socket.is_held:
        meta["held"] = True  # it needs no worker between it and the client
    return Reply(meta)
