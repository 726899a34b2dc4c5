"""The endpoints of bindings: what they keep, to look at and to change over HTTP."""

from __future__ import annotations

from collections.abc import Iterable

from atoll.bindings.base import Binding
from atoll.bindings.cache.ops import Cache
from atoll.bindings.kv.ops import KV
from atoll.bindings.ratelimit.ops import RateLimit
from atoll.control.audit import AuditLog
from atoll.control.boundary import Route
from atoll.control.caches_api import CachesApi
from atoll.control.kv_api import KvApi
from atoll.control.ratelimits_api import RateLimitsApi


def binding_routes(bindings: Iterable[Binding], audit: AuditLog) -> list[Route]:
    routes: list[Route] = []
    for binding in bindings:
        if isinstance(binding, KV):
            routes += KvApi(binding.store, audit).routes()
        elif isinstance(binding, Cache):
            routes += CachesApi(binding.cache, audit).routes()
        elif isinstance(binding, RateLimit):
            routes += RateLimitsApi(binding.counters, audit).routes()
    return routes
