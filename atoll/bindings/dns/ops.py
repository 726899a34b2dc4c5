"""dns: what node:dns asks.

    dns.lookup   the addresses of a host, from the system's resolver
    dns.resolve  the records of one type, from DNS

A worker learns no address that it may not reach: those of the operator's own network stay hidden unless `egress_allow`
names them. Both count as subrequests.
"""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor

from atoll.bindings.base import Binding, OpCall, Reply, op, own_task
from atoll.egress.gate import EgressGate
from atoll.errors import HostRefused, InvalidArgument, NetworkError
from atoll.workers import Version

THREADS = 8
PER_TENANT = 4  # queries of one tenant at once: names may be slow on purpose
HOST = re.compile(r"[^\x00-\x20\x7f/@\\]{1,255}")
TYPES = frozenset({"A", "AAAA", "CAA", "CNAME", "MX", "NAPTR", "NS", "PTR", "SOA", "SRV", "TLSA", "TXT"})


class Dns(Binding):
    kind = "dns"
    keeps_data = False
    ambient = True

    def __init__(self, gate: EgressGate, servers: tuple[str, ...]) -> None:
        self._gate = gate
        self._servers = servers
        self._threads = ThreadPoolExecutor(THREADS, "dns")
        self._turns: dict[str, asyncio.Semaphore] = {}

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    @op("dns.lookup", free=True)
    async def lookup(self, call: OpCall) -> Reply:
        host = self._checked(call)
        await own_task()
        try:
            found = await self._gate.lookup(call.scope.version, host)
        except (HostRefused, NetworkError):
            found = []
        return Reply({"addresses": [str(address) for address in found]})

    @op("dns.resolve", free=True)
    async def resolve(self, call: OpCall) -> Reply:
        host, kind = self._checked(call), call.meta.get("type")
        if not isinstance(kind, str) or kind not in TYPES:
            raise InvalidArgument("dns: there is no such type of record")
        from atoll.bindings.dns.records import ask  # late: the package takes 40 ms to import, and few workers use it

        version = call.scope.version
        turn = self._turns.setdefault(version.tenant, asyncio.Semaphore(PER_TENANT))
        await own_task()
        async with turn:
            loop = asyncio.get_running_loop()
            code, records = await loop.run_in_executor(self._threads, ask, host, kind, self._servers)
        if kind in ("A", "AAAA"):
            records = self._visible(version, host, records)
        return Reply({"code": code or ("" if records else "ENODATA"), "records": records})

    def _checked(self, call: OpCall) -> str:
        call.scope.spend(external=True)
        host = call.meta.get("host")
        if not isinstance(host, str) or not HOST.fullmatch(host):
            raise InvalidArgument("dns: the name is malformed")
        host = host.lower()
        if not self._gate.may_ask_for(call.scope.version, host):
            raise HostRefused(f"error 1021: {host} may not be looked up: a rule of the node, the tenant or the worker")
        return host

    def _visible(self, version: Version, host: str, records: list[dict[str, object]]) -> list[dict[str, object]]:
        return [record for record in records if self._gate.may_see(host, str(record["address"]))]
