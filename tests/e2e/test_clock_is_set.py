"""The wall clock jumps back and forth under a running node: nothing is lost, stuck, repeated or early.

The machine's own clock does not change: the node runs with a `time.time` that adds an offset from a file.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import Atoll

SET_CLOCK = """
import pathlib, time
real, offset = time.time, pathlib.Path(__file__).with_name("offset")
time.time = lambda: real() + float(offset.read_text())
"""
WORKER = """export default {
  async fetch(request, env) {
    const key = new URL(request.url).pathname.slice(1);
    if (request.method === "GET") return new Response(await env.KV.get(key));
    await env.KV.put(key, "kept");
    await env.KV.put(`short-${key}`, "kept", { expirationTtl: 3600 });
    await env.JOBS.send(key, { delaySeconds: 1 });
    await caches.default.put(`http://${key}/`, new Response("cached"));
    return new Response("done");
  },
  async queue(batch, env) { for (const { body } of batch.messages) await env.KV.put(`seen-${body}`, "1"); },
  scheduled() {},
};"""
HOUR = 3_600
DAY = 24 * HOUR


class Clock:
    def __init__(self, folder: Path) -> None:
        (folder / "sitecustomize.py").write_text(SET_CLOCK)
        self._offset = folder / "offset"
        self.set(0)

    def set(self, seconds: float) -> None:
        fresh = self._offset.with_name("fresh")
        fresh.write_text(str(seconds))
        fresh.rename(self._offset)


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    folder = tmp_path / "clock"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return Clock(folder)


@pytest.fixture
def node(clock: Clock, tmp_path: Path) -> Iterator[Atoll]:
    node = Atoll(tmp_path / "node", engines=1)
    node.start()
    node.deploy(
        "clocked", WORKER, crons=["0 0 1 1 *"],
        bindings=[{"type": "kv", "name": "KV", "namespace": "clocked"}, {"type": "queue", "name": "JOBS", "queue": "q"}],
        queue_consumers=[{"queue": "q", "max_batch_timeout": 0.05}],
    )  # fmt: skip
    yield node
    node.stop()


def delivered_after(node: Atoll, key: str) -> float:
    began = time.monotonic()
    node.wait_until(lambda: node.get("clocked", f"/seen-{key}").text == "1", 20)
    return time.monotonic() - began


def test_clock_jumps_lose_nothing(node: Atoll, clock: Clock) -> None:
    for number, offset in enumerate((0, -2 * HOUR, 30 * DAY, -20 * DAY, 0)):
        before, after = f"before-{number}", f"after-{number}"
        assert node.post("clocked", f"/{before}").text == "done"
        clock.set(offset)
        assert node.post("clocked", f"/{after}").text == "done"
        assert delivered_after(node, before) < 15 and delivered_after(node, after) < 15
        assert (
            node.get("clocked", f"/{before}").text == "kept" and node.get("clocked", f"/short-{after}").text == "kept"
        )
        ran = node.control("POST", "/api/workers/clocked/crons/run").json
        assert ran == {"outcome": "ok", "message": ""}
        assert node.control("GET", "/api/caches").json["caches"][0]["responses"] >= 1
    for number in (0, 1, 3):  # stored while the clock was right or ahead
        assert node.get("clocked", f"/short-before-{number}").text == "kept", (
            "the entry is not expired and must still be there"
        )
    runs = node.control("GET", "/api/workers/clocked/crons").json["runs"]
    assert [(run["outcome"], run["by_hand"]) for run in runs] == [("ok", True)] * 5, "no slot runs twice or too early"
    assert node.control("GET", "/api/queues/q").json["dropped"] == 0
    assert "Traceback" not in node.log()


def test_a_clock_set_back_while_stopped_does_not_delay_messages(node: Atoll, clock: Clock) -> None:
    node.control("POST", "/api/queues/q/pause")
    assert node.post("clocked", "/stopped").text == "done"
    node.stop(signal.SIGKILL)
    clock.set(-400 * DAY)
    node.start()
    node.control("POST", "/api/queues/q/resume")
    assert delivered_after(node, "stopped") < 15
    assert "the clock was set back" in node.log()
    clock.set(0)
    assert node.post("clocked", "/right-again").text == "done" and delivered_after(node, "right-again") < 15
