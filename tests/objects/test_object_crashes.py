"""Engines and the node are killed while objects count: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import json
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable

from tests.objects.worker_under_test import ask, deploy, run
from tests.running import Atoll

OBJECTS = ("a", "b", "c")
CLIENTS = 4


class Load:
    """Clients that add ids to objects and remember which of them were acknowledged."""

    def __init__(self, node: Atoll) -> None:
        self._node = node
        self._tag = secrets.token_hex(4)
        self._stop = threading.Event()
        self.sent: dict[str, list[str]] = {name: [] for name in OBJECTS}
        self.acknowledged: dict[str, list[str]] = {name: [] for name in OBJECTS}
        self.failures: list[dict[str, object]] = []
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(CLIENTS)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, client: int) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            name, id = OBJECTS[number % len(OBJECTS)], f"{self._tag}-{client}-{number}"
            self.sent[name].append(id)
            try:
                answer = ask(self._node, "crashing", f"return counter({json.dumps(name)}).add({json.dumps(id)});")
            except OSError:  # the node is down
                time.sleep(0.01)
                continue
            if answer.status == 200 and "value" in answer.json:
                self.acknowledged[name].append(id)
            elif answer.status == 200:
                self.failures.append(answer.json)

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def check(self) -> None:
        for name in OBJECTS:
            stored = run(self._node, "crashing", f"return counter({json.dumps(name)}).ids();")
            stored = [id for id in stored if id.startswith(self._tag)]
            assert len(stored) == len(set(stored)), "something is there twice"
            assert set(self.acknowledged[name]) <= set(stored), "something that was acknowledged is lost"
            assert set(stored) <= set(self.sent[name])


def kill_again_and_again(load: Load, times: int, kill: Callable[[], None]) -> None:
    for _ in range(times):
        before = load.count
        Atoll.wait_until(lambda before=before: load.count >= before + 40, 60)  # type: ignore[misc]
        kill()
    before = load.count
    Atoll.wait_until(lambda: load.count >= before + 40, 60)


def test_engines_that_are_killed_lose_nothing(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(quarantine_seconds=0)  # else the killed engines are blamed on the worker
    deploy(node, "crashing")

    def kill() -> None:
        for pid in node.engines():
            os.kill(pid, signal.SIGKILL)

    with Load(node) as load:
        kill_again_and_again(load, 4, kill)
    load.check()
    lost = [each for each in load.failures if each.get("message") == "Network connection lost."]
    assert all(each["retryable"] and each["remote"] for each in lost)


def test_a_node_that_is_killed_loses_nothing_and_still_delivers_alarms(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll()
    deploy(node, "crashing")
    run(node, "crashing", 'return counter("alarmed").alarmIn(500);')

    def kill() -> None:
        node.stop(signal.SIGKILL)
        node.start()

    with Load(node) as load:
        kill_again_and_again(load, 3, kill)
    load.check()
    node.wait_until(lambda: run(node, "crashing", 'return counter("alarmed").alarms();')[0])
