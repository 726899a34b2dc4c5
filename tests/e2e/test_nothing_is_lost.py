"""Nothing acknowledged is lost: the test kills engines and Python at random under load, then checks all answers.

Threads put KV values, send queue messages and run a cron trigger all the time, and record only what was acknowledged.
`kill -9` hits an engine or the node at random. At the end the test compares.
"""

from __future__ import annotations

import http.client
import os
import random
import signal
import threading
import time
from collections.abc import Callable

from tests.running import Atoll

WORKER = """export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const body = await request.text();
    if (pathname === "/send") await env.JOBS.send(body);
    else await env.KV.put(pathname, body);
    return new Response("done");
  },
  async queue(batch, env) {
    for (const message of batch.messages) {
      if (message.attempts === 1 && message.body.endsWith("7")) message.retry();
      else await env.KV.put(`seen:${message.body}`, "1");  // durable before the message is taken off the queue
    }
  },
  scheduled() {},
};"""
BINDINGS = [{"type": "kv", "name": "KV", "namespace": "all"}, {"type": "queue", "name": "JOBS", "queue": "all"}]
CONSUMER = {"queue": "all", "max_batch_size": 5, "max_batch_timeout": 0.02, "max_retries": 100, "retry_delay": 0}
LIVES = 3
KEYS = 5
MAX_RUNS = 90  # the history keeps 100


class Doing:
    """A thread that repeats an action; `act` records what was acknowledged."""

    def __init__(self, node: Atoll, number: int) -> None:
        self.node, self.number = node, number
        self.count = self.failures = 0
        self.is_over = False
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        while not self.is_over:
            self.count += 1
            try:
                self.act()
            except (OSError, http.client.HTTPException):
                self.failures += 1
                time.sleep(0.02)  # the node is down for a moment

    def act(self) -> None:
        raise NotImplementedError

    def ask(self, path: str, body: str) -> bool:
        answer = self.node.post("lossless", path, body.encode())
        self.failures += answer.status != 200
        return answer.status == 200 and answer.text == "done"


class Putting(Doing):
    """Writes increasing numbers to a few keys of its own."""

    def __init__(self, node: Atoll, number: int) -> None:
        super().__init__(node, number)
        self.keys = [f"/{number}-{i}" for i in range(KEYS)]
        self.acknowledged = dict.fromkeys(self.keys, 0)
        self.tried = dict.fromkeys(self.keys, 0)

    def act(self) -> None:
        key = self.keys[self.count % KEYS]
        self.tried[key] = self.count
        if self.ask(key, str(self.count)):
            self.acknowledged[key] = self.count


class Sending(Doing):
    def __init__(self, node: Atoll, number: int) -> None:
        super().__init__(node, number)
        self.acknowledged: list[str] = []

    def act(self) -> None:
        word = f"{self.number}-{self.count}"
        if self.ask("/send", word):
            self.acknowledged.append(word)


class Running(Doing):
    """Runs the scheduled handler; the number of the run is its time."""

    def __init__(self, node: Atoll, number: int) -> None:
        super().__init__(node, number)
        self.acknowledged: list[int] = []

    def act(self) -> None:
        if self.count > MAX_RUNS:
            self.is_over = True
            return
        answer = self.node.control("POST", "/api/workers/lossless/crons/run", {"scheduled_time": self.count})
        if answer.status == 200 and answer.json["outcome"] == "ok":
            self.acknowledged.append(self.count)
        time.sleep(0.05)  # keeps some runs for each life of the node


def all_keys(node: Atoll) -> set[str]:
    found: set[str] = set()
    cursor = ""
    while True:
        page = node.control("GET", f"/api/kv/all/keys?limit=1000&cursor={cursor}").json
        found |= {key["name"] for key in page["keys"]}
        cursor = page.get("cursor", "")
        if not cursor:
            return found


def check_values(node: Atoll, putting: list[Putting]) -> int:
    """Every key holds the last acknowledged value, or one that was tried after it."""
    for each in putting:
        for key, acknowledged in each.acknowledged.items():
            found = int(node.control("GET", f"/api/kv/all/values/{key}").text) if acknowledged else 0
            assert acknowledged <= found <= each.tried[key], f"{key}: {acknowledged} acknowledged, {found} found"
    return sum(sum(each.acknowledged.values()) for each in putting)


def check_messages(node: Atoll, sending: list[Sending]) -> int:
    """Every message was delivered at least once."""

    def is_empty() -> bool:
        queue = node.control("GET", "/api/queues/all").json
        return bool(queue["waiting"] + queue["delayed"] + queue["leased"] == 0)

    node.wait_until(is_empty, 60)
    assert node.control("GET", "/api/queues/all").json["dropped"] == 0
    sent = {word for each in sending for word in each.acknowledged}
    missing = sent - {name.removeprefix("seen:") for name in all_keys(node)}
    assert not missing, f"{len(missing)} of {len(sent)} messages were lost: {sorted(missing)[:5]}"
    return len(sent)


def check_runs(node: Atoll, running: Running) -> int:
    """Every acknowledged run is in the history with its outcome; no run is still marked as running."""
    runs = node.control("GET", "/api/workers/lossless/crons").json["runs"]
    known = {run["scheduled_at"]: run["outcome"] for run in runs}
    for slot in running.acknowledged:
        assert known.get(f"1970-01-01T00:00:00.{slot:03}Z") == "ok", f"run {slot}: {known}"
    assert "running" not in known.values()
    return len(running.acknowledged)


def test_acknowledged_data_survives_kills(new_atoll: Callable[..., Atoll]) -> None:
    node, chance = new_atoll(engines=2), random.Random(7)
    node.deploy("lossless", WORKER, bindings=BINDINGS, queue_consumers=[CONSUMER])
    putting, sending = [Putting(node, i) for i in range(4)], [Sending(node, i) for i in range(4)]
    running = Running(node, 0)
    threads: list[Doing] = [*putting, *sending, running]
    for doing in threads:
        doing.thread.start()
    try:
        for _ in range(LIVES):
            for _ in range(3):
                time.sleep(chance.uniform(0.1, 0.5))  # generates load; the moment of a kill is random
                pids = node.engines()
                if pids:
                    os.kill(chance.choice(pids), signal.SIGKILL)
            time.sleep(chance.uniform(0.1, 0.4))
            node.stop(signal.SIGKILL)
            node.start()
    finally:
        for doing in threads:
            doing.is_over = True
        for doing in threads:
            doing.thread.join()
    assert sum(doing.failures for doing in threads) > 0, "at least one operation was interrupted"
    assert check_values(node, putting) > 100
    assert check_messages(node, sending) > 50
    assert check_runs(node, running) >= 3
