"""Load of one worker does not delay its neighbours, even inside one engine."""

from __future__ import annotations

import ctypes
import platform
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from atoll.engine.process.confine import kernel
from tests.running import Atoll

SPIN = "export default { fetch() { for (;;); } }"
SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}
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
    assert atoll.engines() == [engine], "an engine with only busy threads still answers heartbeats"
    atoll.wait_until(lambda: all(atoll.logs(f"spin{i}") for i in range(4)))
    assert [atoll.logs(f"spin{i}")[0]["outcome"] for i in range(4)] == ["exceededCpu"] * 4


def scheduling(pid: int) -> dict[int, set[int]]:
    """The scheduler slices in ns of the threads of a process, by nice value."""
    found: dict[int, set[int]] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        attributes = ctypes.create_string_buffer(48)
        if ctypes.CDLL(None).syscall(SCHED_GETATTR[platform.machine()], int(task.name), attributes, 48, 0) == 0:
            fields = struct.unpack("=IIQiIQQQ", attributes.raw)
            found.setdefault(fields[3], set()).add(fields[5])
    return found


@pytest.mark.skipif(platform.machine() not in SCHED_GETATTR or kernel() < (6, 12), reason="needs Linux 6.12")
def test_computing_threads_get_low_priority_and_long_slices(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1)
    atoll.deploy("calm", CALM)
    assert atoll.get("calm").text == "calm"
    [engine] = atoll.engines()
    usual = scheduling(engine)
    assert set(usual) == {0, 19}, "the thread that creates spares has 19"
    atoll.deploy("burn", SPIN, limits={"cpu_ms": 2000})
    seen: list[dict[int, set[int]]] = []

    def slowed() -> bool:
        seen.append(scheduling(engine))
        return 10 in seen[-1] or burning.done()

    with ThreadPoolExecutor(1) as other:
        burning = other.submit(atoll.get, "burn")
        atoll.wait_until(slowed)
        assert seen[-1].pop(10, None) == {100_000_000}, (
            "the loop has two seconds of CPU time, so the test sees it before its end"
        )
        assert seen[-1] == usual
        assert burning.result().status == 503
