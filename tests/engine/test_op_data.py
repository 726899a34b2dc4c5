"""Memory of Python that waiting ops hold: bounded per tenant, whatever the number of its workers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from engine_room import Ear, EngineRoom, script

from atoll.bindings.kv.ops import KV
from atoll.engine.calls import op_runner as ops
from atoll.workers import Grant

SIZE = 1_000_000
# Makes as many puts as the path says, and returns the result of each.
PUTS = """export default { async fetch(request, env) {
  const count = Number(new URL(request.url).pathname.slice(1));
  const puts = Array.from({ length: count }, (_, i) => env.KV.put(`k${i}`, new Uint8Array(1_000_000)));
  const all = await Promise.allSettled(puts);
  return new Response(all.map((one) => (one.status === "fulfilled" ? "put" : `${one.reason}`)).join("\\n"));
} };"""


async def test_op_data_in_transit_is_bounded_per_tenant(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops, "PENDING_BYTES", 5 * SIZE)
    disk = asyncio.Event()
    (kv,) = (binding for binding in room.bindings.values() if isinstance(binding, KV))

    async def slow(*_: object) -> None:
        await disk.wait()

    monkeypatch.setattr(kv.store, "put", slow)
    grants = {"KV": Grant("KV", "kv", "space")}
    one, two = script(PUTS, "one", grants=grants), script(PUTS, "two", grants=grants)
    other = replace(script(PUTS, "other", grants=grants), tenant="other")

    def held(tenant: str) -> int:
        (session,) = room.pool.loader.groups.sessions()
        return session.ops._pending_of.get(tenant, 0)

    async def call(version: Any, count: int, tenant: str, expected: int) -> Ear:
        ear = room.call(version, f"http://test/{count}")
        await room.until(lambda: held(tenant) == expected * SIZE, f"{expected} MB of {tenant} wait")
        return ear

    first = await call(one, 3, "default", 3)
    second = await call(two, 4, "default", 5)
    third = await call(other, 4, "other", 4)
    disk.set()
    assert (await first.over()).body == b"put\nput\nput"
    told = (await second.over()).body.decode().split("\n")
    assert told[:2] == ["put", "put"]
    assert all("too much data is on its way to bindings" in line for line in told[2:]) and len(told) == 4
    assert (await third.over()).body == b"put\nput\nput\nput", "another tenant has its own budget"
    await room.until(lambda: held("default") == held("other") == 0, "all of it is given back")
    assert (await room.get(one, "http://test/4")).body == b"put\nput\nput\nput"
