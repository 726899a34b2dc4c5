"""Counts what workers do by a key of theirs, and says when it was too often.

Windows are aligned to the wall clock, 10 or 60 seconds long, and counted in memory: after a restart every count is 0.
All bindings of a tenant with the same namespace and period share their counts, as Cloudflare's do.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.errors import InvalidArgument

MAX_KEYS = 1_000_000  # of one tenant in one window; further keys are let through uncounted
MAX_NAME = 128


class RateLimitEntry(msgspec.Struct, forbid_unknown_fields=True):
    namespace: str
    limit: int
    period: Literal[10, 60]


class Rule(NamedTuple):
    """What a grant stands for: its resource, taken apart."""

    limit: int
    period: int
    namespace: str


class Window:
    """The counts of one tenant in the window that is open."""

    def __init__(self) -> None:
        self.number = -1
        self.counts: dict[bytes, int] = {}


class RateLimit(Binding):
    kind = "ratelimit"
    Entry = RateLimitEntry

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._windows: dict[tuple[str, int], Window] = {}  # by tenant and period
        self._rules: dict[str, Rule] = {}  # by resource

    def claim(self, tenant: str, entry: RateLimitEntry) -> str:
        if not 1 <= len(entry.namespace) <= MAX_NAME:
            raise InvalidArgument(f"the namespace must have 1 to {MAX_NAME} characters")
        if not 1 <= entry.limit <= 1 << 31:
            raise InvalidArgument(f"the limit is {entry.limit}, and must be 1 or more")
        return f"{entry.limit} {entry.period} {entry.namespace}"

    async def forget(self, tenant: str) -> None:
        for key in [key for key in self._windows if key[0] == tenant]:
            del self._windows[key]

    @op("ratelimit.limit")
    def limit(self, call: OpCall) -> Reply:
        """Count once more under a key; success is false when that was more than the limit."""
        key = call.meta.get("key")
        if not isinstance(key, str):
            raise InvalidArgument("limit() takes an object with a `key` that is a string")
        rule = self._rule(call.grant.resource)
        window = self._window(call.scope.version.tenant, rule.period)
        # A digest has the same length whatever the worker takes for a key
        name = hashlib.blake2b(f"{rule.namespace}\n{key}".encode("utf-8", "replace"), digest_size=16).digest()
        count = window.counts.get(name, 0) + 1
        if count > 1 or len(window.counts) < MAX_KEYS:
            window.counts[name] = count
        return Reply({"success": count <= rule.limit})

    def _rule(self, resource: str) -> Rule:
        rule = self._rules.get(resource)
        if rule is None:
            limit, period, namespace = resource.split(" ", 2)
            rule = self._rules[resource] = Rule(int(limit), int(period), namespace)
        return rule

    def _window(self, tenant: str, period: int) -> Window:
        window = self._windows.get((tenant, period))
        if window is None:
            window = self._windows[tenant, period] = Window()
        number = int(self._clock() // period)
        if window.number != number:  # another one, also when the clock was set back
            window.number, window.counts = number, {}
        return window
