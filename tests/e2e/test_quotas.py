"""Quotas of a tenant: its excess gets clear 429 pages, and its neighbour is not affected."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.running import Answer, Atoll

QUICK = 'export default { fetch() { return new Response("ok"); } }'
BURN = "export default { fetch() { const end = Date.now() + 1e9; let x = 0; for (let i = 0; i < 3e7; i++) x += i; return new Response(String(x)); } }"
STAYS_OPEN = """export default { fetch(request) {
  if (!request.url.endsWith("/open")) return new Response("ok");
  const pull = async (controller) => {
    let x = 0;
    for (let i = 0; i < 1e9; i++) x += i;
    controller.enqueue(new TextEncoder().encode(`computed ${x}`));
    await scheduler.wait(29_000);
  };
  return new Response(new ReadableStream({ pull }));
} }"""
SLOW = "export default { async fetch() { await scheduler.wait(700); return new Response('ok'); } }"


@pytest.fixture(scope="module")
def atoll(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("quotas"), engines=1)
    node.start()
    yield node
    node.stop()


def deploy(
    atoll: Atoll, tenant: str, name: str, script: str, quotas: dict[str, float], bindings: Sequence[object] = ()
) -> None:
    assert atoll.control("POST", "/api/tenants", {"name": tenant, "quotas": quotas}).status == 201
    headers = {"Content-Type": "application/json", "X-Atoll-Tenant": tenant}
    body = json.dumps({"name": name, "script": script, "limits": {"cpu_ms": 10_000}, "bindings": list(bindings)})
    answer = atoll.request("POST", f"localhost:{atoll.port}", "/api/workers", body, headers)
    assert answer.status == 201, answer.text


def refusals(answers: list[Answer]) -> list[Answer]:
    assert {answer.status for answer in answers} == {200, 429}
    return [answer for answer in answers if answer.status == 429]


def test_requests_beyond_the_rate_are_refused_for_this_tenant_only(atoll: Atoll) -> None:
    deploy(atoll, "fast", "fast", QUICK, {"requests_per_second": 3})
    atoll.deploy("neighbour", QUICK)
    answers = [atoll.get("fast") for _ in range(30)]
    for answer in refusals(answers):
        assert answer.headers["x-atoll-error"] == "1015" and int(answer.headers["retry-after"]) >= 1
        assert "calls per second" in answer.text
    assert all(atoll.get("neighbour").status == 200 for _ in range(10))
    atoll.control("PATCH", "/api/tenants/fast", {"quotas": {"requests_per_second": None}})
    assert all(atoll.get("fast").status == 200 for _ in range(10))


def test_cpu_time_of_an_open_call_counts_before_it_ends(atoll: Atoll) -> None:
    """Otherwise a stream or a WebSocket could compute for days on a quota that is counted by the minute."""
    deploy(atoll, "keeper", "keeper", STAYS_OPEN, {"cpu_seconds_per_minute": 0.3})
    assert atoll.get("keeper").status == 200
    client = atoll.connect()
    client.sendall(f"GET /open HTTP/1.1\r\nHost: {atoll.host('keeper')}\r\n\r\n".encode())
    heard = b""
    while b"computed" not in heard:
        heard += client.recv(65536)
    atoll.wait_until(lambda: atoll.get("keeper").headers.get("x-atoll-error") == "1027", 25)
    client.close()


def test_cpu_time_beyond_the_quota_is_refused_until_it_is_paid_back(atoll: Atoll) -> None:
    deploy(atoll, "burner", "burner", BURN, {"cpu_seconds_per_minute": 0.02})
    answers = [atoll.get("burner") for _ in range(12)]
    refused = refusals(answers)
    assert answers[0].status == 200 and refused[0].headers["x-atoll-error"] == "1027"
    assert "CPU time" in refused[0].text


def test_calls_at_once_beyond_the_quota_are_refused(atoll: Atoll) -> None:
    deploy(atoll, "wide", "wide", SLOW, {"concurrent_calls": 2})
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda: answers.append(atoll.get("wide"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refusals(answers)) >= 2


def test_kv_storage_of_a_tenant_is_bounded_for_workers_and_over_http(atoll: Atoll) -> None:
    script = """export default { async fetch(request, env) {
      const key = new URL(request.url).pathname;
      try { await env.KV.put(key, await request.text()); return new Response("stored"); }
      catch (error) { return new Response(`${error}`, { status: 403 }); }
    } }"""
    binding = {"type": "kv", "name": "KV", "namespace": "bounded"}
    deploy(atoll, "hoarder", "hoarder", script, {"kv_bytes": 100, "kv_keys": 3}, [binding])
    assert atoll.post("hoarder", "/a", b"x" * 60).text == "stored"
    refused = atoll.post("hoarder", "/b", b"x" * 60)
    assert refused.status == 403
    assert refused.text.startswith(
        "Error: KV PUT failed: 403 the tenant would have 124 bytes in KV, more than its quota"
    )
    headers = {"Content-Type": "application/json", "X-Atoll-Tenant": "hoarder"}
    pairs = json.dumps([{"key": str(i), "value": ""} for i in range(3)])
    bulk = atoll.request("POST", f"localhost:{atoll.port}", "/api/kv/bounded/bulk", pairs, headers)
    assert bulk.status == 403 and bulk.json["error"]["code"] == 19014 and "4 keys in KV" in bulk.text
    usage = atoll.control("GET", "/api/tenants/hoarder").json["usage"]
    assert (usage["kv_keys"], usage["kv_bytes"]) == (1, 62)
    atoll.control("PATCH", "/api/tenants/hoarder", {"quotas": {"kv_bytes": None}})
    assert atoll.post("hoarder", "/b", b"x" * 60_000).text == "stored"


def test_queue_storage_of_a_tenant_is_bounded_for_workers_and_over_http(atoll: Atoll) -> None:
    script = """export default { async fetch(request, env) {
      try { await env.JOBS.send(await request.text(), { contentType: "text" }); return new Response("sent"); }
      catch (error) { return new Response(`${error}`, { status: 403 }); }
    } }"""
    binding = {"type": "queue", "name": "JOBS", "queue": "bounded"}
    deploy(atoll, "sender", "sender", script, {"queue_bytes": 500}, [binding])
    assert atoll.post("sender", "/", b"x" * 300).text == "sent"
    refused = atoll.post("sender", "/", b"x" * 300)
    assert refused.text.startswith("Error: Queue send failed: 403 the tenant would have 856 bytes in queues, more than")
    headers = {"Content-Type": "application/json", "X-Atoll-Tenant": "sender"}
    control = f"localhost:{atoll.port}"
    message = json.dumps({"messages": [{"body": "x" * 300}]})
    posted = atoll.request("POST", control, "/api/queues/bounded/messages", message, headers)
    assert posted.status == 403 and posted.json["error"]["code"] == 19014 and "bytes in queues" in posted.text
    assert atoll.control("GET", "/api/tenants/sender").json["usage"]["queue_bytes"] == 428
    assert atoll.request("GET", control, "/api/queues/bounded", None, headers).json["bytes"] == 428
    assert atoll.request("POST", control, "/api/queues/bounded/purge", None, headers).json == {"purged": 1}
    assert atoll.post("sender", "/", b"x" * 300).text == "sent"
    atoll.control("PATCH", "/api/tenants/sender", {"quotas": {"queue_bytes": None}})
    assert atoll.post("sender", "/", b"x" * 100_000).text == "sent"


def test_quotas_hold_after_a_restart(tmp_path: Path) -> None:
    atoll = Atoll(tmp_path, engines=1)
    atoll.start()
    try:
        deploy(atoll, "fast", "fast", QUICK, {"requests_per_second": 2})
        atoll.stop()
        atoll.start()
        assert refusals([atoll.get("fast") for _ in range(20)])
    finally:
        atoll.stop()


def test_limits_of_workers_may_not_exceed_the_caps_of_their_tenant(atoll: Atoll) -> None:
    caps = {
        "max_cpu_ms": 40,
        "max_wall_ms": 5000,
        "max_memory_mb": 64,
        "max_subrequests": 9,
        "max_internal_subrequests": 90,
    }
    assert atoll.control("POST", "/api/tenants", {"name": "capped", "quotas": caps}).status == 201
    headers = {"Content-Type": "application/json", "X-Atoll-Tenant": "capped"}

    def ask(method: str, path: str, **limits: int) -> Answer:
        body = json.dumps({"name": "capped", "script": QUICK} | ({"limits": limits} if limits else {}))
        return atoll.request(method, f"localhost:{atoll.port}", path, body, headers)

    for limits in (
        {"cpu_ms": 41},
        {"wall_ms": 5001},
        {"memory_mb": 65},
        {"subrequests": 10},
        {"internal_subrequests": 91},
    ):
        refused = ask("POST", "/api/workers", **limits)
        assert refused.status == 400 and "the tenant's quota of that name" in refused.text
    assert ask("POST", "/api/workers").status == 201
    versions = atoll.request("GET", f"localhost:{atoll.port}", "/api/workers/capped/versions/1", "", headers)
    limits = json.loads(versions.text)["limits"]
    capped = {name.removeprefix("max_"): value for name, value in caps.items()}
    assert limits | capped == limits, "the defaults are capped too"
    assert ask("PUT", "/api/workers/capped", cpu_ms=41).status == 400
    assert ask("PUT", "/api/workers/capped", cpu_ms=39).status == 200
    assert atoll.get("capped").status == 200
