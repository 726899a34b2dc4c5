"""Versions as engines hold them: where one is loaded, the LOAD that takes it there, and what LOADED says of it."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, structs

from atoll.bindings.version_metadata import values_of
from atoll.engine.tenants import Tenant
from atoll.errors import EngineError, Failure, LoadFailed, StorageFailed
from atoll.logs import LogLine
from atoll.wire.codec import load_payload
from atoll.wire.fields import int_field, read_json
from atoll.wire.generated import MAX_PAYLOAD, ErrorCode, Level
from atoll.workers import Version

if TYPE_CHECKING:
    from atoll.engine.session import Session

log = logging.getLogger("atoll.engine")

LOG_BYTES = 128 << 10  # console text kept per call, and of top-level code between two calls
LINE_COST = 32  # what a line counts beside its text, so that empty lines are bounded too
FRAME_BYTES = 64 << 20  # LOAD payloads kept ready over all versions
AHEAD_BYTES = 16 << 20  # of them, those of versions that nobody has asked for yet
MAX_HANDLERS = 64

# The V8 code cache of each module in order, b"" for none. Python keeps it, never looks into it.
CodeCache: TypeAlias = "tuple[bytes, ...]"
LoadCodeCache: TypeAlias = Callable[[Version, str], "CodeCache | None"]
SaveCodeCache: TypeAlias = Callable[[Version, str, "CodeCache"], None]


class Lines:
    """Console lines within a bound; what comes after is dropped and `truncated` says so."""

    __slots__ = ("lines", "room", "truncated")

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.room = LOG_BYTES
        self.truncated = False

    def add(self, level: Level, timestamp_ms: float, text: str) -> None:
        self.room -= len(text) + LINE_COST
        if self.room < 0:
            self.truncated = True
        else:
            self.lines.append(LogLine(timestamp_ms, level, text))


class LoadReport(Struct, frozen=True):
    """What the engine found in a version that it could load."""

    handlers: tuple[str, ...]
    startup_ms: float
    logs: tuple[LogLine, ...] = ()
    format: str = ""
    cache_rejected: bool = False


class Placement:
    """One version in one engine, under a load id that is never used again on that link."""

    __slots__ = (
        "asked_code",
        "cpu_us",
        "failed",
        "in_flight",
        "last_used",
        "load_id",
        "logs",
        "open_cpu_us",
        "placed_at",
        "ready",
        "report",
        "retired",
        "room",
        "session",
        "sockets",
        "tenant",
        "unload_by",
        "unloading",
        "version",
        "waiters",
        "wall_seconds",
        "wants_code",
        "watched",
    )

    def __init__(self, version: Version, tenant: Tenant, session: Session, load_id: int, now: float) -> None:
        self.version = version
        self.tenant = tenant
        self.session = session
        self.load_id = load_id
        self.wall_seconds = version.limits.wall_ms / 1000

        # From LOAD to LOADED
        self.placed_at = now
        self.ready = False
        self.failed = False  # LOADED said so, or it took too long; UNLOADED is still to come
        self.waiters: list[asyncio.Future[LoadReport]] = []
        self.report: LoadReport | None = None

        # While it serves
        self.in_flight = 0
        self.sockets = 0  # calls that became WebSockets: they take no room, but keep the isolate
        self.room = 0  # calls that may be under way in it: none before it is ready, or while too many wait for it
        self.cpu_us = 0  # CPU time of the calls that are over
        self.open_cpu_us = 0  # and of those that are not, as far as its tenant has been charged for it
        self.last_used = now
        self.logs: Lines | None = None  # of top-level code, until the next record takes them along
        self.wants_code = False  # ask for the code cache after the next response
        self.asked_code = 0  # CODE frames under way
        self.retired = False  # unload it when its last call is over
        self.watched = False  # retired or wants_code: the pool must be told when a call is over

        # After UNLOAD
        self.unloading = False
        self.unload_by = float("inf")  # when UNLOADED must have come

    @property
    def is_idle(self) -> bool:
        return not self.in_flight and not self.sockets

    def charge_open(self, cpu_us: int) -> None:
        """So much is used by calls that are still open: a WebSocket may live for days, its tenant pays by the minute.

        When they are over they are charged as all calls are, and no more as open ones.
        """
        self.tenant.cpu_us += cpu_us - self.open_cpu_us
        self.open_cpu_us = cpu_us

    def add_log(self, level: Level, timestamp_ms: float, text: str) -> None:
        if self.logs is None:
            self.logs = Lines()
        self.logs.add(level, timestamp_ms, text)

    def settle(self, outcome: LoadReport | Failure) -> None:
        """Tell whoever waits for the load."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if waiter.done():
                continue
            if isinstance(outcome, Failure):
                waiter.set_exception(LoadFailed(outcome))
            else:
                waiter.set_result(outcome)


