"""The pool and its engines as operators see them: the answer of GET /admin/pool."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from atoll.engine.loaded.engine_session import EngineSession
from atoll.engine.pool import Pool
from atoll.engine.process.memory import available_bytes, resident_bytes
from atoll.engine.process.supervisor import Supervisor
from atoll.engine.stats import WorkerLoad
from atoll.workers import Version

MAX_TENANTS = 20
MOST_BYTES = 1 << 50
MB = 1 << 20


def pool_report(pool: Pool, supervisor: Supervisor) -> dict[str, object]:
    stats, total = pool.stats(), pool.limits.max_loaded
    names = {pid: name for name, pid in supervisor.engine_pids().items()}  # as in metrics
    return {
        "total": total,
        "cached": stats.loaded,
        "capacity": max(total - stats.loaded, 0),
        "hit_rate": round(stats.hit_rate, 4),
        "engines": stats.engines,
        "in_flight": stats.in_flight,
        "queued": stats.queued,
        "calls": stats.calls,
        "refused": stats.refused,
        "loads": stats.loads,
        "load_failures": stats.load_failures,
        "evictions": stats.evictions,
        "spreads": stats.spreads,
        "condemned": stats.condemned,
        "moves": stats.moves,
        "engines_lost": stats.engines_lost,
        "restarts": supervisor.restarts,
        "v8": next((session.v8 for session in supervisor.running), ""),
        "sandbox": {"held": supervisor.layers.held, "missing": supervisor.layers.missing},
        "free_mb": available_bytes() // MB,
        "is_short_of_memory": supervisor.recycler.is_short,
        "processes": [_engine(session, pid, supervisor, names) for session, pid in supervisor.running.items()],
        "leaving": supervisor.draining,
        "quarantine": pool.loader.offences.listed(time.monotonic()),
        "quarantined_tenants": pool.loader.offences.tenants(time.monotonic()),
        "tenants": [
            {"name": tenant.name, "in_flight": tenant.in_flight, "loaded": tenant.loaded}
            for tenant in pool.loader.tenants.busiest(MAX_TENANTS)
        ],
    }


def worker_memory(supervisor: Supervisor) -> Iterator[tuple[Version, int]]:
    """The memory of each isolate after its last garbage collection, as engines reported with their last heartbeat.

    Each engine reports only its largest isolates. The numbers are not verified: for display only.
    """
    for session in supervisor.running:
        told = session.link.pong.get("memory")
        for number, used in told.items() if isinstance(told, dict) else ():
            isolate = session.isolates.get(int(number)) if number.isascii() and number.isdigit() else None
            if isolate is not None and isinstance(used, int) and 0 <= used < MOST_BYTES:
                yield isolate.version, used


def worker_load(pool: Pool) -> Iterator[WorkerLoad]:
    """The calls of each loaded version, and how near it is to having too many."""
    limits, queued = pool.limits, pool.queued()
    for loaded in pool.loader.versions:
        late = sum(each.session.late_calls.counts.get(each, 0) for each in loaded.isolates)
        loading = sum(each.in_flight for each in loaded.isolates if not each.ready)
        waiting = late + loading + queued.pop(loaded.version, 0)
        in_flight = loaded.in_flight
        share = max(in_flight / limits.max_in_flight, waiting / limits.worker_queue)
        yield WorkerLoad(loaded.version, in_flight, waiting, min(share, 1.0))
    for version, count in queued.items():
        yield WorkerLoad(version, 0, count, min(count / limits.worker_queue, 1.0))


def _engine(session: EngineSession, pid: int, supervisor: Supervisor, names: Mapping[int, str]) -> dict[str, object]:
    isolates = session.link.pong.get("isolates", 0)  # not verified: for display only
    return {
        "name": names.get(pid, ""),
        "pid": pid,
        "for": session.group or "all",
        "rss_mb": resident_bytes(pid) // MB,
        "uptime_seconds": round(supervisor.recycler.age(session), 1),
        "workers": len(session.isolates),
        "isolates": isolates if isinstance(isolates, int) else 0,
        "in_flight": len(session.calls.calls),
        "waiting": sum(session.late_calls.counts.values()),
    }
