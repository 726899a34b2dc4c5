"""The disk becomes full, read-only or damaged under a running node: clear errors, nothing lost, service continues."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from tests.disks import breaking_disk, small_disk
from tests.running import Answer, Atoll

WORKER = """export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const body = await request.text();
    try {
      if (pathname === "/put") await env.KV.put(searchParams.get("key"), body);
      else if (pathname === "/get") return new Response(await env.KV.get(searchParams.get("key")));
      else if (pathname === "/send") await env.JOBS.send({ word: searchParams.get("key"), body });
      else if (pathname === "/cache") {
        const url = `http://cached/${searchParams.get("key")}`;
        await caches.default.put(url, new Response(body));
        return new Response((await caches.default.match(url)) ? "hit" : "miss");
      }
      return new Response("done");
    } catch (error) {
      return new Response(`${error}`, { status: 507 });
    }
  },
  async queue(batch, env) { for (const { body } of batch.messages) await env.KV.put(`seen:${body.word}`, "1"); },
  scheduled() {},
};"""
BINDINGS = [{"type": "kv", "name": "KV", "namespace": "faults"}, {"type": "queue", "name": "JOBS", "queue": "faults"}]
CONSUMER = {"queue": "faults", "max_batch_size": 10, "max_batch_timeout": 0.05, "retry_delay": 0}
PIECE = b"x" * 60_000
MOST = 2_000  # more than fits on a small disk


class Load:
    """Uses one binding after the other and records what the node acknowledged."""

    def __init__(self, node: Atoll) -> None:
        self.node = node
        self.stored: list[str] = []
        self.sent: list[str] = []
        self.ran: list[int] = []
        self.count = 0

    def deploy(self) -> None:
        self.node.deploy("faults", WORKER, bindings=BINDINGS, queue_consumers=[CONSUMER])

    def ask(self, path: str) -> Answer:
        self.count += 1
        answer = self.node.post("faults", f"{path}?key={self.count}", PIECE)
        if answer.status == 200:
            {"/put": self.stored, "/send": self.sent}.get(path, []).append(str(self.count))
        return answer

    def run_cron(self) -> Answer:
        self.count += 1
        path, body = "/api/workers/faults/crons/run", {"scheduled_time": self.count}
        answer = self.node.control("POST", path, body)
        if answer.status == 200:
            assert answer.json["outcome"] == "ok"
            self.ran.append(self.count)
        return answer

    def all_well(self) -> None:
        assert self.ask("/put").text == "done"
        assert self.ask("/send").text == "done"
        assert self.ask("/cache").text == "hit"
        assert self.run_cron().status == 200

    def until_refused(self, act: Callable[[], Answer]) -> Answer:
        for _ in range(MOST):
            answer = act()
            if answer.status != 200:
                return answer
        raise AssertionError("the disk never came to its end")

    def check(self) -> None:
        """Everything acknowledged is there."""
        node = self.node
        node.wait_until(lambda: waiting(node) == 0, 40)
        for key in self.stored:
            assert node.get("faults", f"/get?key={key}").body == PIECE
        for key in self.sent:
            assert node.get("faults", f"/get?key=seen:{key}").text == "1", f"the message {key} was not delivered"
        assert node.control("GET", "/api/queues/faults").json["dropped"] == 0
        runs = node.control("GET", "/api/workers/faults/crons").json["runs"]
        known = {run["scheduled_at"]: run["outcome"] for run in runs}
        for slot in self.ran[-100:]:
            assert known[f"1970-01-01T00:00:{slot // 1000:02}.{slot % 1000:03}Z"] == "ok"

    def has_records(self, path: str) -> bool:
        return any(path in record["url"] for record in self.node.logs("faults"))


def waiting(node: Atoll) -> int:
    queue = node.control("GET", "/api/queues/faults").json
    return int(queue["waiting"] + queue["delayed"] + queue["leased"])


def test_a_full_disk_is_reported_loses_nothing_and_recovers(tmp_path: Path, new_atoll: Callable[..., Atoll]) -> None:
    with small_disk(tmp_path / "disk") as disk:
        node = new_atoll(data=disk.folder / "data", engines=1)
        load = Load(node)
        load.deploy()
        load.all_well()
        node.control("POST", "/api/queues/faults/pause")
        disk.fill()
        full = "the disk of this node is full"
        assert load.until_refused(lambda: load.ask("/put")).text == f"Error: KV PUT failed: 507 {full}"
        assert load.until_refused(lambda: load.ask("/send")).text == f"Error: Queue send failed: {full}"
        refused = load.until_refused(load.run_cron)
        assert refused.status == 507 and refused.json["error"]["message"] == full
        assert [load.ask("/cache").status for _ in range(50)] == [200] * 50, "a full cache only misses"
        assert node.get("faults", f"/get?key={load.stored[0]}").body == PIECE, "reading continues"
        deploy = load.until_refused(
            lambda: node.control("PUT", "/api/workers/faults", {"script": WORKER + "//" + "x" * 90_000})
        )
        assert deploy.status == 507 and deploy.json["error"]["message"] == full
        assert node.control("GET", "/metrics").status == 200 and node.is_healthy()
        disk.free()
        load.all_well()
        node.control("POST", "/api/queues/faults/resume")
        load.check()
        assert node.post("faults", "/logged-again").status == 200
        node.wait_until(lambda: load.has_records("/logged-again"), 20)
        assert "Traceback" not in node.log()
        assert node.stop() == 0


def test_a_node_stops_and_starts_on_a_full_disk_and_delivers_when_there_is_room(
    tmp_path: Path, new_atoll: Callable[..., Atoll]
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        node = new_atoll(data=disk.folder / "data", engines=1)
        load = Load(node)
        load.deploy()
        node.control("POST", "/api/queues/faults/pause")
        load.all_well()
        disk.fill()
        load.until_refused(lambda: load.ask("/send"))
        assert node.stop(signal.SIGTERM) == 0
        node.start()
        assert node.get("faults", f"/get?key={load.stored[0]}").body == PIECE
        disk.free()
        node.control("POST", "/api/queues/faults/resume")
        load.all_well()
        load.check()


def test_a_disk_that_becomes_read_only_is_reported_and_recovers_after_repair(
    tmp_path: Path, new_atoll: Callable[..., Atoll]
) -> None:
    with breaking_disk(tmp_path / "disk") as disk:
        node = new_atoll(data=disk.folder / "data", engines=1)
        load = Load(node)
        load.deploy()
        load.all_well()
        node.control("POST", "/api/queues/faults/pause")
        load.all_well()
        disk.break_down()
        words = ("cannot be read or written", "cannot be written to", "cannot be opened")
        for text in (load.ask("/put").text, load.ask("/send").text, load.run_cron().json["error"]["message"]):
            assert any(word in text for word in words), text
        assert load.ask("/cache").status == 200
        assert node.get("faults", f"/get?key={load.stored[0]}").body == PIECE, "reading continues"
        refused = node.control("PUT", "/api/workers/faults", {"script": WORKER + "// new"})
        assert refused.status == 507 and any(word in refused.text for word in words)
        assert node.get("faults").status == 200 and node.is_healthy()
        disk.unmount()
        node.wait_until(disk.is_free, 20)  # the node has closed its files: otherwise the disk could not be repaired
        assert "the storage of this node is not available" in load.ask("/put").text
        assert node.get("faults").text == "done", "a call without storage still works"
        [engine] = node.engines()
        os.kill(engine, signal.SIGKILL)
        node.wait_until(lambda: node.get("faults").status == 200, 20)
        disk.repair()
        node.wait_until(lambda: "/data is back" in node.log(), 20)
        assert node.control("POST", "/api/queues/faults/resume").status == 200
        load.all_well()
        load.check()
        assert node.control("PUT", "/api/workers/faults", {"script": WORKER + "// new"}).status == 200
        assert "Traceback" not in node.log()
        assert node.stop() == 0
        node.start()
        load.check()
        node.stop()
