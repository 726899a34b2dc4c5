"""LOAD frames, kept ready to send, and the report in LOADED."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct, structs

from atoll.engine.calls.isolate_state import ConsoleLines
from atoll.engine.limits import PoolLimits
from atoll.errors import EngineError, Failure, LoadFailed, StorageFailed
from atoll.logs import LogLine
from atoll.manifests.every import plain_value
from atoll.wire.fields import int_field, read_json
from atoll.wire.generated import MAX_PAYLOAD, ErrorCode
from atoll.wire.load import load_payload
from atoll.workers import Grant, Version

log = logging.getLogger("atoll.engine")

FRAME_BYTES = 64 << 20  # LOAD payloads kept ready over all versions
AHEAD_BYTES = 16 << 20  # of these, the payloads of versions that have had no call yet
MAX_HANDLERS = 200
MAX_NAME = 300
CLASS = "class "  # precedes the name of an exported class in the list of handlers

# The V8 code cache of each module in order, b"" for none. Python stores it and never reads it.
CodeCache: TypeAlias = "tuple[bytes, ...]"
LoadCodeCache: TypeAlias = Callable[[Version, str], "CodeCache | None"]
# What the JavaScript half of a binding gets besides its name (Binding.facts).
GrantFacts: TypeAlias = Callable[[Version, Grant], "Mapping[str, Any] | None"]
OWN = Grant("", "")  # its facts are what all workers know without a binding (Binding.own_facts)
SaveCodeCache: TypeAlias = Callable[[Version, str, "CodeCache"], None]


class LoadReport(Struct, frozen=True):
    """What the engine reports of a version that it has loaded."""

    handlers: tuple[str, ...]
    startup_ms: float
    classes: tuple[str, ...] = ()  # that the worker exports
    logs: tuple[LogLine, ...] = ()
    format: str = ""
    cache_rejected: bool = False


def read_loaded(data: bytes, logs: ConsoleLines | None) -> LoadReport:
    fields = read_json(data)
    handlers = fields.get("handlers")
    if (
        not isinstance(handlers, list)
        or len(handlers) > MAX_HANDLERS
        or not all(isinstance(name, str) and len(name) <= MAX_NAME for name in handlers)
    ):
        raise EngineError("LOADED without a list of handlers")
    form = fields.get("format", "")
    if form not in ("", "module", "service-worker"):
        raise EngineError("LOADED with an unknown format")
    return LoadReport(
        tuple(name for name in handlers if not name.startswith(CLASS)),
        int_field(fields, "startup_us") / 1000,
        tuple(name.removeprefix(CLASS) for name in handlers if name.startswith(CLASS)),
        tuple(logs.lines) if logs else (),
        form,
        fields.get("cache_rejected") is True,
    )


def no_facts(version: Version, grant: Grant) -> Mapping[str, Any] | None:
    return None


def load_meta(version: Version, cache: CodeCache, pool: PoolLimits, facts: GrantFacts = no_facts) -> dict[str, object]:
    """The description in a LOAD frame. The engine gets names and kinds of grants; their resources stay in Python."""
    limits = version.limits
    found = {grant.name: plain_value(grant.kind, version) for grant in version.grants.values()}
    values = {name: value for name, value in found.items() if value is not None}
    switches = version.switches
    if not pool.live_clocks:
        switches = structs.replace(switches, allow_live_clock=False)
    grants = [grant for grant in version.grants.values() if grant.name not in values]
    shown = [_shown_grant(grant, facts(version, grant)) for grant in grants]
    own = facts(version, OWN)
    if own is not None:
        shown.append(_shown_grant(OWN, own))
    return {
        "name": version.worker_name,
        "main": version.main,
        "format": version.format.value,
        "modules": [{"path": m.path, "kind": m.kind.value, "size": len(m.source)} for m in version.modules],
        "env": {**version.env, **version.secrets, **values},
        "grants": shown,
        "limits": {
            "cpu_ms": limits.cpu_ms,
            "event_cpu_ms": pool.event_cpu_ms,
            "timer_ms": limits.timer_ms,
            "refuse_long_timers": pool.refuse_long_timers,
        },
        "isolation": version.isolation.value,
        "switches": structs.asdict(switches),
        "compatibility_date": version.compatibility_date,
        "compatibility_flags": list(version.compatibility_flags),
        "cache": [len(blob) for blob in cache] if cache else [0] * len(version.modules),
    }


def _shown_grant(grant: Grant, facts: Mapping[str, Any] | None) -> dict[str, object]:
    shown: dict[str, object] = {"name": grant.name, "kind": grant.kind}
    return shown if facts is None else {**shown, "facts": facts}


def pack_load(version: Version, cache: CodeCache, pool: PoolLimits, facts: GrantFacts = no_facts) -> list[bytes]:
    """The payload of the LOAD for a version, in pieces; LoadFailed if it cannot fit a frame."""
    sources = [module.source for module in version.modules]
    try:
        payload = load_payload(version.tenant, load_meta(version, cache, pool, facts), [*sources, *cache])
        if _size(payload) > MAX_PAYLOAD and cache:
            payload = load_payload(version.tenant, load_meta(version, (), pool, facts), sources)
    except (TypeError, ValueError, RecursionError) as error:
        raise LoadFailed(Failure(ErrorCode.INVALID_ARGUMENT, f"`env` cannot be sent as JSON: {error}")) from None
    if _size(payload) > MAX_PAYLOAD:
        size, most = _size(payload) >> 20, MAX_PAYLOAD >> 20
        raise LoadFailed(
            Failure(ErrorCode.COMPILE, f"the worker has {size} MB with all its modules, at most {most} fit")
        )
    return payload


def _size(payload: list[bytes]) -> int:
    return sum(map(len, payload))


class LoadFrames:
    """LOAD payloads by version, so that a cold start encodes nothing. The least recently used ones are dropped."""

    def __init__(self, load_code_cache: LoadCodeCache | None, limits: PoolLimits) -> None:
        self._load_code_cache = load_code_cache
        self._limits = limits
        self.facts: GrantFacts = no_facts
        self._kept: OrderedDict[tuple[Version, str], tuple[list[bytes], bool]] = OrderedDict()
        self._bytes = 0

    def get(self, version: Version, v8: str, whole: Version | None = None) -> tuple[list[bytes], bool]:
        """The payload, and whether a code cache is in it. `whole` is the version with its code, if it has none."""
        whole = whole or version
        key = (version, v8)
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept
        return self._keep(version, whole, v8, self._cache_of(whole, v8))

    @property
    def has_room(self) -> bool:
        """Whether payloads are made ahead of the first calls."""
        return self._bytes < AHEAD_BYTES

    def prepare(self, version: Version, v8: str, cache: CodeCache | None = None, whole: Version | None = None) -> bool:
        """Make the payload of a version before its first call, with `cache` if given. False when enough are ready."""
        if not self.has_room:
            return False
        whole = whole or version
        if (version, v8) not in self._kept:
            self._keep(version, whole, v8, self._cache_of(whole, v8) if cache is None else cache)
        return True

    def _keep(self, version: Version, whole: Version, v8: str, cache: CodeCache) -> tuple[list[bytes], bool]:
        kept = self._kept[version, v8] = (pack_load(whole, cache, self._limits, self.facts), bool(cache))
        self._bytes += _size(kept[0])
        while self._bytes > FRAME_BYTES and len(self._kept) > 1:
            self._bytes -= _size(self._kept.popitem(last=False)[1][0])
        return kept

    def forget(self, version: Version) -> None:
        for key in [key for key in self._kept if key[0] is version]:
            self._bytes -= _size(self._kept.pop(key)[0])

    def _cache_of(self, version: Version, v8: str) -> CodeCache:
        if self._load_code_cache is None:
            return ()
        try:
            cache = self._load_code_cache(version, v8)
        except StorageFailed as error:  # the load works without it, only slower
            log.warning("the code cache of %s cannot be read: %s", version.id, error)
            return ()
        except Exception:
            log.exception("reading the code cache of %s failed", version.id)
            return ()
        return cache if cache and len(cache) == len(version.modules) and any(cache) else ()
