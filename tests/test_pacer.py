"""Shares of the event loop's time and of a tenant's memory."""

from __future__ import annotations

import asyncio
import time

import pytest

from atoll.holdings import FREE_BYTES, SHED_AT, Holdings
from atoll.pacer import TURN_SECONDS, Pacer


class Work:
    """A number of steps of one millisecond each."""

    def __init__(self, steps: int, done: list[str], name: str = "") -> None:
        self.left = steps
        self.done = done
        self.name = name

    def step(self) -> bool:
        until = time.perf_counter() + 0.001
        while time.perf_counter() < until:
            pass
        self.left -= 1
        self.done.append(self.name)
        return self.left > 0


async def longest_turn(works: list[Work]) -> float:
    longest = 0.0
    before = time.thread_time()  # CPU time: the machine may be busy with other work
    while any(work.left for work in works):
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, before = max(longest, now - before), now
    return longest


async def test_a_little_work_is_done_at_once() -> None:
    work = Work(1, [])
    assert Pacer().run("a", work.step)
    assert not work.left


async def test_one_turn_takes_a_bounded_time() -> None:
    pacer = Pacer()
    works = [Work(20, []) for _ in range(20)]
    began = time.thread_time()
    for number, work in enumerate(works):
        pacer.run(f"tenant {number % 3}", work.step)
    assert time.thread_time() - began < 4 * TURN_SECONDS
    assert await longest_turn(works) < 5 * TURN_SECONDS


async def test_a_tenant_with_many_connections_gets_no_larger_share() -> None:
    pacer, done = Pacer(), list[str]()
    pacer.run("first", Work(20, done, "spent").step)  # uses up the time of this turn
    many = [Work(10, done, "many") for _ in range(20)]
    one = Work(10, done, "one")
    for work in many:
        pacer.run("a", work.step)
    pacer.run("b", one.step)
    await longest_turn([one])
    assert done.count("many") <= 12


async def test_failing_work_does_not_stop_the_rest() -> None:
    pacer, done = Pacer(), list[str]()
    pacer.run("first", Work(20, done).step)

    def fail() -> bool:
        raise RuntimeError("a bug")

    work = Work(2, done)
    pacer.run("a", fail)
    pacer.run("a", work.step)
    await longest_turn([work])


async def test_a_piece_of_work_is_done_at_once_or_when_its_turn_comes() -> None:
    pacer = Pacer()
    assert await pacer.do("a", lambda: "at once") == "at once"
    pacer.run("first", Work(8, []).step)
    assert not pacer.has_time
    waiting = pacer.do("a", lambda: "later")
    later = waiting.send(None)  # it does not return: there is no time left
    await asyncio.wait([later])
    assert later.result() == "later"
    waiting.close()
    pacer.run("first", Work(8, []).step)
    with pytest.raises(ZeroDivisionError):
        await pacer.do("a", lambda: 1 // 0)


class Connection:
    def __init__(self) -> None:
        self.is_shed = False

    def shed(self) -> None:
        self.is_shed = True


def test_only_the_connection_that_holds_the_most_is_closed() -> None:
    held = Holdings(10 * FREE_BYTES // SHED_AT)
    small, large, other = Connection(), Connection(), Connection()
    held.note("b", other, 9 * FREE_BYTES)
    held.note("a", large, 6 * FREE_BYTES)
    for size in range(2, 6):
        held.note("a", small, size * FREE_BYTES)
    assert large.is_shed and not small.is_shed and not other.is_shed
    assert held.total("a") == 5 * FREE_BYTES


def test_released_memory_of_a_connection_is_not_counted() -> None:
    held = Holdings()
    connection = Connection()
    held.note("a", connection, 5 * FREE_BYTES)
    held.note("a", connection, 2 * FREE_BYTES)
    assert held.total("a") == 2 * FREE_BYTES
    held.note("a", connection, FREE_BYTES)
    assert held.total("a") == 0
    held.note("a", connection, 0)
    assert held.total("a") == 0


def test_a_tenant_is_tight_while_it_holds_more_than_its_room() -> None:
    held = Holdings(100)
    held.count("a", 100)
    assert not held.is_tight("a")
    held.count("a", 1)
    assert held.is_tight("a") and not held.is_tight("b")
    held.count("a", -1)
    assert not held.is_tight("a")


def test_bytes_that_can_wait_shed_nobody_by_themselves() -> None:
    held = Holdings(FREE_BYTES)
    connection = Connection()
    held.note("a", connection, 2 * FREE_BYTES)
    held.count("a", 10 * FREE_BYTES)
    held.note("a", connection, 2 * FREE_BYTES)
    assert not connection.is_shed
    held.note("a", connection, 2 * FREE_BYTES + 1)
    assert connection.is_shed and held.total("a") == 10 * FREE_BYTES
