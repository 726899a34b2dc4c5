"""Traces of a real node arrive at a collector that speaks OTLP over HTTP."""

from __future__ import annotations

import gzip
import queue
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from atoll.tracing import trace_of
from tests.running import Atoll
from tests.upstream import Upstream

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
WORKER = """export default { async fetch(request, env) {
  if (request.url.endsWith("/bad")) throw new Error("broken");
  await env.KV.put("a", "1");
  return new Response(await env.KV.get("a"));
} }"""


class Collector(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.spans: queue.Queue[Span] = queue.Queue()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.server.spans.put(span)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def text_of(span: Span, name: str) -> str:
    return next(item.value.string_value for item in span.attributes if item.key == name)


def test_a_call_and_its_ops_are_spans_of_one_trace(new_atoll: Callable[..., Atoll], collector: Collector) -> None:
    endpoint = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    atoll = new_atoll(engines=1, otlp_endpoint=endpoint, trace_share=1)
    atoll.deploy("traced", WORKER, bindings=[{"type": "kv", "name": "KV", "namespace": "traced"}])
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    assert atoll.get("traced", "/?id=0123456789abcdef0123456789abcdef", headers).text == "1"
    assert atoll.get("traced", "/bad").status == 500
    assert atoll.stop() == 0, "the node sends its traces before it ends"
    spans = [collector.spans.get(timeout=10) for _ in range(4)]
    call = next(span for span in spans if span.name == "fetch traced" and span.trace_id.hex() == TRACE)
    assert call.parent_span_id.hex() == PARENT
    assert text_of(call, "url.full").endswith("?id=REDACTED") and text_of(call, "atoll.outcome") == "ok"
    ops = [span for span in spans if span.parent_span_id == call.span_id]
    assert [span.name for span in ops] == ["kv.put", "kv.get"]
    slack = 50_000_000  # ns; the two clocks differ
    assert all(call.start_time_unix_nano - slack < span.start_time_unix_nano < span.end_time_unix_nano for span in ops)
    bad = next(span for span in spans if span.name == "fetch traced" and span is not call)
    assert (bad.status.message, bad.status.code) == ("broken", 2) and bad.trace_id.hex() != TRACE


CALLER = """export default { async fetch(request, env) {
  const mine = request.headers.get("x-mine");
  const init = mine ? { headers: { traceparent: mine } } : request;
  return new Response(await (await env.BACK.fetch("http://back/", init)).text());
} }"""
BACK = """export default { fetch(request) { return new Response(request.headers.get("traceparent")); } }"""


def test_a_trace_continues_in_fetches_of_a_worker(new_atoll: Callable[..., Atoll], collector: Collector) -> None:
    endpoint = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    atoll = new_atoll(engines=1, otlp_endpoint=endpoint, trace_share=1)
    atoll.deploy("back", BACK)
    atoll.deploy("caller", CALLER, bindings=[{"type": "service", "name": "BACK", "service": "back"}])
    told = atoll.get("caller", "/", {"traceparent": f"00-{TRACE}-{PARENT}-01"}).text
    others = f"00-{TRACE[::-1]}-{PARENT}-00"
    assert atoll.get("caller", "/", {"x-mine": others}).text == others, (
        "a worker that sets its own trace header keeps it"
    )
    assert atoll.stop() == 0
    spans = {
        span.name: span for span in (collector.spans.get(timeout=10) for _ in range(6)) if span.trace_id.hex() == TRACE
    }
    caller, back = spans["fetch caller"], spans["fetch back"]
    assert told == f"00-{TRACE}-{caller.span_id.hex()}-01"
    assert back.parent_span_id == caller.span_id and caller.parent_span_id.hex() == PARENT


def test_each_outgoing_request_carries_its_own_span(new_atoll: Callable[..., Atoll], collector: Collector) -> None:
    endpoint = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    with closing(Upstream()) as upstream:
        allowed = f"127.0.0.1:{upstream.port}"
        atoll = new_atoll(engines=1, otlp_endpoint=endpoint, trace_share=1, egress_allow=allowed)
        atoll.deploy("asks", f"export default {{ fetch() {{ return fetch('http://{allowed}/echo'); }} }}")
        told = []
        for _ in range(3):
            assert atoll.get("asks").status == 200
            told.append(upstream.last().get("traceparent") or "")
        atoll.stop()
    assert len(set(told)) == 3 and all(re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", text) for text in told), told


def test_a_trace_is_sampled_as_a_whole() -> None:
    head = f"GET http://a/\ntraceparent: 00-{TRACE}-{PARENT}-01\r\n".encode()
    kept = trace_of(head, 0.9)
    assert (kept.id, kept.parent, kept.is_kept) == (int(TRACE, 16), int(PARENT, 16), True)
    assert not trace_of(head, 0.1).is_kept and trace_of(head, 1).is_kept
    assert trace_of(b"GET http://a/\ntraceparent: 00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-01\r\n", 1).parent == 0
