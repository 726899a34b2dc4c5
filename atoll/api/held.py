"""Large responses. Until the client has received one it counts against the tenant and the node (SpoolRoom)."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from atoll.api.routes import caller_of
from atoll.api.work import WORK, Work
from atoll.offload.spool import SpoolRoom

PIECE = 256 << 10  # bytes of a response that are sent at once


def room_of(request: Request) -> SpoolRoom:
    work = request.scope[WORK]
    assert isinstance(work, Work)
    return work.room


class HeldResponse(StreamingResponse):
    """A large response, in memory until the client has received it. Then its room is released."""

    def __init__(self, request: Request, content: bytes, headers: dict[str, str], taken: int) -> None:
        super().__init__(_pieces(content), headers=headers)
        self._room, self._tenant, self._size = room_of(request), caller_of(request).tenant, taken

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._room.give_back(self._tenant, self._size)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for first in range(0, len(content), PIECE):
        yield content[first : first + PIECE]
