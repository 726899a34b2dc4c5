"""One worker's load is not its neighbours' wait, also inside one engine."""

from __future__ import annotations

import ctypes
import platform
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from atoll.engine import slices
from atoll.engine.confine import kernel
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
    atoll.wait_until(lambda: all(atoll.logs(f"spin{i}") for i in range(4)))
    assert [atoll.logs(f"spin{i}")[0]["outcome"] for i in range(4)] == ["exceededCpu"] * 4


def scheduling(pid: int) -> set[tuple[int, int]]:
    """The nice value and the slice in ns of every thread of a process."""
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        attributes = ctypes.create_string_buffer(48)
        number = slices.SCHED_SETATTR[platform.machine()] + 1  # sched_getattr
        if ctypes.CDLL(None).syscall(number, int(task.name), attributes, 48, 0) == 0:
            fields = struct.unpack("=IIQiIQQQ", attributes.raw)
            found.add((fields[3], fields[5]))
    return found


@pytest.mark.skipif(platform.machine() not in slices.SCHED_SETATTR or kernel() < (6, 12), reason="needs Linux 6.12")
def test_who_computes_has_low_priority_and_all_others_have_short_slices(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1)
    atoll.deploy("calm", CALM)
    assert atoll.get("calm").text == "calm"
    [engine] = atoll.engines()
    assert (0, slices.SHORT_NS) in scheduling(atoll.pid)
    assert scheduling(engine) <= {(0, slices.SHORT_NS), (19, slices.SHORT_NS)}, "the one that makes spares is at 19"
    atoll.deploy("burn", "export default { fetch() { for (let i = 0; i < 3e8; i++); return new Response('done'); } }",
                 limits={"cpu_ms": 30_000})  # fmt: skip
    assert atoll.get("burn").text == "done"
    slow = [slice_ns for nice, slice_ns in scheduling(engine) if nice == 10]
    assert slow and all(slice_ns > slices.SHORT_NS for slice_ns in slow)
