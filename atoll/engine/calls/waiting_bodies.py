"""Parts of request bodies that wait for room in the socket of an engine.

Tenants take turns, and so do the calls of one tenant. What waits is counted to its tenant; when a call ends, its parts
are dropped at once.
"""

from __future__ import annotations

from collections import deque

from atoll.engine.calls.call import Call
from atoll.holdings import Holdings


class WaitingBodies:
    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self.by_tenant: dict[str, dict[Call, deque[tuple[bytes, bool]]]] = {}

    def add(self, call: Call, chunk: bytes, ended: bool) -> None:
        tenant: str = call.version.tenant
        calls = self.by_tenant.get(tenant)
        if calls is None:
            calls = self.by_tenant[tenant] = {}
        parts = calls.get(call)
        if parts is None:
            parts = calls[call] = deque()
        parts.append((chunk, ended))
        call.unsent += len(chunk)
        self._holdings.count(tenant, len(chunk))

    def next(self) -> tuple[Call, bytes, bool]:
        """Take the next part. There must be one."""
        tenant = next(iter(self.by_tenant))
        calls = self.by_tenant.pop(tenant)
        call = next(iter(calls))
        parts = calls.pop(call)
        chunk, ended = parts.popleft()
        if parts:
            calls[call] = parts  # behind the others
        if calls:
            self.by_tenant[tenant] = calls
        call.unsent -= len(chunk)
        self._holdings.count(tenant, -len(chunk))
        return call, chunk, ended

    def drop(self, call: Call) -> None:
        """The call is over."""
        tenant: str = call.version.tenant
        calls = self.by_tenant.get(tenant)
        parts = None if calls is None else calls.pop(call, None)
        if calls is None or parts is None:
            return
        if not calls:
            del self.by_tenant[tenant]
        size = 0
        for chunk, _ in parts:
            size += len(chunk)
        self._holdings.count(tenant, -size)
        call.unsent -= size
