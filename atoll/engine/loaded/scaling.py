"""When a worker gets another isolate, and when it loses one.

An isolate runs on one thread at a time, so a worker that computes a lot is bound by one core. When calls of a worker
were late (calls/late_calls.py) at LATE_LOOKS looks in a row, it is loaded in one more engine, one without late calls.
It loses an isolate when the CPU time of its calls shows that fewer isolates are enough.
"""

from __future__ import annotations

from collections.abc import Iterable

from atoll.engine.loaded.engine_session import EngineSession, Isolate
from atoll.engine.loaded.versions import LoadedVersion

LATE_LOOKS = 5  # of ten a second
CALM_LOOKS = 5  # of one a second
INNER_SECONDS = 30.0  # after the last call from inside its engine
ENOUGH = 0.6  # the most cores that each remaining isolate may have to use


def engine_for_one_more(loaded: LoadedVersion, most: int) -> EngineSession | None:
    """The engine in which a busy worker should be loaded as well, if any. Called ten times a second."""
    late = all(isolate.session.late_calls.counts.get(isolate) for isolate in loaded.isolates)
    loaded.late_looks = loaded.late_looks + 1 if late else 0
    if loaded.late_looks < LATE_LOOKS or len(loaded.isolates) >= most:
        return None
    taken = {isolate.session for isolate in loaded.isolates}
    for session in loaded.group.open_sessions():
        if session not in taken and not session.late_calls.counts:
            loaded.late_looks = 0
            return session
    return None


def isolate_to_unload(loaded: LoadedVersion, seconds: float, now: float) -> Isolate | None:
    """The isolate that a worker no longer needs, if any. Called once a second; `seconds` have passed since."""
    cpu_us = sum(isolate.cpu_us for isolate in loaded.isolates)
    cores = max(cpu_us - loaded.cpu_us, 0) / 1e6 / seconds
    loaded.cpu_us = cpu_us
    fewer = len(loaded.isolates) - 1
    loaded.calm_looks = loaded.calm_looks + 1 if cores < ENOUGH * fewer and not _any_late(loaded.isolates) else 0
    if loaded.calm_looks < CALM_LOOKS:
        return None
    loaded.calm_looks = 0
    # Those that are called from inside their engine are where they are needed.
    rest = [isolate for isolate in loaded.isolates if isolate.last_inner < now - INNER_SECONDS]
    if not rest:
        return None
    gone = min(rest, key=lambda isolate: (isolate.in_flight, isolate.last_used))
    loaded.cpu_us -= gone.cpu_us
    return gone


def _any_late(isolates: Iterable[Isolate]) -> bool:
    return any(isolate.session.late_calls.counts.get(isolate) for isolate in isolates)
