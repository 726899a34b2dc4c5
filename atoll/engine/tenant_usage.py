"""What each tenant uses on this node: calls in flight, isolates and CPU time, checked against its caps.

The node's settings give every tenant the same caps. The control room, which stores quotas, sets others with `set_caps`
at any time. Calls that are in flight are never ended because of that.

Rates are token buckets: the calls of one second and the CPU time of one minute may be used at once. CPU time is known
when a call is over, so a bucket may fall below zero. Calls are refused until it is above zero again.
"""

from __future__ import annotations

import math

from atoll.engine.limits import TenantCaps
from atoll.errors import Failure
from atoll.wire.generated import ErrorCode

SUSPENDED_SECONDS = 300  # after which a client may ask again: an operator must act first


class TokenBucket:
    """Fills at `rate` per second, up to `most`."""

    __slots__ = ("filled_at", "level", "most", "rate")

    def __init__(self, rate: float, most: float) -> None:
        self.rate = rate  # per second
        self.most = self.level = most
        self.filled_at = float("-inf")

    def fill(self, now: float) -> float:
        if self.filled_at < now:
            self.level = min(self.level + (now - self.filled_at) * self.rate, self.most)
            self.filled_at = now
        return self.level


class TenantUsage:
    __slots__ = ("_calls", "_cpu", "_cpu_us_seen", "caps", "cpu_us", "fast_calls", "in_flight", "loaded", "name")

    def __init__(self, name: str, caps: TenantCaps) -> None:
        self.name = name
        self.in_flight = 0
        self.loaded = 0
        self.cpu_us = 0  # of its calls; that of open calls is added once a second
        self.set_caps(caps)

    def set_caps(self, caps: TenantCaps) -> None:
        self.caps = caps
        per_second, per_minute = caps.calls_per_second, caps.cpu_seconds_per_minute
        self._calls = TokenBucket(per_second, max(per_second, 1.0)) if per_second is not None else None
        self._cpu = TokenBucket(per_minute / 60, per_minute) if per_minute is not None else None
        self._cpu_us_seen = self.cpu_us
        # Below this number of calls in flight a call is admitted without further checks (the fast path of the pool).
        is_fast = self._calls is None and self._cpu is None and not caps.suspended
        self.fast_calls = caps.calls if is_fast else 0

    def admit(self, now: float) -> Failure | None:
        """Admit one more call and count it; returns the failure if the tenant is at a limit."""
        cpu, calls = self._cpu, self._calls
        if self.caps.suspended:
            return _refusal("this tenant is suspended", SUSPENDED_SECONDS)
        if self.in_flight >= self.caps.calls:
            return _refusal(f"{self.caps.calls} calls of this tenant are under way already")
        if cpu is not None:
            used, self._cpu_us_seen = (self.cpu_us - self._cpu_us_seen) / 1e6, self.cpu_us
            cpu.fill(now)
            cpu.level -= used
            if cpu.level <= 0:
                message = f"this tenant has used its {self.caps.cpu_seconds_per_minute:g} s of CPU time per minute"
                return _refusal(message, -cpu.level / cpu.rate, ErrorCode.CPU_QUOTA)
        if calls is not None:
            if calls.fill(now) < 1:
                message = f"this tenant makes more than its {self.caps.calls_per_second:g} calls per second"
                return _refusal(message, (1 - calls.level) / calls.rate)
            calls.level -= 1
        return None


def _refusal(message: str, seconds: float = 0, code: ErrorCode = ErrorCode.QUOTA_EXCEEDED) -> Failure:
    return Failure(code, message, retry_after=max(math.ceil(seconds), 1))


class TenantUsages:
    def __init__(self, usual: TenantCaps) -> None:
        self.usual = usual
        self._by_name: dict[str, TenantUsage] = {}

    def of(self, name: str) -> TenantUsage:
        tenant = self._by_name.get(name)
        if tenant is None:
            tenant = self._by_name[name] = TenantUsage(name, self.usual)
        return tenant

    def set_caps(self, name: str, caps: TenantCaps | None) -> None:
        """Set the caps of one tenant; None restores those of the node's settings."""
        self.of(name).set_caps(caps or self.usual)

    def active(self) -> list[TenantUsage]:
        """The tenants with calls or isolates."""
        return [tenant for tenant in self._by_name.values() if tenant.in_flight or tenant.loaded]

    def busiest(self, count: int) -> list[TenantUsage]:
        """The tenants with the most calls in flight, for the pool report."""
        return sorted(self.active(), key=lambda tenant: (-tenant.in_flight, -tenant.loaded, tenant.name))[:count]