def read_loaded(data: bytes, logs: Lines | None) -> LoadReport:
    fields = read_json(data)
    handlers = fields.get("handlers")
    if (
        not isinstance(handlers, list)
        or len(handlers) > MAX_HANDLERS
        or not all(isinstance(name, str) and len(name) <= 64 for name in handlers)
    ):
        raise EngineError("LOADED without a list of handlers")
    form = fields.get("format", "")
    if form not in ("", "module", "service-worker"):
        raise EngineError("LOADED with an unknown format")
    return LoadReport(
        tuple(handlers),
        int_field(fields, "startup_us") / 1000,
        tuple(logs.lines) if logs else (),
        form,
        fields.get("cache_rejected") is True,
    )


def load_meta(version: Version, cache: CodeCache, event_cpu_ms: int) -> dict[str, object]:
    """The description in a LOAD frame. Resources behind grants stay in Python: the engine learns names and kinds."""
    limits, values = version.limits, values_of(version)
    grants = [grant for grant in version.grants.values() if grant.name not in values]
    return {
        "name": version.worker_name,
        "tenant": version.tenant,
        "main": version.main,
        "format": version.format.value,
        "modules": [{"path": m.path, "kind": m.kind.value, "size": len(m.source)} for m in version.modules],
        "env": {**version.env, **version.secrets, **values},
        "grants": [{"name": grant.name, "kind": grant.kind} for grant in grants],
        "limits": {"cpu_ms": limits.cpu_ms, "event_cpu_ms": event_cpu_ms, "timer_ms": limits.timer_ms},
        "isolation": version.isolation.value,
        "switches": structs.asdict(version.switches),
        "compatibility_date": version.compatibility_date,
        "compatibility_flags": list(version.compatibility_flags),
        "cache": [len(blob) for blob in cache] if cache else [0] * len(version.modules),
    }


def pack_load(version: Version, cache: CodeCache, event_cpu_ms: int) -> bytes:
    """The payload of the LOAD for a version; LoadFailed if it cannot fit a frame."""
    sources = [module.source for module in version.modules]
    try:
        payload = load_payload(load_meta(version, cache, event_cpu_ms), [*sources, *cache])
        if len(payload) > MAX_PAYLOAD and cache:
            payload = load_payload(load_meta(version, (), event_cpu_ms), sources)
    except (TypeError, ValueError, RecursionError) as error:
        raise LoadFailed(Failure(ErrorCode.INVALID_ARGUMENT, f"`env` cannot be sent as JSON: {error}")) from None
    if len(payload) > MAX_PAYLOAD:
        size, most = len(payload) >> 20, MAX_PAYLOAD >> 20
        raise LoadFailed(
            Failure(ErrorCode.COMPILE, f"the worker has {size} MB with all its modules, at most {most} fit")
        )
    return payload


class LoadFrames:
    """LOAD payloads by version, ready to send: a cold start encodes nothing. The least recently used ones go."""

    def __init__(self, load_code_cache: LoadCodeCache | None, event_cpu_ms: int) -> None:
        self._load_code_cache = load_code_cache
        self._event_cpu_ms = event_cpu_ms
        self._kept: OrderedDict[tuple[Version, str], tuple[bytes, bool]] = OrderedDict()
        self._bytes = 0

    def get(self, version: Version, v8: str) -> tuple[bytes, bool]:
        """The payload, and whether a code cache is in it."""
        key = (version, v8)
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept
        return self._keep(version, v8, self._cache_of(version, v8))

    def prepare(self, version: Version, v8: str, cache: CodeCache | None = None) -> bool:
        """Pack one that nobody has asked for, with the cache if it is at hand. False when enough are ready."""
        if self._bytes >= AHEAD_BYTES:
            return False
        if (version, v8) not in self._kept:
            self._keep(version, v8, self._cache_of(version, v8) if cache is None else cache)
        return True

    def _keep(self, version: Version, v8: str, cache: CodeCache) -> tuple[bytes, bool]:
        kept = self._kept[version, v8] = (pack_load(version, cache, self._event_cpu_ms), bool(cache))
        self._bytes += len(kept[0])
        while self._bytes > FRAME_BYTES and len(self._kept) > 1:
            self._bytes -= len(self._kept.popitem(last=False)[1][0])
        return kept

    def forget(self, version: Version) -> None:
        for key in [key for key in self._kept if key[0] is version]:
            self._bytes -= len(self._kept.pop(key)[0])

    def _cache_of(self, version: Version, v8: str) -> CodeCache:
        if self._load_code_cache is None:
            return ()
        try:
            cache = self._load_code_cache(version, v8)
        except StorageFailed as error:  # it is slower without, and works
            log.warning("the code cache of %s cannot be read: %s", version.id, error)
            return ()
        except Exception:
            log.exception("reading the code cache of %s failed", version.id)
            return ()
        return cache if cache and len(cache) == len(version.modules) and any(cache) else ()
