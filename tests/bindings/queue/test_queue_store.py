"""The contract of every queue store. Another backend is one more entry of BACKENDS."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from atoll.bindings.queue.postgres import PostgresQueues
from atoll.bindings.queue.sqlite import SqliteQueues
from atoll.bindings.queue.store import NewMessage, NoQueue, Queue, QueueOverQuota, QueueStore, Settlement
from atoll.clock import SteadyClock
from tests.postgres_server import opened_database

Make = Callable[[Callable[[], float]], QueueStore]


@asynccontextmanager
async def in_sqlite(folder: Path) -> AsyncIterator[Make]:
    yield lambda clock: SqliteQueues(folder / "queues.db", clock=clock)


@asynccontextmanager
async def in_postgres(folder: Path) -> AsyncIterator[Make]:
    pool = await opened_database("queue")
    yield lambda clock: PostgresQueues(pool, Alone(), clock)
    await pool.close()


class Alone:
    """A node that is alone in its cluster."""

    def __init__(self) -> None:
        self.session = secrets.token_hex(8)
        self.ahead_ms = 0

    async def live(self) -> list[str]:
        return [self.session]


BACKENDS: dict[str, Callable[[Path], AbstractAsyncContextManager[Make]]] = {
    "sqlite": in_sqlite,
    "postgres": in_postgres,
}
NOW = 1_800_000_000


class Clock:
    now = float(NOW)

    def __call__(self) -> float:
        return self.now


class Opened:
    """A store that can be reopened as after a crash, without settling anything first."""

    def __init__(self, make: Callable[[Callable[[], float]], QueueStore]) -> None:
        self.make = make
        self.clock = Clock()
        self.store = make(self.clock)

    async def reopen(self) -> QueueStore:
        await self.store.close()
        self.store = self.make(self.clock)
        return self.store


@pytest.fixture(params=BACKENDS)
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened]:
    async with BACKENDS[request.param](tmp_path) as make:
        made = Opened(make)
        yield made
        await made.store.close()


@pytest.fixture
async def jobs(opened: Opened) -> Queue:
    return await opened.store.ensure("alice", "jobs")


def message(body: bytes, delay: int = 0) -> NewMessage:
    return NewMessage("text", body, delay)


async def bodies(store: QueueStore, queue: Queue, limit: int = 10) -> list[bytes]:
    return [leased.body for leased in await store.lease(queue.id, limit)]


async def test_messages_are_leased_once_in_the_order_of_their_due_times(opened: Opened, jobs: Queue) -> None:
    store = opened.store
    ids = await store.send(jobs.id, [message(b"2", 5), message(b"1"), message(b"3", 9)])
    assert len(set(ids)) == 3 and all(len(number) == 32 for number in ids)
    assert await store.due(jobs.id, 10) == [NOW * 1000, (NOW + 5) * 1000, (NOW + 9) * 1000]
    assert await bodies(store, jobs) == [b"1"] and await bodies(store, jobs) == []
    opened.clock.now += 20
    [second] = await store.lease(jobs.id, 1)
    assert (second.body, second.id, second.attempts, second.sent_at) == (b"2", ids[0], 1, NOW * 1000)
    assert (await store.depth(jobs.id))[:4] == (1, 0, 2, NOW * 1000)


async def test_the_results_of_messages_are_settled_in_one_transaction(opened: Opened, jobs: Queue) -> None:
    store = opened.store
    dead = await store.ensure("alice", "dead")
    await store.send(jobs.id, [message(body) for body in (b"done", b"again", b"dead")])
    done, again, lost = await store.lease(jobs.id, 10)
    await store.settle(jobs.id, Settlement([done.seq], [(again.seq, (NOW + 30) * 1000)], [lost.seq], dead.id))
    assert (await store.depth(jobs.id))[:4] == (0, 1, 0, NOW * 1000)
    [letter] = await store.lease(dead.id, 10)
    assert (letter.id, letter.body, letter.attempts) == (lost.id, b"dead", 1)
    opened.clock.now += 30
    [retried] = await store.lease(jobs.id, 10)
    assert (retried.body, retried.attempts) == (b"again", 2)
    await store.settle(jobs.id, Settlement([], [], [retried.seq]))
    found = await store.find("alice", "jobs")
    assert found is not None and found.dropped == 1
    assert (await store.depth(jobs.id))[:3] == (0, 0, 0)


async def test_an_attempt_that_no_handler_saw_does_not_count(opened: Opened, jobs: Queue) -> None:
    store = opened.store
    await store.send(jobs.id, [NewMessage("json", b"1", 0)])
    (first,) = await store.lease(jobs.id, 10)
    await store.settle(jobs.id, Settlement([], [], [], untried=[(first.seq, 0)]))
    (second,) = await store.lease(jobs.id, 10)
    assert (first.attempts, second.attempts, second.id) == (1, 1, first.id)


async def test_messages_leased_by_a_dead_process_wait_again(opened: Opened, jobs: Queue) -> None:
    await opened.store.send(jobs.id, [message(b"once")])
    [first] = await opened.store.lease(jobs.id, 10)
    store = await opened.reopen()
    [again] = await store.lease(jobs.id, 10)
    assert (again.id, again.attempts) == (first.id, 2)


async def test_queues_of_two_tenants_with_the_same_name_are_separate(opened: Opened, jobs: Queue) -> None:
    store = opened.store
    theirs = await store.ensure("bob", "jobs")
    await store.send(jobs.id, [message(b"alice's")])
    assert await bodies(store, theirs) == [] and (await store.depth(theirs.id)).waiting == 0
    assert await store.peek(theirs.id, 0, 10) == []
    assert await store.purge(theirs.id) == 0
    await store.delete(theirs.id)
    assert await bodies(store, jobs) == [b"alice's"]
    assert [queue.name for queue in await store.all("bob")] == []
    assert [(queue.tenant, queue.name) for queue in await store.some(10)] == [("alice", "jobs")]


async def test_a_queue_is_created_once_paused_configured_and_deleted(opened: Opened, jobs: Queue) -> None:
    store = opened.store
    told: list[int] = []
    store.on_change(told.append)
    assert await store.ensure("alice", "jobs", 60) == jobs
    await store.pause(jobs.id, True)
    await store.retain(jobs.id, 60)
    assert await store.find("alice", "jobs") == jobs._replace(paused=True, retention=60)
    await store.delete(jobs.id)
    assert await store.find("alice", "jobs") is None
    assert set(told) == {jobs.id}


async def test_a_message_to_a_queue_deleted_meanwhile_is_refused(opened: Opened, jobs: Queue) -> None:
    store = opened.store
    deleted, sent = asyncio.gather(store.delete(jobs.id)), asyncio.gather(store.send(jobs.id, [message(b"late")]))
    await deleted
    with pytest.raises(NoQueue):
        await sent
    again = await store.ensure("alice", "jobs")
    assert await store.find("alice", "jobs") == again and await bodies(store, again) == []
    assert again.id != jobs.id, "it does not reach another queue either: ids are never reused"
    await store.delete(again.id)
    store = await opened.reopen()
    assert (await store.ensure("bob", "jobs")).id not in (jobs.id, again.id)


async def test_listing_messages_changes_nothing(opened: Opened, jobs: Queue) -> None:
    store = opened.store
    await store.send(jobs.id, [message(b"%d" % i, i) for i in range(5)])
    [leased] = await store.lease(jobs.id, 1)
    first, second = await store.peek(jobs.id, 0, 2)
    assert (first.body, first.leased, first.attempts) == (b"0", 1, 1)
    assert (second.body, second.leased, second.attempts, second.visible_at) == (b"1", 0, 0, (NOW + 1) * 1000)
    assert [seen.body for seen in await store.peek(jobs.id, second.seq, 9)] == [b"2", b"3", b"4"]
    assert (await store.depth(jobs.id))[:4] == (0, 4, 1, NOW * 1000) and leased.body == b"0"


async def test_purging_keeps_leased_messages(opened: Opened, jobs: Queue) -> None:
    store = opened.store
    await store.send(jobs.id, [message(b"1"), message(b"2"), message(b"3", 60)])
    [held] = await store.lease(jobs.id, 1)
    assert await store.purge(jobs.id) == 2
    await store.settle(jobs.id, Settlement([], [(held.seq, 0)], []))
    assert await bodies(store, jobs) == [b"1"]


async def test_a_message_beyond_the_retention_of_its_queue_is_swept(opened: Opened, jobs: Queue) -> None:
    store = opened.store
    short = await store.ensure("alice", "short", 60)
    for queue in (jobs, short):
        await store.send(queue.id, [message(b"old")])
    opened.clock.now += 60
    await store.send(short.id, [message(b"new")])
    await store.sweep()
    assert (await store.depth(short.id)).waiting == 2
    opened.clock.now += 1
    await store.sweep()
    assert await bodies(store, short) == [b"new"] and await bodies(store, jobs) == [b"old"]


async def test_a_sweep_removes_any_number_of_old_messages(opened: Opened) -> None:
    store = opened.store
    short = await store.ensure("alice", "short", 60)
    await store.send(short.id, [message(b"old")] * 2_500)
    opened.clock.now += 61
    await store.send(short.id, [message(b"new")])
    await store.sweep()
    depth = await store.depth(short.id)
    assert (depth.waiting, depth.bytes) == (1, 3 + 128)


async def test_no_message_is_deleted_by_a_clock_that_jumped_while_the_node_was_stopped(opened: Opened) -> None:
    assert not await opened.store.trusts_clock(), "the clock has not been seen before"
    await opened.store.sweep()
    assert await (await opened.reopen()).trusts_clock()
    opened.clock.now += 86_000  # the node was stopped for nearly a day
    assert await (await opened.reopen()).trusts_clock()
    opened.clock.now += 1_000
    assert not await (await opened.reopen()).trusts_clock()
    await opened.store.sweep()  # an hour passed without a correction, so the clock is trusted
    assert await (await opened.reopen()).trusts_clock()
    opened.clock.now -= 1_000_000  # nothing is old by a clock that is behind
    assert await (await opened.reopen()).trusts_clock()
    await opened.store.sweep()
    opened.clock.now += 1_000_000
    assert not await (await opened.reopen()).trusts_clock(), (
        "the clock was corrected, so messages sent meanwhile look old"
    )


@pytest.mark.parametrize("opened", ["sqlite"], indirect=True)  # in PostgreSQL the time is the server's
async def test_a_clock_set_back_while_the_node_was_stopped_delays_nothing(opened: Opened, jobs: Queue) -> None:
    await opened.store.send(jobs.id, [message(b"now"), message(b"in a minute", 60)])
    opened.clock.now -= 365 * 86_400
    store = await opened.reopen()
    assert await bodies(store, jobs) == [b"now"]
    opened.clock.now += 60
    assert await bodies(store, jobs) == [b"in a minute"]
    await store.sweep()
    assert (await store.depth(jobs.id)).leased == 2


def test_the_steady_clock_continues_whatever_the_wall_clock_does() -> None:
    wall, up = 1_000.0, 50.0
    clock = SteadyClock(lambda: wall, lambda: up)
    wall, up = -5.0, 53.0
    assert clock() == 1_003


async def test_stored_messages_are_counted_and_bounded_per_tenant(opened: Opened, jobs: Queue) -> None:
    store = opened.store
    more, other = await store.ensure("alice", "more"), await store.ensure("bob", "jobs")
    store.bound("alice", 1_000)
    await store.send(jobs.id, [message(bytes(300)), message(bytes(100))])
    assert (await store.depth(jobs.id)).bytes == await store.total("alice") == 656
    with pytest.raises(QueueOverQuota, match="1,001 bytes in queues, more than its quota of 1,000"):
        await store.send(more.id, [message(bytes(80)), message(bytes(9))])
    assert (await store.depth(more.id)).waiting == 0, "all or nothing"
    await store.send(more.id, [message(bytes(80)), message(bytes(8))])
    assert await store.total("alice") == 1_000
    await store.send(other.id, [message(bytes(2_000))])
    [first] = await store.lease(jobs.id, 1)
    with pytest.raises(QueueOverQuota):
        await store.send(more.id, [message(b"")])
    await store.settle(jobs.id, Settlement([first.seq], [], []))
    await store.send(more.id, [message(b"")])
    store = await opened.reopen()
    assert await store.total("alice") == 1_000 - 428 + 128
    assert await store.purge(jobs.id) == 1
    await store.delete(more.id)
    assert await store.total("alice") == 0 and await store.total("bob") == 2_128


async def test_dead_letters_are_stored_even_at_the_limit_of_a_tenant(opened: Opened, jobs: Queue) -> None:
    store = opened.store
    letters = await store.ensure("alice", "letters")
    await store.send(jobs.id, [message(bytes(100))])
    store.bound("alice", 10)
    [leased] = await store.lease(jobs.id, 1)
    await store.settle(jobs.id, Settlement([], [], [leased.seq], letters.id))
    assert await store.total("alice") == 228 == (await store.depth(letters.id)).bytes
    store.bound("alice", None)
    await store.send(jobs.id, [message(bytes(5_000))])


async def test_the_storage_limit_of_queues_is_exact(opened: Opened, jobs: Queue) -> None:
    store = opened.store
    store.bound("alice", 5_000)
    for _ in range(30):
        await asyncio.gather(*(store.send(jobs.id, [message(bytes(72))]) for _ in range(10)))
        await store.settle(jobs.id, Settlement([m.seq for m in await store.lease(jobs.id, 10)], [], []))
    sent = await asyncio.gather(*(store.send(jobs.id, [message(bytes(72))]) for _ in range(40)), return_exceptions=True)
    assert sum(isinstance(answer, QueueOverQuota) for answer in sent) == 15
    assert await store.total("alice") == 5_000
