"""How calls between workers reach Durable Objects."""

from __future__ import annotations

from typing import Protocol

from atoll.bindings.services import ObjectTarget
from atoll.engine.calls.call import Call, CallListener
from atoll.engine.calls.isolate_state import IsolateState
from atoll.workers import Version


class ObjectDoor(Protocol):
    """Calls Durable Objects (objects/runtime.py)."""

    def call(
        self,
        target: ObjectTarget,
        version: Version,
        head: bytes,
        body: bytes,
        ended: bool,
        caller: CallListener,
        event: int,
        hops: int,
        near: IsolateState | None = None,
    ) -> Call: ...

    def heard(self, call: Call, caller: CallListener) -> CallListener:
        """The caller of a call that began inside the engine: it hears failures in the words for objects."""
