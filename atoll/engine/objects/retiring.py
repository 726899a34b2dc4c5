"""Another process is about to take over the storage of all objects: each is closed here for good before that."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atoll.engine.objects.runtime import ObjectRuntime

LOOK_SECONDS = 0.005


async def retire(runtime: ObjectRuntime, seconds: float) -> None:
    """Let the calls of objects end, then close every object.

    Calls that do not end in time, and all later ones, fail as retryable. Clients are told to connect again.
    """
    deadline = time.monotonic() + seconds
    # Polled: an event would make every call slower, and this is rare.
    while runtime.is_busy and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_SECONDS)
    await runtime.close()
    runtime.close_all()
