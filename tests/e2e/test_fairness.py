"""One worker's load is not its neighbours' wait, also inside one engine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tests.running import Atoll

SPIN = "export default { fetch() { for (;;); } }"
CALM = "export default { fetch() { return new Response('calm'); } }"


def test_more_loops_than_threads_do_not_stop_a_neighbour(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1, engine_threads=2)
    for i in range(4):
        atoll.deploy(f"spin{i}", SPIN, limits={"cpu_ms": 1000})
    atoll.deploy("calm", CALM)
    [engine] = atoll.engines()
    loops = [threading.Thread(target=atoll.get, args=(f"spin{i}",)) for i in range(4)]
    for loop in loops:
        loop.start()
    time.sleep(0.1)
    waits = []
    while any(loop.is_alive() for loop in loops):
        started = time.monotonic()
        assert atoll.get("calm").text == "calm"
        waits.append(time.monotonic() - started)
    assert len(waits) > 5 and sorted(waits)[len(waits) // 2] < 0.5, waits
    assert atoll.engines() == [engine], "an engine whose threads are all busy still answers its heartbeat"
    assert [atoll.logs(f"spin{i}")[0]["outcome"] for i in range(4)] == ["exceededCpu"] * 4
