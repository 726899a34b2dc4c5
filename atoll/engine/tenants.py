"""Tenants as the pool counts them: what each has under way and loaded now, and how much of that it may have.

The node's settings give every tenant the same caps; whoever knows more about one (the control room, which stores
quotas) sets its own with `set_caps`, at any time. What is under way already is never ended for it.

Rates are token buckets: calls of one second and CPU time of one minute may be used at once. CPU time is known when a
call is over, so a bucket may go below zero; calls are refused until it is above again.
"""

from __future__ import annotations

import math

from atoll.engine.measures import TenantCaps
from atoll.errors import Failure
from atoll.wire.generated import ErrorCode


class Bucket:
    """Fills with time, up to `most`."""

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


class Tenant:
    __slots__ = ("_calls", "_cpu", "_cpu_us_seen", "caps", "cpu_us", "fast_calls", "in_flight", "loaded", "name")

    def __init__(self, name: str, caps: TenantCaps) -> None:
        self.name = name
        self.in_flight = 0
        self.loaded = 0
        self.cpu_us = 0  # of its calls, those that are open included once a second
        self.set_caps(caps)

    def set_caps(self, caps: TenantCaps) -> None:
        self.caps = caps
        per_second, per_minute = caps.calls_per_second, caps.cpu_seconds_per_minute
        self._calls = Bucket(per_second, max(per_second, 1.0)) if per_second is not None else None
        self._cpu = Bucket(per_minute / 60, per_minute) if per_minute is not None else None
        self._cpu_us_seen = self.cpu_us
        # Calls under way up to which nothing else need be asked: looked at for every call.
        self.fast_calls = caps.calls if self._calls is None and self._cpu is None else 0

    def admit(self, now: float) -> Failure | None:
        """Count one more call; why not, if it has too many."""
        cpu, calls = self._cpu, self._calls
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


class Tenants:
    def __init__(self, usual: TenantCaps) -> None:
        self.usual = usual
        self._by_name: dict[str, Tenant] = {}

    def of(self, name: str) -> Tenant:
        tenant = self._by_name.get(name)
        if tenant is None:
            tenant = self._by_name[name] = Tenant(name, self.usual)
        return tenant

    def set_caps(self, name: str, caps: TenantCaps | None) -> None:
        """Caps of one tenant from now on; None: those of the node's settings."""
        self.of(name).set_caps(caps or self.usual)

    def busiest(self, count: int) -> list[Tenant]:
        """Those with most under way, for people to look at."""
        active = [tenant for tenant in self._by_name.values() if tenant.in_flight or tenant.loaded]
        return sorted(active, key=lambda tenant: (-tenant.in_flight, -tenant.loaded, tenant.name))[:count]
