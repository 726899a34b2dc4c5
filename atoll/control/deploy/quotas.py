"""Quotas on what a tenant deploys. The pool enforces the quotas on its calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from atoll.api.refusals import ApiCode, Refused
from atoll.bindings.base import Binding
from atoll.config import Settings
from atoll.control.access.tenants import Quotas, Tenant, Tenants
from atoll.control.store.version_rows import Deployment
from atoll.engine.limits import TenantCaps
from atoll.manifests.every import quotas
from atoll.workers import Limits


def script_bytes(deployment: Deployment) -> int:
    version = deployment.version
    return version.stored_bytes or sum(len(module.source) for module in version.modules)


def settings_of(settings: Settings, quotas: Quotas) -> Settings:
    """The node's settings for a tenant, whose quotas may lower them."""
    lower: dict[str, int] = {}
    for name in ("cpu_ms", "wall_ms", "memory_mb", "subrequests", "internal_subrequests"):
        most: int | None = getattr(quotas, f"max_{name}")
        if most is not None:
            lower |= {each: min(most, getattr(settings, each)) for each in (name, f"max_{name}")}
    return replace(settings, **lower) if lower else settings  # type: ignore[arg-type]  # all of these are numbers


def capped(limits: Limits, top: Settings) -> Limits:
    """The limits of a worker, each at most the cap in the settings."""
    found = Limits(
        cpu_ms=min(limits.cpu_ms, top.max_cpu_ms),
        wall_ms=min(limits.wall_ms, top.max_wall_ms),
        memory_mb=min(limits.memory_mb, top.max_memory_mb),
        subrequests=min(limits.subrequests, top.max_subrequests),
        internal_subrequests=min(limits.internal_subrequests, top.max_internal_subrequests),
        timer_ms=min(limits.timer_ms, top.max_timer_ms),
    )
    return limits if found == limits else found


def caps_of(quotas: Quotas, usual: TenantCaps) -> TenantCaps:
    """The quotas that the pool enforces; the node's caps replace those that are not set."""
    return TenantCaps(
        calls=usual.calls if quotas.concurrent_calls is None else quotas.concurrent_calls,
        loaded=usual.loaded if quotas.loaded_workers is None else quotas.loaded_workers,
        own_engine=bool(quotas.own_engine),
        suspended=bool(quotas.suspended),
        calls_per_second=quotas.requests_per_second,
        cpu_seconds_per_minute=quotas.cpu_seconds_per_minute,
    )


def bound_stores(bindings: Iterable[Binding], settings: Settings, tenant: Tenant) -> None:
    """Pass a tenant's quotas to the bindings."""
    most: dict[str, int | None] = {}
    for name, quota in quotas().items():
        bound: int | None = getattr(tenant.quotas, name)
        most[name] = settings.value(quota.setting) if bound is None and quota.setting else bound
    for binding in bindings:
        binding.bound(tenant.name, most)


class QuotaRules:
    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    def refuse_one_more(self, tenant: str, deployed: int) -> None:
        """Refuse a new worker if the tenant's quota `workers` is reached."""
        most = self._tenants.quotas(tenant).workers
        if most is not None and deployed >= most:
            raise Refused(
                ApiCode.TOO_MANY_WORKERS,
                f"the tenant `{tenant}` has reached its quota of {most} workers",
                "delete a worker, or ask an operator to raise the quota `workers`",
            )

    def refuse_too_large(self, drafts: Sequence[Deployment], others: int) -> None:
        """Refuse drafts of a worker that take the code of all the tenant's workers over its quota `script_bytes`. The
        others have so many bytes."""
        tenant = drafts[0].version.tenant
        most = self._tenants.quotas(tenant).script_bytes
        if most is None:
            return
        size = sum(map(script_bytes, drafts)) + others
        if size > most:
            raise Refused(
                ApiCode.QUOTA,
                f"the workers of the tenant `{tenant}` would have {size:,} bytes, more than its quota of {most:,}",
                "delete a worker, make some smaller, or ask an operator to raise the quota `script_bytes`",
            )
