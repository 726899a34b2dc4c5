"""Rate limits for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.ratelimit.memory import MemoryCounters
    from atoll.bindings.ratelimit.ops import RateLimit

    return RateLimit(MemoryCounters())


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.ratelimit.admin import RateLimitsApi
    from atoll.bindings.ratelimit.ops import RateLimit

    assert isinstance(binding, RateLimit)
    return RateLimitsApi(binding.counters, tools.audit).routes()


MANIFEST = Manifest(
    kind="ratelimit",
    make=make,
    cloudflare="atoll.bindings.ratelimit.cloudflare",
    config="atoll.bindings.ratelimit.config",
    type_name="RateLimit",
    admin=admin,
)
