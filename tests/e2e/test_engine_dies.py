"""Engines that die: what was in them fails clearly, and nothing else happens."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable

from tests.running import Atoll, alive

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
    os.kill(engine, signal.SIGKILL)
    assert atoll.get("quick", "/?a").text == "?a", "a call made while no engine runs waits for the next one"
    for thread in threads:
        thread.join()
    assert answers == [(502, "1101")] * 3
    assert engine not in atoll.engines() and len(atoll.engines()) == 1


def test_load_goes_on_while_engines_are_killed(new_atoll: Callable[..., Atoll]) -> None:
    """A short run of bench/soak.py: no wrong answer, no hang, only calls of a killed engine fail."""
    atoll = new_atoll(engines=2)
    for i in range(8):
        atoll.deploy(
            f"w{i}", f"export default {{ fetch(r) {{ return new Response('{i}' + new URL(r.url).search); }} }}"
        )
    stop = time.monotonic() + 12
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []

    def load(seed: int) -> None:
        choose = random.Random(seed)
        while time.monotonic() < stop:
            worker, mark = choose.randrange(8), f"?{choose.random()}"
            reply = atoll.get(f"w{worker}", f"/{mark}", {"Accept": "text/plain"})
            if reply.status == 200 and reply.text == f"{worker}{mark}":
                outcomes["ok"] += 1
            elif reply.status == 502:
                outcomes["engine died"] += 1
            else:
                wrong.append(f"{reply.status} {reply.text[:200]}")

    threads = [threading.Thread(target=load, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    kills = 0
    while time.monotonic() < stop - 3:
        time.sleep(2)
        engines = atoll.engines()
        os.kill(random.choice(engines), signal.SIGKILL)
        kills += 1
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "a request hangs"
    assert wrong == []
    assert outcomes["ok"] > 200, "thousands on a quiet machine"
    assert outcomes["engine died"] <= kills * 6
    atoll.wait_until(lambda: len(atoll.engines()) == 2)


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
