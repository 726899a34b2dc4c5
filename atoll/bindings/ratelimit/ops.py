"""Rate limits as ops: counts by a key that the worker chooses, and replies whether the limit is exceeded.

All bindings of a tenant with the same namespace and period share their counts, as Cloudflare's do.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.ratelimit.store import PERIODS, Bucket, Counters
from atoll.errors import InvalidArgument

MAX_NAME = 128


class RateLimitEntry(msgspec.Struct, forbid_unknown_fields=True):
    namespace: str
    limit: int
    period: int


class LimitRule(NamedTuple):
    """The parsed resource of a grant."""

    limit: int
    period: int
    namespace: str


class RateLimit(Binding):
    kind = "ratelimit"
    keeps_data = False
    Entry = RateLimitEntry

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self._rules: dict[str, LimitRule] = {}  # by resource

    def claim(self, tenant: str, entry: RateLimitEntry) -> str:
        if not 1 <= len(entry.namespace) <= MAX_NAME:
            raise InvalidArgument(f"the namespace must have 1 to {MAX_NAME} characters")
        if not 1 <= entry.limit <= 1 << 31:
            raise InvalidArgument(f"the limit is {entry.limit}, but must be 1 or more")
        if entry.period not in PERIODS:
            raise InvalidArgument(f"the period is {entry.period}, but must be {' or '.join(map(str, PERIODS))} seconds")
        return f"{entry.limit} {entry.period} {entry.namespace}"

    async def forget(self, tenant: str) -> None:
        await self.counters.reset(tenant)

    @op("ratelimit.limit")
    async def limit(self, call: OpCall) -> Reply:
        """Count a key once; `success` is false if that exceeds the limit."""
        key = call.meta.get("key")
        if not isinstance(key, str):
            raise InvalidArgument("limit() takes an object with a `key` that is a string")
        rule = self._rule(call.grant.resource)
        count = await self.counters.count(Bucket(call.scope.version.tenant, rule.namespace, rule.period), key)
        return Reply({"success": count <= rule.limit})

    def _rule(self, resource: str) -> LimitRule:
        rule = self._rules.get(resource)
        if rule is None:
            limit, period, namespace = resource.split(" ", 2)
            rule = self._rules[resource] = LimitRule(int(limit), int(period), namespace)
        return rule
