"""Two tenants with the same names never see each other's data, in any binding that stores some."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from atoll.bindings.base import Binding, Reply
from atoll.bindings.cache.disk import CacheDisk
from atoll.bindings.cache.http_cache import HttpCache
from atoll.bindings.cache.ops import Cache
from atoll.bindings.kv.ops import KV
from atoll.bindings.kv.sqlite import SqliteKV
from atoll.bindings.ratelimit.memory import MemoryCounters
from atoll.bindings.ratelimit.ops import RateLimit
from atoll.bindings.scope import CallScope
from atoll.broker import Broker, OpRefusal
from atoll.workers import Grant, Version
from tests.running import Answer, Atoll


class Tenant:
    """A worker of one tenant that sends ops to the broker."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.broker = broker
        grants = {"KV": Grant("KV", "kv", "same"), "RL": Grant("RL", "ratelimit", "1 60 same")}
        self.version = Version(
            id=name, worker_id="same", worker_name="same", tenant=name, modules=(), main="", grants=grants
        )

    async def ask(self, op: str, body: bytes = b"", **meta: Any) -> Reply:
        answers: list[Reply | OpRefusal] = []
        [found] = [known for known in self.broker.bind(sorted(self.broker._ops)) if known.name == op]
        task = self.broker.answer(found, CallScope(self.version), json.dumps(meta).encode(), body, answers.append)
        if task is not None:
            await task
        [answer] = answers
        assert isinstance(answer, Reply), answer
        return answer


@pytest.fixture
async def tenants(tmp_path: Path) -> AsyncIterator[tuple[Tenant, Tenant]]:
    cache = HttpCache(CacheDisk(tmp_path / "cache", 1 << 20), 1 << 20)
    bindings: list[Binding] = [
        KV(SqliteKV(tmp_path / "kv.db")),
        Cache(cache),
        RateLimit(MemoryCounters(clock=lambda: 5.0)),
    ]
    broker = Broker(bindings)
    for name in ("alice", "bob"):
        await bindings[0].prepare(name, "same")
    yield Tenant(broker, "alice"), Tenant(broker, "bob")
    for binding in bindings:
        await binding.close()


async def test_kv(tenants: tuple[Tenant, Tenant]) -> None:
    alice, bob = tenants
    await alice.ask("kv.put", b"alice's", binding="KV", key="k")
    assert (await bob.ask("kv.get", binding="KV", key="k")).meta == {"found": False}
    assert (await bob.ask("kv.get_many", binding="KV", keys=["k"])).body == b""
    assert (await bob.ask("kv.list", binding="KV")).body == b"[]"
    await bob.ask("kv.delete", binding="KV", key="k")
    await bob.ask("kv.put", b"bob's", binding="KV", key="k")
    assert (await alice.ask("kv.get", binding="KV", key="k")).body == b"alice's"


async def test_the_cache(tenants: tuple[Tenant, Tenant]) -> None:
    alice, bob = tenants
    where = {"cache": "default", "url": "http://x/", "head": ""}
    await alice.ask("cache.put", b"alice's", status=200, reply="", **where)
    assert (await bob.ask("cache.match", **where)).meta == {"found": False}
    assert (await bob.ask("cache.delete", **where)).meta == {"found": False}
    assert (await alice.ask("cache.match", **where)).body == b"alice's"


async def test_rate_limits(tenants: tuple[Tenant, Tenant]) -> None:
    alice, bob = tenants
    assert (await alice.ask("ratelimit.limit", binding="RL", key="k")).meta == {"success": True}
    assert (await alice.ask("ratelimit.limit", binding="RL", key="k")).meta == {"success": False}
    assert (await bob.ask("ratelimit.limit", binding="RL", key="k")).meta == {"success": True}


@pytest.mark.parametrize("op", ["kv.read", "kv.upload", "cache.read", "cache.write"])
async def test_a_call_cannot_use_resources_of_another_call(
    tenants: tuple[Tenant, Tenant], op: str, caplog: pytest.LogCaptureFixture
) -> None:
    alice, _ = tenants
    for number in (1, -1, "1", None if op != "kv.upload" else 7):
        with pytest.raises(AssertionError, match="is closed, or belongs to another"):
            await alice.ask(op, binding="KV", reader=number, upload=number)


def test_tenants_are_separate_over_http_and_a_reused_tenant_name_starts_empty(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    script = """export default { async fetch(request, env) {
      const cache = caches.default;
      if (request.method === "POST") {
        await env.KV.put("k", await request.text());
        await cache.put("http://x/", new Response("cached"));
      }
      return Response.json([await env.KV.get("k"), await (await cache.match("http://x/"))?.text() ?? null]);
    } }"""

    def ask(tenant: str, method: str, path: str, body: object = None) -> Answer:
        content = None if body is None else json.dumps(body).encode()
        headers = {"X-Atoll-Tenant": tenant, "Content-Type": "application/json"}
        return node.request(method, f"localhost:{node.port}", path, content, headers)

    def deploy(tenant: str) -> None:
        bindings = [{"type": "kv", "name": "KV", "namespace": "same"}]
        body = {"name": f"worker-{tenant}", "script": script, "bindings": bindings}
        answer = ask(tenant, "POST", "/api/workers", body)
        assert answer.status == 201, answer.text

    for tenant in ("alice", "bob"):
        assert node.control("POST", "/api/tenants", {"name": tenant}).status == 201
        deploy(tenant)
    assert node.post("worker-alice", "/", b"alice's").json == ["alice's", "cached"]
    assert node.get("worker-bob").json == [None, None]
    assert ask("bob", "GET", "/api/kv/same/values/k").status == 404
    assert ask("bob", "GET", "/api/kv/same/export").body == b""
    assert ask("bob", "GET", "/api/caches").json == {"caches": []}
    assert ask("bob", "DELETE", "/api/caches/default").status == 404
    assert ask("bob", "DELETE", "/api/kv/same").status == 204
    assert ask("alice", "GET", "/api/kv/same/values/k").text == "alice's"
    assert ask("alice", "DELETE", "/api/workers/worker-alice").status == 204
    assert node.control("DELETE", "/api/tenants/alice").status == 409, "the tenant still has a namespace"
    assert ask("alice", "DELETE", "/api/kv/same").status == 204
    assert node.control("DELETE", "/api/tenants/alice").status == 204
    assert node.control("POST", "/api/tenants", {"name": "alice"}).status == 201
    host = quote("*worker-alice.localhost", safe="")
    assert node.control("DELETE", f"/api/reserved-hosts/{host}").status == 204, (
        "a later tenant of the same name does not have it"
    )
    deploy("alice")
    assert node.get("worker-alice").json == [None, None]
