"""What a tenant may have deployed. What it may use per second is asked where calls begin, in the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from atoll.bindings.base import Binding
from atoll.config import Settings
from atoll.control.refusals import ApiCode, Refused
from atoll.control.tenants import Quotas, Tenant, Tenants
from atoll.control.version_rows import Deployment
from atoll.engine.measures import TenantCaps
from atoll.workers import Limits


def script_bytes(deployment: Deployment) -> int:
    return sum(len(module.source) for module in deployment.version.modules)


def settings_of(settings: Settings, quotas: Quotas) -> Settings:
    """The node's settings as they are for a tenant whose workers may be allowed less than others."""
    lower: dict[str, int] = {}
    for name in ("cpu_ms", "wall_ms", "memory_mb", "subrequests", "internal_subrequests"):
        most: int | None = getattr(quotas, f"max_{name}")
        if most is not None:
            lower |= {each: min(most, getattr(settings, each)) for each in (name, f"max_{name}")}
    return replace(settings, **lower) if lower else settings  # type: ignore[arg-type]  # all of these are numbers


def capped(limits: Limits, top: Settings) -> Limits:
    """The limits of a worker, none above the most that the settings let one ask for."""
    return Limits(
        cpu_ms=min(limits.cpu_ms, top.max_cpu_ms),
        wall_ms=min(limits.wall_ms, top.max_wall_ms),
        memory_mb=min(limits.memory_mb, top.max_memory_mb),
        subrequests=min(limits.subrequests, top.max_subrequests),
        internal_subrequests=min(limits.internal_subrequests, top.max_internal_subrequests),
        timer_ms=min(limits.timer_ms, top.max_timer_ms),
    )


def caps_of(quotas: Quotas, usual: TenantCaps) -> TenantCaps:
    """The quotas that the pool enforces, with the node's own caps for those that are not set."""
    return TenantCaps(
        calls=usual.calls if quotas.concurrent_calls is None else quotas.concurrent_calls,
        loaded=usual.loaded if quotas.loaded_workers is None else quotas.loaded_workers,
        own_engine=bool(quotas.own_engine),
        calls_per_second=quotas.requests_per_second,
        cpu_seconds_per_minute=quotas.cpu_seconds_per_minute,
    )


def bound_stores(bindings: Sequence[Binding], settings: Settings, tenant: Tenant) -> None:
    """Tell whoever keeps something of a tenant how much that may be."""
    quotas = tenant.quotas
    most = {
        "kv_keys": quotas.kv_keys,
        "kv_bytes": settings.kv_bytes if quotas.kv_bytes is None else quotas.kv_bytes,
        "queue_bytes": settings.queue_bytes if quotas.queue_bytes is None else quotas.queue_bytes,
    }
    for binding in bindings:
        binding.bound(tenant.name, most)


class QuotaRules:
    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    def refuse_one_more(self, tenant: str, deployed: Sequence[Deployment]) -> None:
        """Refuse another worker of a tenant that has as many as it may have."""
        most = self._tenants.quotas(tenant).workers
        if most is not None and len(deployed) >= most:
            raise Refused(
                ApiCode.TOO_MANY_WORKERS,
                f"the tenant `{tenant}` may have {most} workers and has them",
                "delete one, or ask an operator for a larger quota",
            )

    def refuse_too_large(self, draft: Deployment, deployed: Sequence[Deployment]) -> None:
        """The whole of a tenant's code is bounded, whatever the size of one worker may be."""
        tenant = draft.version.tenant
        most = self._tenants.quotas(tenant).script_bytes
        if most is None:
            return
        size = script_bytes(draft) + sum(script_bytes(each) for each in deployed if each.id != draft.id)
        if size > most:
            raise Refused(
                ApiCode.QUOTA,
                f"the workers of the tenant `{tenant}` would have {size:,} bytes, more than its quota of {most:,}",
                "delete one, make them smaller, or ask an operator for a larger quota",
            )
