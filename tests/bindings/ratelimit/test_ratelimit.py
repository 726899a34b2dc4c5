"""The rate limit binding and the version metadata."""

from __future__ import annotations

import re
from typing import Any

import pytest

from atoll.bindings.base import OpCall
from atoll.bindings.ratelimit.memory import MemoryCounters
from atoll.bindings.ratelimit.ops import RateLimit, RateLimitEntry
from atoll.bindings.scope import CallScope
from atoll.errors import InvalidArgument
from atoll.workers import Grant, Version
from tests.running import Atoll


def version(tenant: str) -> Version:
    return Version(id="v", worker_id="w", worker_name="w", tenant=tenant, modules=(), main="")


async def allows(
    binding: RateLimit, key: str, *, limit: int = 1, period: Any = 10, namespace: str = "1", tenant: str = "alice"
) -> bool:
    resource = binding.claim(tenant, RateLimitEntry(namespace, limit, period))
    call = OpCall(Grant("RL", "ratelimit", resource), CallScope(version(tenant)), {"key": key})
    return (await binding.limit(call)).meta["success"] is True


async def test_counts_are_shared_by_namespace_and_period_and_never_between_tenants() -> None:
    binding = RateLimit(MemoryCounters(clock=lambda: 5.0))
    assert [await allows(binding, "a"), await allows(binding, "a")] == [True, False]
    assert await allows(binding, "a", limit=5), "another limit uses the same counts"
    assert not await allows(binding, "a", limit=3)
    assert await allows(binding, "b")
    assert await allows(binding, "a", namespace="2")
    assert await allows(binding, "a", period=60)
    assert await allows(binding, "a", tenant="bob")


@pytest.mark.parametrize(("namespace", "limit"), [("", 1), ("1", 0), ("x" * 129, 1)])
def test_an_invalid_entry_is_refused(namespace: str, limit: int) -> None:
    with pytest.raises(InvalidArgument):
        RateLimit(MemoryCounters()).claim("alice", RateLimitEntry(namespace, limit, 10))


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
    assert statuses.count(204) in (3, 6) and statuses[:3] == [204] * 3, "6 if a minute ended meanwhile"
    assert atoll.get("limited", "/b").status == 204
    assert atoll.get("limited", "/wrong").text.startswith("TypeError")
    metadata = atoll.get("limited", "/meta").json
    assert metadata["id"] == worker["version"]["id"] and metadata["tag"] == "v7"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", metadata["timestamp"])
    shown = atoll.control("GET", "/api/workers/limited").json["bindings"]
    assert shown == bindings
    bad = [{"type": "ratelimit", "name": "RL", "namespace": "1", "limit": 3, "period": 30}]
    refused = atoll.control("PUT", "/api/workers/limited", {"bindings": bad})
    assert refused.status == 400 and "the period is 30, but must be 10 or 60 seconds" in refused.text


def test_counts_are_listed_and_reset_over_http(atoll: Atoll) -> None:
    script = """export default { async fetch(request, env) {
      return Response.json(await env.RL.limit({ key: await request.text() })); } }"""
    bindings = [{"type": "ratelimit", "name": "RL", "namespace": "over http", "limit": 2, "period": 60}]
    atoll.deploy("limit-counted", script, bindings=bindings)
    while True:
        counts = [atoll.post("limit-counted", body=key).json["success"] for key in (b"a", b"a", b"a", b"b")]
        listed = atoll.control("GET", "/api/ratelimits").json["ratelimits"]
        [shown] = [each for each in listed if each["namespace"] == "over http"]
        found = atoll.control("GET", "/api/ratelimits/over%20http?key=a")
        if counts == [True, True, False, True] and shown["keys"] == 2 and found.status == 200:
            break  # otherwise a minute ended meanwhile
    assert (shown["period"], found.json["counts"][0]["period"]) == (60, 60)
    assert found.json["counts"][0]["count"] >= 3 and found.json["counts"][0]["ends_at"] == shown["ends_at"]
    assert atoll.control("DELETE", "/api/ratelimits/over%20http?key=a").status == 204
    assert atoll.control("GET", "/api/ratelimits/over%20http?key=a").status == 404
    assert atoll.post("limit-counted", body=b"a").json["success"] is True
    assert atoll.control("DELETE", "/api/ratelimits/over%20http").status == 204
    assert atoll.control("DELETE", "/api/ratelimits/nope").status == 404
    assert atoll.control("GET", "/api/ratelimits/over%20http").status == 404
