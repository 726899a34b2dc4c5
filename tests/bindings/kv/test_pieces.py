"""Large values in transit: bounded for the node, whatever the callers and their number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from atoll.bindings.base import OpCall, Reply
from atoll.bindings.kv.limits import MAX_VALUE
from atoll.bindings.kv.ops import KV, PIECE
from atoll.bindings.kv.pieces import Budget
from atoll.bindings.kv.sqlite import SqliteKV
from atoll.bindings.scope import CallScope
from atoll.errors import InvalidArgument, QuotaExceeded
from atoll.workers import Grant, Version
from tests.running import Atoll

GRANT = Grant("KV", "kv", "space")
MIB = 1 << 20


class Call:
    """A call of a tenant's worker."""

    def __init__(self, kv: KV, tenant: str = "alice") -> None:
        self.kv = kv
        self.scope = CallScope(Version(id="v", worker_id="w", worker_name="w", tenant=tenant, modules=(), main=""))

    def of(self, **meta: Any) -> OpCall:
        return OpCall(GRANT, self.scope, meta)

    async def get(self, key: str = "large") -> Reply:
        return await self.kv.get(self.of(key=key))

    def read(self, reply: Reply) -> bytes:
        return self.kv.read(self.of(reader=reply.meta["reader"])).body


@pytest.fixture
async def kv(tmp_path: Path) -> AsyncIterator[KV]:
    kv = KV(SqliteKV(tmp_path / "kv.db"), budget=Budget(2 * MAX_VALUE + MIB, patience=0.05))
    for tenant in ("alice", "bob"):
        await kv.prepare(tenant, "space")
        call = Call(kv, tenant)
        for key, size in (("large", 2 * MIB), ("small", PIECE)):
            body = bytes([len(key)]) * size
            await kv.put(OpCall(GRANT, call.scope, {"key": key}, body))
    yield kv
    await kv.close()


async def test_a_large_value_is_read_in_pieces_and_a_small_one_at_once(kv: KV) -> None:
    call = Call(kv)
    small = await call.get("small")
    assert len(small.body) == PIECE and "reader" not in small.meta
    large = await call.get()
    assert len(large.body) == PIECE and large.meta["size"] == 2 * MIB
    pieces = [call.read(large) for _ in range(2 * MIB // PIECE - 1)]
    assert large.body + b"".join(pieces) == b"\5" * (2 * MIB)
    with pytest.raises(InvalidArgument):
        call.read(large)  # it was released with its last piece


async def test_values_wait_for_room_and_one_tenant_cannot_take_all_of_it(kv: KV) -> None:
    first, second, other = Call(kv), Call(kv), Call(kv, "bob")
    held = await first.get()
    with pytest.raises(QuotaExceeded, match="try again"):
        await second.get()  # a read starts only when the largest possible value would fit
    theirs = await other.get()
    waiting = asyncio.ensure_future(second.get())
    await asyncio.sleep(0)
    first.kv.read(first.of(reader=held.meta["reader"], cancel=True))
    assert len((await waiting).body) == PIECE
    for call in (second, other):
        call.scope.close()
    assert theirs.meta["size"] == 2 * MIB
    for _ in range(3):  # nothing is counted twice or left counted
        call = Call(kv)
        await call.get()
        call.scope.close()


async def test_too_many_values_are_refused_before_they_are_read(kv: KV) -> None:
    for _ in range(5):
        with pytest.raises(Exception, match="413 Total size of request exceeds the limit of 25MB"):
            await kv.get_many(Call(kv).of(keys=["large"] * 100))
    several = await kv.get_many(Call(kv).of(keys=["large", "none", "small"]))
    assert several.meta["sizes"] == [2 * MIB, None, PIECE] and several.meta["size"] == 2 * MIB + PIECE


async def test_a_cancelled_wait_takes_no_room() -> None:
    budget = Budget(20)
    budget.take("alice", 10)
    waiting = [asyncio.ensure_future(budget.wait_for("alice", 10)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    budget.give("alice", 10)  # the turn of the first, which is already cancelled
    waiting[1].cancel()  # and of the second, which is cancelled at its turn
    await asyncio.wait(waiting)
    assert not waiting[2].cancelled()
    budget.give("alice", 10)
    budget.take("alice", 10)
    with pytest.raises(QuotaExceeded):
        budget.take("alice", 1)


def test_many_large_values_of_every_type_are_read_completely_at_once(atoll: Atoll) -> None:
    script = """export default { async fetch(request, env) {
      await env.KV.put("k", request.body);
      const types = ["text", "arrayBuffer", "stream"];
      const all = await Promise.all(Array.from({ length: 15 }, (_, i) => env.KV.get("k", types[i % 3])));
      const sizes = await Promise.all(all.map(async (value) => (await new Response(value).arrayBuffer()).byteLength));
      const many = await env.KV.get(["k", "none"]);
      return Response.json([...new Set([...sizes, many.get("k").length]), many.get("none")]);
    } }"""
    bindings = [{"type": "kv", "name": "KV", "namespace": "crowd"}]
    atoll.deploy("kv-crowd", script, bindings=bindings, limits={"cpu_ms": 10_000})
    assert atoll.post("kv-crowd", "/", bytes(MIB + 1)).text == f"[{MIB + 1},null]"
