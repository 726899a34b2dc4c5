"""Objects that have left their isolate, and may still be called from inside its engine (calls/doors.py).

No copy of such an object opens, and nothing of it is deleted, before its door is shut.
"""

from __future__ import annotations

import asyncio

from atoll.engine.calls.doors import SHUT
from atoll.engine.objects.live_object import LiveObject
from atoll.objects.store import ObjectKey


class Fences:
    def __init__(self) -> None:
        self._up: dict[ObjectKey, asyncio.Future[None]] = {}

    def put(self, live: LiveObject) -> None:
        """The object has left. Its door is being shut, or was never open."""
        if live.door == SHUT:
            return
        key, fence = live.key, asyncio.get_running_loop().create_future()
        self._up[key] = fence

        def lift() -> None:
            if self._up.get(key) is fence:
                del self._up[key]
            if not fence.done():
                fence.set_result(None)

        live.after_shut.append(lift)

    async def passed(self, key: ObjectKey) -> None:
        """Wait until no copy that has left can be called any more."""
        while (fence := self._up.get(key)) is not None:
            await asyncio.wait([fence])
