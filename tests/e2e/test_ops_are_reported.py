"""Every op of every binding appears in the log, the metrics and the traces, and counts against the budget of its call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.test_metrics import scraped
from tests.e2e.test_traces import Collector, collector
from tests.running import Atoll
from tests.test_house import OP_IN_PYTHON

__all__ = ["collector"]
BINDINGS_FOLDER = Path(__file__).resolve().parents[2] / "atoll/bindings"
KINDS = ("kv", "cache", "queue", "ratelimit")
WORKER = """
const large = "x".repeat(2_000_000);
const stream = () => new Response(large).body;
const acts = {
  "kv.put": (env) => env.KV.put("a", "1"),
  "kv.get": (env) => env.KV.get("a"),
  "kv.get_many": (env) => env.KV.get(["a", "b"]),
  "kv.list": (env) => env.KV.list(),
  "kv.upload": (env) => env.KV.put("large", stream()),
  "kv.read": async (env) => (await new Response(await env.KV.get("large", "stream")).text()).length,
  "kv.delete": (env) => env.KV.delete("a"),
  "cache.put": () => caches.default.put("http://c/", new Response("x")),
  "cache.match": () => caches.default.match("http://c/"),
  "cache.write": () => caches.default.put("http://large/", new Response(stream().pipeThrough(new IdentityTransformStream()))),
  "cache.read": async () => (await (await caches.default.match("http://large/")).text()).length,
  "cache.delete": () => caches.default.delete("http://c/"),
  "queue.send": (env) => env.JOBS.send(1),
  "ratelimit.limit": (env) => env.RL.limit({ key: "a" }),
};
export default { async fetch(request, env) {
  const name = new URL(request.url).pathname.slice(1);
  if (name !== "") {
    let done = 0;
    try { for (;;) { await acts[name](env); done++; } } catch (error) { return new Response(`${done} ${error}`); }
  }
  for (const act of Object.values(acts)) await act(env);
  return new Response("all");
} }"""
FIELDS = {
    "bindings": [
        {"type": "kv", "name": "KV", "namespace": "told"},
        {"type": "queue", "name": "JOBS", "queue": "told"},
        {"type": "ratelimit", "name": "RL", "namespace": "told", "limit": 9, "period": 60},
    ],
    "limits": {"cpu_ms": 5000},
}


def ops() -> set[str]:
    return {name for kind in KINDS for name in OP_IN_PYTHON.findall((BINDINGS_FOLDER / kind / "ops.py").read_text())}


def test_every_op_is_in_the_log_the_metrics_and_the_trace(
    new_atoll: Callable[..., Atoll], collector: Collector
) -> None:
    endpoint = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    node = new_atoll(engines=1, otlp_endpoint=endpoint, trace_share=1)
    node.deploy("told", WORKER, **FIELDS)
    assert node.get("told").text == "all"
    [record] = node.logs("told")
    assert set(record["ops"]) == ops() and record["ops"]["ratelimit.limit"] == 1
    counted = {key[2]: value for key, value in scraped(node).items() if key[0] == "atoll_op_duration_seconds_count"}
    assert counted == record["ops"], "the metrics count the ops of this one call"
    assert node.stop() == 0
    spans = [collector.spans.get(timeout=10) for _ in range(sum(record["ops"].values()) + 1)]
    [call] = [span for span in spans if span.name == "fetch told"]
    assert {span.name for span in spans if span.parent_span_id == call.span_id} == ops()


@pytest.mark.parametrize("op", ["kv.put", "kv.get", "kv.get_many", "kv.list", "kv.delete", "cache.match", "queue.send"])
def test_every_op_counts_against_the_budget_of_the_call(atoll: Atoll, op: str) -> None:
    atoll.deploy("budgeted", WORKER, **{**FIELDS, "limits": {"cpu_ms": 5000, "internal_subrequests": 5}})
    answer = atoll.get("budgeted", f"/{op}").text
    assert answer.startswith("5 ") and "Too many subrequests: one request may make 5 calls of bindings" in answer


def test_a_stream_counts_once_whatever_its_number_of_chunks(atoll: Atoll) -> None:
    atoll.deploy("budgeted", WORKER, **{**FIELDS, "limits": {"cpu_ms": 5000, "internal_subrequests": 3}})
    for op in ("kv.upload", "kv.read", "cache.write"):
        assert atoll.get("budgeted", f"/{op}").text.startswith("3 "), op
