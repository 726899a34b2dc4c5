"""The pool and its engines as an operator looks at them: what GET /admin/pool answers."""

from __future__ import annotations

import time
from collections.abc import Iterator

from atoll.engine.memory import available_bytes, resident_bytes
from atoll.engine.pool import Pool
from atoll.engine.session import Session
from atoll.engine.supervisor import Supervisor
from atoll.workers import Version

MAX_TENANTS = 20
MOST_BYTES = 1 << 50
MB = 1 << 20


def pool_report(pool: Pool, supervisor: Supervisor) -> dict[str, object]:
    stats, total = pool.stats(), pool.limits.max_loaded
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
        "is_short_of_memory": supervisor.upkeep.is_short,
        "processes": [_engine(session, pid, supervisor) for session, pid in supervisor.running.items()],
        "leaving": supervisor.leaving,
        "quarantine": pool.offences.listed(time.monotonic()),
        "quarantined_tenants": pool.offences.tenants(time.monotonic()),
        "tenants": [
            {"name": tenant.name, "in_flight": tenant.in_flight, "loaded": tenant.loaded}
            for tenant in pool.tenants.busiest(MAX_TENANTS)
        ],
    }


def worker_memory(supervisor: Supervisor) -> Iterator[tuple[Version, int]]:
    """What each isolate used when its garbage was last collected, as engines told with their last heartbeat.

    Of each engine only the largest are told. It is the engine's own word: shown if it can be, trusted never.
    """
    for session in supervisor.running:
        told = session.link.pong.get("memory")
        for number, used in told.items() if isinstance(told, dict) else ():
            placement = session.loads.get(int(number)) if number.isascii() and number.isdigit() else None
            if placement is not None and isinstance(used, int) and 0 <= used < MOST_BYTES:
                yield placement.version, used


def _engine(session: Session, pid: int, supervisor: Supervisor) -> dict[str, object]:
    isolates = session.link.pong.get("isolates", 0)  # its own word: shown if it is a number, trusted never
    return {
        "pid": pid,
        "for": session.cell.name or "all",
        "rss_mb": resident_bytes(pid) // MB,
        "uptime_seconds": round(supervisor.upkeep.age(session), 1),
        "workers": len(session.loads),
        "isolates": isolates if isinstance(isolates, int) else 0,
        "in_flight": len(session.calls.calls),
        "waiting": sum(session.waiting.late.values()),
    }
