"""The rate limit binding, and the version metadata beside it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from atoll.bindings.base import OpCall
from atoll.bindings.ratelimit.ops import RateLimit, RateLimitEntry
from atoll.bindings.scope import Scope
from atoll.errors import InvalidArgument
from atoll.workers import Grant, Version
from tests.running import Atoll


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def version(tenant: str) -> Version:
    return Version(id="v", worker_id="w", worker_name="w", tenant=tenant, modules=(), main="")


class Limiter:
    def __init__(self) -> None:
        self.clock = Clock()
        self.binding = RateLimit(clock=self.clock)

    def allows(
        self, key: str, *, limit: int = 2, period: Any = 10, namespace: str = "1", tenant: str = "alice"
    ) -> bool:
        resource = self.binding.claim(tenant, RateLimitEntry(namespace, limit, period))
        call = OpCall(Grant("RL", "ratelimit", resource), Scope(version(tenant)), {"key": key})
        return self.binding.limit(call).meta["success"] is True


def test_a_key_is_let_through_so_often_in_a_window_of_the_wall_clock() -> None:
    limiter = Limiter()
    limiter.clock.now += 9.5
    assert [limiter.allows("a") for _ in range(3)] == [True, True, False]
    assert limiter.allows("b")
    limiter.clock.now += 0.5  # the next window begins
    assert [limiter.allows("a") for _ in range(3)] == [True, True, False]


def test_counts_are_shared_by_namespace_and_period_and_never_between_tenants() -> None:
    limiter = Limiter()
    assert [limiter.allows("a", limit=1), limiter.allows("a", limit=1)] == [True, False]
    assert limiter.allows("a", limit=5), "another limit on the same counts"
    assert not limiter.allows("a", limit=3)
    assert limiter.allows("a", limit=1, namespace="2")
    assert limiter.allows("a", limit=1, period=60)
    assert limiter.allows("a", limit=1, tenant="bob")


def test_a_clock_that_is_set_back_begins_a_new_window() -> None:
    limiter = Limiter()
    assert [limiter.allows("a", limit=1), limiter.allows("a", limit=1)] == [True, False]
    limiter.clock.now -= 1000
    assert limiter.allows("a", limit=1)


def test_a_flood_of_keys_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atoll.bindings.ratelimit.ops.MAX_KEYS", 10)
    limiter = Limiter()
    assert all(limiter.allows(f"{i}", limit=1) for i in range(100))
    assert len(limiter.binding._windows["alice", 10].counts) == 10
    assert not limiter.allows("3", limit=1)


@pytest.mark.parametrize(("namespace", "limit"), [("", 1), ("1", 0), ("x" * 129, 1)])
def test_an_entry_that_makes_no_sense_is_refused(namespace: str, limit: int) -> None:
    with pytest.raises(InvalidArgument):
        RateLimit().claim("alice", RateLimitEntry(namespace, limit, 10))


def test_a_worker_limits_by_a_key_and_knows_its_version(atoll: Atoll) -> None:
    script = """export default { async fetch(request, env) {
      const key = new URL(request.url).pathname;
      if (key === "/meta") return Response.json(env.META);
      if (key === "/wrong") return new Response(await env.RL.limit({}).catch((error) => `${error}`));
      const { success } = await env.RL.limit({ key });
      return new Response(null, { status: success ? 204 : 429 });
    } }"""
    bindings = [
        {"type": "ratelimit", "name": "RL", "namespace": "1001", "limit": 3, "period": 60},
        {"type": "version_metadata", "name": "META"},
    ]
    worker = atoll.deploy("limited", script, bindings=bindings, tag="v7")
    statuses = [atoll.get("limited", "/a").status for _ in range(8)]
    assert statuses.count(204) in (3, 6) and statuses[:3] == [204] * 3, "6 when a minute ended meanwhile"
    assert atoll.get("limited", "/b").status == 204
    assert atoll.get("limited", "/wrong").text.startswith("TypeError")
    metadata = atoll.get("limited", "/meta").json
    assert metadata["id"] == worker["version"]["id"] and metadata["tag"] == "v7"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", metadata["timestamp"])
    shown = atoll.control("GET", "/api/workers/limited").json["bindings"]
    assert shown == bindings
    bad = [{"type": "ratelimit", "name": "RL", "namespace": "1", "limit": 3, "period": 30}]
    assert atoll.control("PUT", "/api/workers/limited", {"bindings": bad}).status == 400
