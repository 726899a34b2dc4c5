"""Another process is about to take over the storage of all objects: each is closed here for good before that."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from atoll.engine.objects import failures
from atoll.engine.objects.live_object import OPENING

if TYPE_CHECKING:
    from atoll.engine.objects.runtime import ObjectRuntime

LOOK_SECONDS = 0.005


async def retire(runtime: ObjectRuntime, seconds: float) -> None:
    """Let the calls of objects end, then close every object.

    Calls that do not end in time, and all later ones, fail as retryable. Clients are told to connect again.
    """
    deadline = time.monotonic() + seconds
    # Polled: an event would make every call slower, and this is rare.
    while is_busy(runtime) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_SECONDS)
    runtime.is_retired = True
    await runtime.close()
    for live in list(runtime.live.values()):
        if live.state == OPENING:
            runtime.give_up(live, failures.LOST)
        else:
            runtime.end(live, failures.LOST)
    runtime.hibernation.leave()


def is_busy(runtime: ObjectRuntime) -> bool:
    return any(live.look() or live.is_gated for live in runtime.live.values())
