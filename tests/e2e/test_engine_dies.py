"""Engines that die: their calls fail with a clear error, and nothing else happens."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable

from tests.running import Atoll, FairClock, alive

KILLS = 5
ANSWERS = 1_000

SLOW = """let began = 0;
export default { async fetch(request) {
  if (request.url.endsWith("/began")) return new Response(String(began));
  began++;
  await new Promise((resolve) => setTimeout(resolve, 20_000));
  return new Response("slow");
} };"""
QUICK = "export default { fetch(request) { return new Response(new URL(request.url).search); } }"


def test_a_killed_engine_costs_its_calls_a_clear_502_and_is_replaced(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1)
    atoll.deploy("slow", SLOW)
    atoll.deploy("quick", QUICK)
    [engine] = atoll.engines()
    answers: list[tuple[int, str]] = []

    def ask() -> None:
        reply = atoll.get("slow", headers={"Accept": "application/json"})
        answers.append((reply.status, reply.headers["x-atoll-error"] or ""))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    atoll.wait_until(lambda: atoll.get("slow", "/began").text == "3")
    clock = FairClock(lambda: [os.getpid(), atoll.pid, *atoll.engines()])
    os.kill(engine, signal.SIGKILL)
    assert atoll.get("quick", "/?a").text == "?a", "a call made while no engine runs waits for the next engine"
    assert clock.seconds < 3
    for thread in threads:
        thread.join()
    assert answers == [(502, "1101")] * 3
    assert engine not in atoll.engines() and len(atoll.engines()) == 1


def test_load_continues_while_engines_are_killed(new_atoll: Callable[..., Atoll]) -> None:
    """A short run of bench/soak.py: no wrong answer, no hang, only calls of a killed engine fail, and service recovers."""
    atoll = new_atoll(engines=2)
    for i in range(8):
        atoll.deploy(
            f"w{i}", f"export default {{ fetch(r) {{ return new Response('{i}' + new URL(r.url).search); }} }}"
        )
    load = Load(atoll, clients=6, workers=8)
    try:
        for kill in range(1, KILLS + 1):
            engines = atoll.engines()
            assert len(engines) == 2
            clock = FairClock(lambda: [os.getpid(), atoll.pid, *atoll.engines()])
            os.kill(random.choice(engines), signal.SIGKILL)
            load.answered = set()  # calls that started earlier may belong to the old engine
            atoll.wait_until(lambda: len(load.answered) == 8, 60)
            assert clock.seconds < 3, "every worker answers again"
            atoll.wait_until(lambda kill=kill: load.outcomes["ok"] > ANSWERS * kill // KILLS, 60)
            atoll.wait_until(lambda: len(atoll.engines()) == 2)
    finally:
        load.stop()
    assert load.wrong == []
    assert load.outcomes["engine died"] <= KILLS * 6


class Load:
    """Clients that call one worker after the other until they are stopped."""

    def __init__(self, atoll: Atoll, clients: int, workers: int) -> None:
        self._atoll = atoll
        self._workers = workers
        self._stopped = False
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.answered: set[int] = set()  # workers; the test replaces the set, and later answers fill it
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(clients)]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int) -> None:
        while not self._stopped:
            number += 1
            worker, mark, answered = number % self._workers, f"?{random.random()}", self.answered
            reply = self._atoll.get(f"w{worker}", f"/{mark}", {"Accept": "text/plain"})
            if reply.status == 200 and reply.text == f"{worker}{mark}":
                self.outcomes["ok"] += 1
                answered.add(worker)
            elif reply.status == 502:
                self.outcomes["engine died"] += 1
            else:
                self.wrong.append(f"{reply.status} {reply.text[:200]}")

    def stop(self) -> None:
        self._stopped = True
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a request hangs"


def test_stopping_leaves_no_process_behind(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll()
    engines = atoll.engines()
    assert len(engines) == 2
    assert atoll.stop() == 0
    assert [pid for pid in engines if alive(pid)] == []


def test_engines_die_with_a_killed_node(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll()
    engines = atoll.engines()
    atoll.stop(signal.SIGKILL)
    atoll.wait_until(lambda: not any(alive(pid) for pid in engines))
