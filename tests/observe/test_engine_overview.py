"""What a node says about its engines, and what an operator can do with them: over HTTP, with real engines."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.running import Atoll

BUSY = """export default { fetch(request) {
  let n = 0;
  for (let i = 0; i < 3e6; i++) n += i % 7;
  return new Response(String(n));
} }"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("overview"), engines=1)
    node.start()
    node.deploy("busy", BUSY)
    yield node
    assert node.stop() == 0


def engines(node: Atoll) -> dict[str, Any]:
    answer = node.control("GET", "/api/node/engines")
    assert answer.status == 200, answer.text
    found: dict[str, Any] = answer.json
    return found


def isolate_of(found: dict[str, Any], worker: str) -> dict[str, Any] | None:
    return next((each for engine in found["engines"] for each in engine["isolates"] if each["worker"] == worker), None)


def test_an_isolate_is_listed_with_its_memory_and_cpu_time_and_its_tenant_with_both(node: Atoll) -> None:
    def known() -> bool:
        assert node.get("busy").status == 200
        found = engines(node)
        isolate = isolate_of(found, "busy")
        return bool(isolate and isolate["memory_bytes"] and isolate["cpu_percent"] and found["tenants"])

    node.wait_until(known, 20)
    found = engines(node)
    isolate, [tenant] = isolate_of(found, "busy"), found["tenants"]
    assert isolate is not None and isolate["tenant"] == tenant["name"] == "default"
    assert isolate["state"] == "ready" and isolate["marks"] == [] and isolate["cpu_ms"] > 0
    assert tenant["cpu_ms"] >= isolate["cpu_ms"] > 0 and tenant["memory_bytes"] >= isolate["memory_bytes"]
    [engine] = found["engines"]
    assert engine["pid"] in node.engines() and engine["serves"] == "all" and engine["memory_bytes"] > 1 << 20
    assert found["counts"]["calls"] > 0 and found["left_out"] == 0


def test_the_stream_sends_an_event_each_second(node: Atoll) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=10)
    connection.request("GET", "/api/node/engines/live", headers={"Host": node.control_host})
    stream = connection.getresponse()
    assert stream.headers["content-type"].startswith("text/event-stream")
    ats = []
    while len(ats) < 2:
        line = stream.readline().decode()
        if line.startswith("data: "):
            ats.append(json.loads(line[6:])["at"])
    assert ats[0] < ats[1]
    connection.close()


def test_an_isolate_that_is_unloaded_is_loaded_again_by_the_next_call(node: Atoll) -> None:
    assert node.get("busy").status == 200
    found = engines(node)
    isolate, pid = isolate_of(found, "busy"), found["engines"][0]["pid"]
    assert isolate is not None
    path = f"/api/node/engines/{pid}/isolates/{isolate['id']}/unload"
    assert node.control("POST", path).status == 204
    node.wait_until(lambda: isolate_of(engines(node), "busy") is None)
    assert node.control("POST", path).status == 404
    assert node.get("busy").status == 200
    lines = node.control("GET", "/api/audit?limit=5").json["audit"]
    assert ("isolate.unload", f"{pid}/{isolate['id']}") in [(line["action"], line["target"]) for line in lines]


def test_an_engine_that_is_restarted_is_replaced_and_no_call_fails(node: Atoll) -> None:
    [before] = engines(node)["engines"]
    assert node.control("POST", f"/api/node/engines/{before['pid']}/restart").status == 204

    def replaced() -> bool:
        assert node.get("busy").status == 200
        found = engines(node)
        return [each["pid"] for each in found["engines"]] not in ([before["pid"]], []) and not found["leaving"]

    node.wait_until(replaced, 30)
    assert engines(node)["counts"]["crashes"] == 0


@pytest.mark.parametrize("pid", ["0", "1", "x", "-1", "9" * 40, "%00"])
def test_a_process_that_is_no_engine_of_the_node_is_not_touched(node: Atoll, pid: str) -> None:
    answer = node.control("POST", f"/api/node/engines/{pid}/restart")
    assert answer.status in (400, 404), answer.text
    assert node.control("POST", f"/api/node/engines/{pid}/isolates/1/unload").status in (400, 404)
