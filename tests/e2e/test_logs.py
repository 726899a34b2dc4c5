"""Logs of a whole node: on disk, over a restart, and as a stream over a socket."""

from __future__ import annotations

import http.client
import json
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from tests.running import Atoll

TALKS = """export default { fetch(request) {
  const { pathname } = new URL(request.url);
  console.info("at", pathname);
  if (pathname === "/bad") throw new TypeError("bad day");
  return new Response("ok");
} }"""


@contextmanager
def live(atoll: Atoll, name: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", atoll.port, timeout=20)
    with closing(connection):
        connection.request("GET", f"/api/workers/{name}/logs/live", headers={"Host": f"localhost:{atoll.port}"})
        response = connection.getresponse()
        assert response.status == 200 and response.headers["content-type"].startswith("text/event-stream")
        assert response.readline() == b": listening\n" and response.readline() == b"\n"
        yield response


def event(response: http.client.HTTPResponse) -> tuple[str, Any]:
    """The next event of a stream; skips comments."""
    while not (line := response.readline()).startswith(b"event: "):
        assert line, "the stream ended"
    data = response.readline()
    assert response.readline() == b"\n"
    return line[7:].decode().strip(), json.loads(data[6:])


def test_logs_survive_a_restart_and_contain_no_credentials(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll()
    atoll.deploy("talks", TALKS)
    atoll.get("talks", "/one?sid=aB3dE5fG7hI9jK1lM3nO5pQ7", {"Authorization": "Bearer hunter2", "X-Kind": "test"})
    assert atoll.get("talks", "/bad").status == 500
    assert atoll.stop() == 0
    atoll.start()
    bad, one = atoll.logs("talks")
    assert bad["outcome"] == "exception" and bad["exception"]["type"] == "TypeError"
    assert one["url"].endswith("/one?sid=REDACTED") and one["logs"][0]["message"] == "at /one"
    assert one["headers"]["authorization"] == "REDACTED" and one["headers"]["x-kind"] == "test"
    assert b"hunter2" not in b"".join(file.read_bytes() for file in (atoll.folder / "data").glob("logs.db*"))
    found = atoll.control("GET", "/api/workers/talks/logs?text=bad%20day&outcome=exception&level=error").json
    assert [record["url"] for record in found["logs"]] == [bad["url"]]


CALLER = """export default { async fetch(request, env) {
  await env.KV.put("a", "1");
  await (await env.API.fetch("http://api/x", { headers: { "x-a": "b" } })).text();
  return new Response(await env.API.add(1, 2));
} }"""
API = """import { WorkerEntrypoint } from "cloudflare:workers";
export class Admin extends WorkerEntrypoint { fetch() { return new Response("hi"); } add(a, b) { return a + b; } }
export default { fetch() { return new Response("default"); } };"""


def test_records_have_the_entry_point_and_the_number_of_subrequests(atoll: Atoll) -> None:
    atoll.deploy("api", API)
    bindings = [
        {"type": "kv", "name": "KV", "namespace": "asked"},
        {"type": "service", "name": "API", "service": "api", "entrypoint": "Admin"},
    ]
    atoll.deploy("caller", CALLER, bindings=bindings)
    assert atoll.get("caller").text == "3"
    [caller] = atoll.logs("caller")
    assert caller["subrequests"] == 3 and "entrypoint" not in caller
    assert 1 <= caller["memory_mb"] < 128
    rpc, fetched = atoll.logs("api")
    assert (rpc["event"], rpc["entrypoint"], rpc["url"]) == ("rpc", "Admin", "Admin.add")
    assert (fetched["event"], fetched["entrypoint"], fetched["method"]) == ("fetch", "Admin", "GET")
    assert fetched["url"] == "http://api/x" and fetched["headers"]["x-a"] == "b"
    told = atoll.control("GET", "/metrics").text
    assert re.search(r'atoll_subrequests_total\{tenant="\w+",worker="caller"\} 3', told)


def test_a_live_stream_follows_the_calls(atoll: Atoll) -> None:
    atoll.deploy("live", TALKS)
    with live(atoll, "live") as stream:
        for path in ("/a", "/b"):
            atoll.get("live", path)
            kind, record = event(stream)
            assert kind == "invocation" and record["logs"][0]["message"] == f"at {path}"
        atoll.control("DELETE", "/api/workers/live")
        assert stream.readline() == b"", "the stream ends with the worker"


def test_a_flood_drops_log_records_but_no_requests(atoll: Atoll) -> None:
    atoll.deploy("flood", TALKS)
    with live(atoll, "flood") as stream:
        threads = [threading.Thread(target=lambda: [atoll.get("flood") for _ in range(60)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        told = 0
        while told < 240:
            kind, data = event(stream)
            told += 1 if kind == "invocation" else data["count"]
        for thread in threads:
            thread.join()
    assert told == 240


def test_a_node_with_a_listener_stops_at_once(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll()
    atoll.deploy("talks", TALKS)
    with live(atoll, "talks") as stream:
        began = time.monotonic()
        assert atoll.stop(signal.SIGTERM) == 0
        assert stream.readline() == b""
    assert time.monotonic() - began < 10, "the node does not wait for drain_seconds"
