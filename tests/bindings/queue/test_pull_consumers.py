"""Messages that are pulled: leases that end, retries, dead letters. Over the store and over both APIs."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from atoll.bindings.queue.sqlite import SqliteQueues
from atoll.bindings.queue.store import NewMessage, Queue


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[SqliteQueues]:
    store = SqliteQueues(tmp_path / "queues.db", clock=clock)
    yield store
    await store.close()


async def filled(store: SqliteQueues, *bodies: bytes) -> Queue:
    queue = await store.ensure("acme", "jobs")
    await store.send(queue.id, [NewMessage("bytes", body, None) for body in bodies])
    return queue


async def test_a_pulled_message_is_hidden_until_its_lease_ends(store: SqliteQueues, clock: Clock) -> None:
    queue = await filled(store, b"one")
    [first] = await store.pull(queue.id, 10, 1000, 30_000)
    assert (first.body, first.attempts) == (b"one", 1)
    assert await store.pull(queue.id, 10, 1000, 30_000) == []
    clock.now += 31
    [again] = await store.pull(queue.id, 10, 1000, 30_000)
    assert (again.seq, again.attempts) == (first.seq, 2)
    assert await store.settle_pulled(queue.id, [(first.seq, first.attempts)], ()) == 0  # its lease has ended
    assert await store.settle_pulled(queue.id, [(again.seq, again.attempts)], ()) == 1
    assert await store.total("acme") == 0


async def test_a_lease_outlives_the_process(tmp_path: Path, clock: Clock) -> None:
    store = SqliteQueues(tmp_path / "queues.db", clock=clock)
    queue = await filled(store, b"one")
    [first] = await store.pull(queue.id, 1, 1000, 30_000)
    await store.close()
    store = SqliteQueues(tmp_path / "queues.db", clock=clock)
    assert await store.pull(queue.id, 1, 1000, 30_000) == []
    assert await store.settle_pulled(queue.id, [(first.seq, 1)], ()) == 1
    await store.close()


async def test_another_queue_cannot_settle_a_message(store: SqliteQueues) -> None:
    queue = await filled(store, b"one")
    other = await store.ensure("globex", "jobs")
    [first] = await store.pull(queue.id, 1, 1000, 30_000)
    assert await store.settle_pulled(other.id, [(first.seq, 1)], [(first.seq, 1, 0)]) == 0


async def test_a_pull_takes_what_fits_and_at_least_one(store: SqliteQueues) -> None:
    queue = await filled(store, b"x" * 600, b"y" * 600, b"z")
    assert [len(each.body) for each in await store.pull(queue.id, 10, 500, 30_000)] == [600]
    assert [len(each.body) for each in await store.pull(queue.id, 10, 700, 30_000)] == [600, 1]


async def test_a_retried_message_is_due_later(store: SqliteQueues, clock: Clock) -> None:
    queue = await filled(store, b"one")
    [first] = await store.pull(queue.id, 1, 1000, 30_000)
    assert await store.settle_pulled(queue.id, (), [(first.seq, 1, store.now() + 5_000)]) == 1
    assert await store.pull(queue.id, 1, 1000, 30_000) == []
    clock.now += 6
    assert [each.attempts for each in await store.pull(queue.id, 1, 1000, 30_000)] == [2]


async def test_spent_messages_are_buried(store: SqliteQueues, clock: Clock) -> None:
    queue, letters = await filled(store, b"one"), await store.ensure("acme", "dead")
    await store.pull(queue.id, 1, 1000, 1_000)
    assert await store.bury(queue.id, 1, 10, letters.id) == 0  # a consumer has it
    clock.now += 2
    assert await store.bury(queue.id, 2, 10, letters.id) == 0  # it has a try left
    assert await store.bury(queue.id, 1, 10, letters.id) == 1
    assert [each.body for each in await store.pull(letters.id, 1, 1000, 1_000)] == [b"one"]


async def test_the_delay_of_a_queue_holds_for_messages_without_one(store: SqliteQueues, clock: Clock) -> None:
    queue = await store.ensure("acme", "jobs")
    await store.set_delay(queue.id, 60)
    await store.send(queue.id, [NewMessage("text", b"late", None), NewMessage("text", b"now", 0)])
    assert [each.body for each in await store.pull(queue.id, 5, 1000, 1_000)] == [b"now"]
    clock.now += 61
    assert b"late" in [each.body for each in await store.pull(queue.id, 5, 1000, 1_000)]


def test_bodies_that_are_no_text_are_base64() -> None:
    from atoll.bindings.queue.cloudflare_messages import _shown
    from atoll.bindings.queue.store import Message

    assert _shown(Message(1, "a", "json", b"[1]", 0, 1))["body"] == base64.b64encode(b"[1]").decode()
    assert _shown(Message(1, "a", "text", b"hi", 0, 1))["body"] == "hi"
