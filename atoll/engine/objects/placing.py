"""Chooses the isolate that an object opens in. A facet opens where its object is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from atoll.engine.calls.call import Call
from atoll.engine.calls.call_queue import QUEUE_SECONDS
from atoll.engine.loaded.engine_session import Isolate
from atoll.engine.loaded.load_frames import LoadReport
from atoll.engine.loaded.versions import LoadedVersion
from atoll.engine.objects import failures
from atoll.engine.objects.failures import LOST, QUEUED
from atoll.engine.objects.live_object import LiveObject
from atoll.engine.pool import Pool
from atoll.errors import EngineError, Failure, LoadFailed, StorageAway, StorageFailed
from atoll.objects.store import Elsewhere, ObjectStorage, Opened
from atoll.wire.generated import ErrorCode

log = logging.getLogger("atoll.objects")

SWEEP_SECONDS: Final = 0.1  # before another try
NEAR_CALLS: Final = 8  # that an isolate near the caller may have beyond others


async def opened_for(store: ObjectStorage, live: LiveObject) -> Opened | Failure | Elsewhere:
    """The storage of an object, open; or why it cannot be."""
    try:
        return await store.open(live.key)
    except Elsewhere as elsewhere:
        return elsewhere
    except StorageAway as error:
        log.warning("an object of %s cannot be opened: %s", live.version.worker_name, error)
        return failures.AWAY
    except StorageFailed as error:
        log.error("an object of %s cannot be opened: %s", live.version.worker_name, error)
        return failures.UNREADABLE


def near_isolate(pool: Pool, live: LiveObject, loaded: LoadedVersion) -> Isolate | None:
    """The one in the engine of the caller, unless it has much more to do than others."""
    if not isinstance(live.near, Isolate):
        return None
    found = pool.loader.near(loaded, live.near.session)
    if found is None or found.draining:
        return None
    return found if found.in_flight <= 2 * loaded.lightest().in_flight + NEAR_CALLS else None


async def isolate_for(pool: Pool, live: LiveObject, clock: Callable[[], float]) -> Isolate:
    """A ready isolate for an object, loaded if need be. LoadFailed if there is no room or it does not load."""
    loader = pool.loader
    deadline = clock() + QUEUE_SECONDS
    while True:
        version = live.version  # a deploy may have changed it
        loaded = loader.versions.get(version)
        if live.parent is not None and live.parent.is_reachable and live.parent.isolate is not None:
            return live.parent.isolate  # a facet lives with its object
        try:
            if loaded is None:
                await loader.group_of(version).ready(QUEUE_SECONDS)
                loaded = loader.versions.get(version) or loader.load_now(version)
            isolate = near_isolate(pool, live, loaded) or loaded.lightest()
            if not isolate.ready:
                waiter: asyncio.Future[LoadReport] = asyncio.get_running_loop().create_future()
                isolate.waiters.append(waiter)
                await waiter
                continue  # it may have ended since
        except LoadFailed as error:
            retries = error.failure.code in (ErrorCode.OVERLOADED, ErrorCode.UNAVAILABLE, ErrorCode.ENGINE_DIED)
            if not retries or clock() > deadline:
                if error.failure.code == ErrorCode.OVERLOADED:
                    raise LoadFailed(QUEUED) from None
                raise
            await asyncio.sleep(SWEEP_SECONDS)
            continue
        except EngineError:
            raise LoadFailed(LOST) from None
        loader.versions.used(version)
        isolate.last_used = clock()
        return isolate


def refused(pool: Pool, call: Call) -> Call:
    """A call for which no isolate is chosen any more: another process has the objects."""
    pool.refuse(call, LOST)
    return call
