"""Nothing acknowledged is lost, whichever process is killed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable

from tests.running import Atoll

SCRIPT = """export default { async fetch(request, env) {
  const { pathname } = new URL(request.url);
  if (request.method === "GET") return new Response(await env.KV.get(pathname));
  await env.KV.put(pathname, await request.text());
  return new Response("stored");
} }"""
WRITERS = 8
KEYS = 5


class Writer:
    """Writes rising numbers to a few keys of its own, and remembers what was acknowledged and what was only tried."""

    def __init__(self, node: Atoll, number: int) -> None:
        self.node = node
        self.keys = [f"/{number}-{i}" for i in range(KEYS)]
        self.acknowledged = dict.fromkeys(self.keys, 0)
        self.tried = dict.fromkeys(self.keys, 0)
        self.failures = 0
        self.thread = threading.Thread(target=self.run)
        self.is_over = False

    def run(self) -> None:
        count = 0
        while not self.is_over:
            count += 1
            key = self.keys[count % KEYS]
            self.tried[key] = count
            try:
                answer = self.node.post("writer", key, str(count).encode())
            except OSError:
                self.failures += 1
                time.sleep(0.01)
                continue
            if answer.status == 200:
                assert answer.text == "stored"
                self.acknowledged[key] = count
            else:
                self.failures += 1


def deploy(node: Atoll) -> None:
    node.deploy("writer", SCRIPT, bindings=[{"type": "kv", "name": "KV", "namespace": "durable"}])


def check(node: Atoll, writers: list[Writer]) -> int:
    """Every key holds what was acknowledged last, or something that was tried after it. How many keys there are."""
    total = 0
    for writer in writers:
        for key, acknowledged in writer.acknowledged.items():
            found = int(node.get("writer", key).text or 0)
            assert acknowledged <= found <= writer.tried[key], f"{key}: {acknowledged} acknowledged, {found} found"
            total += acknowledged > 0
    return total


def test_what_was_acknowledged_survives_the_death_of_engines_and_of_the_node(new_atoll: Callable[..., Atoll]) -> None:
    node, chance = new_atoll(engines=2), random.Random(7)
    deploy(node)
    writers = [Writer(node, i) for i in range(WRITERS)]
    for writer in writers:
        writer.thread.start()
    for _ in range(3):
        time.sleep(0.3)  # load, not luck: what is killed when is left to chance
        pids = node.engines()
        if pids:
            os.kill(chance.choice(pids), signal.SIGKILL)
    time.sleep(0.2)
    assert node.process is not None
    node.process.kill()
    node.process.wait()
    for writer in writers:
        writer.is_over = True
        writer.thread.join()
    node.start()
    assert check(node, writers) == WRITERS * KEYS, "all of them wrote"
    assert sum(sum(writer.acknowledged.values()) for writer in writers) > 100
    assert sum(writer.failures for writer in writers) > 0, "something was killed in the middle"
