"""The port of a call that went to another node (engine/objects/far). It is compiled, since CallPort is."""

from __future__ import annotations

from typing import Protocol

from atoll.engine.calls.call import Call, CallPort
from atoll.wire.generated import ErrorCode


class RemoteEnd(Protocol):
    """What sends for a call (engine/objects/far/far_calls.py)."""

    def send_body(self, chunk: bytes, ended: bool) -> None: ...

    def on_cancel(self, call: Call) -> None: ...


class RemotePort(CallPort):
    def __init__(self, end: RemoteEnd) -> None:
        self._end = end  # there is no link to an engine

    def send_body(self, call: Call, chunk: bytes, ended: bool) -> None:
        self._end.send_body(chunk, ended)

    def cancel(self, call: Call, code: ErrorCode) -> None:
        self._end.on_cancel(call)
