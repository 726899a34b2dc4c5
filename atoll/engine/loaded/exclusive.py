"""Workers whose calls do not share globals: isolation "context" and "isolate".

An isolate of such a worker has one call at a time. With "context" the engine gives it a fresh context after each call,
and the next call may come. With "isolate" it is unloaded after its call; another one is loaded in advance, so that
successive calls do not wait for top-level code. Concurrent calls have one isolate each.
"""

from __future__ import annotations

from atoll.engine.loaded.engine_session import Isolate
from atoll.engine.loaded.loader import Loader
from atoll.engine.loaded.versions import LoadedVersion
from atoll.errors import Failure, LoadFailed
from atoll.wire.generated import ErrorCode
from atoll.workers import Isolation


def exclusive_isolate(loader: Loader, loaded: LoadedVersion, most: int) -> Isolate:
    """An isolate for one call; loads one if none is free. LoadFailed if the worker has too many, or none fits."""
    for isolate in loaded.isolates:
        if not isolate.in_flight and not isolate.draining:
            return isolate
    if len(loaded.isolates) >= most:
        raise LoadFailed(Failure(ErrorCode.OVERLOADED, f"{most} calls are under way in this worker already"))
    loader.load_now(loaded.version)
    return loaded.isolates[-1]


def use_up(loader: Loader, isolate: Isolate) -> None:
    """A call was sent to the isolate. With isolation "isolate", drain it and load the next one in advance."""
    if isolate.version.isolation is not Isolation.ISOLATE:
        return
    isolate.draining = isolate.watched = True
    loaded = loader.versions.get(isolate.version)
    if loaded is None or any(not other.in_flight for other in loaded.isolates):
        return
    try:
        loader.load_now(isolate.version)
    except LoadFailed:
        return  # the next call tries again and gets the failure
