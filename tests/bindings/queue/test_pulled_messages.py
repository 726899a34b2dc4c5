"""Messages that are pulled: leases that end, retries, dead letters. Over the store and over both APIs."""

from __future__ import annotations

import asyncio
import base64

import pytest

from atoll.bindings.queue.store import NewMessage, Queue, QueueStore
from tests.bindings.queue.test_queue_store import Clock, Opened
from tests.bindings.queue.test_queue_store import opened as opened  # the fixture: every backend
from tests.running import Atoll


@pytest.fixture
def clock(opened: Opened) -> Clock:
    return opened.clock


@pytest.fixture
def store(opened: Opened) -> QueueStore:
    return opened.store


async def filled(store: QueueStore, *bodies: bytes) -> Queue:
    queue = await store.ensure("acme", "jobs")
    await store.send(queue.id, [NewMessage("bytes", body, None) for body in bodies])
    return queue


async def test_a_pulled_message_is_hidden_until_its_lease_ends(store: QueueStore, clock: Clock) -> None:
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


async def test_a_lease_outlives_the_process(opened: Opened) -> None:
    queue = await filled(opened.store, b"one")
    [first] = await opened.store.pull(queue.id, 1, 1000, 30_000)
    store = await opened.reopen()
    assert await store.pull(queue.id, 1, 1000, 30_000) == []
    assert await store.settle_pulled(queue.id, [(first.seq, 1)], ()) == 1


async def test_pulls_at_once_take_each_message_once_in_order(store: QueueStore) -> None:
    queue = await filled(store, *(b"%d" % i for i in range(60)))
    pulls = await asyncio.gather(*(store.pull(queue.id, 10, 10_000, 30_000) for _ in range(8)))
    taken = [each.seq for pulled in pulls for each in pulled]
    assert len(taken) == len(set(taken)) and all(pulled == sorted(pulled) for pulled in pulls)
    taken += [each.seq for each in await store.pull(queue.id, 60, 10_000, 30_000)]
    assert len(set(taken)) == 60


async def test_made_up_leases_settle_nothing(store: QueueStore) -> None:
    queue = await filled(store, b"one")
    [first] = await store.pull(queue.id, 1, 1000, 30_000)
    huge = (1 << 62) - 1
    made_up = [(first.seq, huge), (huge, 1), (first.seq, 0)]
    assert await store.settle_pulled(queue.id, made_up, [(*each, 0) for each in made_up]) == 0
    assert await store.settle_pulled(queue.id, (), ()) == 0
    assert await store.settle_pulled(queue.id, [(first.seq, 1), (first.seq, 1)], ()) == 1


async def test_another_queue_cannot_settle_a_message(store: QueueStore) -> None:
    queue = await filled(store, b"one")
    other = await store.ensure("globex", "jobs")
    [first] = await store.pull(queue.id, 1, 1000, 30_000)
    assert await store.settle_pulled(other.id, [(first.seq, 1)], [(first.seq, 1, 0)]) == 0


async def test_a_pull_takes_what_fits_and_at_least_one(store: QueueStore) -> None:
    queue = await filled(store, b"x" * 600, b"y" * 600, b"z")
    assert [len(each.body) for each in await store.pull(queue.id, 10, 500, 30_000)] == [600]
    assert [len(each.body) for each in await store.pull(queue.id, 10, 700, 30_000)] == [600, 1]


async def test_a_retried_message_is_due_later(store: QueueStore, clock: Clock) -> None:
    queue = await filled(store, b"one")
    [first] = await store.pull(queue.id, 1, 1000, 30_000)
    assert await store.settle_pulled(queue.id, (), [(first.seq, 1, store.now() + 5_000)]) == 1
    assert await store.pull(queue.id, 1, 1000, 30_000) == []
    clock.now += 6
    assert [each.attempts for each in await store.pull(queue.id, 1, 1000, 30_000)] == [2]


async def test_spent_messages_are_buried(store: QueueStore, clock: Clock) -> None:
    queue, letters = await filled(store, b"one"), await store.ensure("acme", "dead")
    await store.pull(queue.id, 1, 1000, 1_000)
    assert await store.bury(queue.id, 1, 10, letters.id) == 0  # a consumer has it
    clock.now += 2
    assert await store.bury(queue.id, 2, 10, letters.id) == 0  # it has a try left
    assert await store.bury(queue.id, 1, 10, letters.id) == 1
    assert [each.body for each in await store.pull(letters.id, 1, 1000, 1_000)] == [b"one"]
    assert (await store.depth(queue.id)).bytes == 0 and (await store.depth(letters.id)).bytes == 3 + 128


async def test_spent_messages_without_a_dead_letter_queue_are_dropped_and_counted(
    store: QueueStore, clock: Clock
) -> None:
    queue = await filled(store, b"one", b"two")
    await store.pull(queue.id, 1, 1000, 1_000)
    clock.now += 2
    assert await store.bury(queue.id, 1, 10, None) == 1
    found = await store.find("acme", "jobs")
    assert found is not None and found.dropped == 1
    assert [each.body for each in await store.peek(queue.id, 0, 10)] == [b"two"]


async def test_the_settings_of_a_pull_consumer_are_kept(opened: Opened) -> None:
    queue = await opened.store.ensure("acme", "jobs")
    assert (queue.pull, queue.delay) == ("", 0)
    await opened.store.set_pull(queue.id, '{"batch_size":7}')
    await opened.store.set_delay(queue.id, 5)
    found = await (await opened.reopen()).find("acme", "jobs")
    assert found is not None and (found.pull, found.delay) == ('{"batch_size":7}', 5)


async def test_the_delay_of_a_queue_holds_for_messages_without_one(store: QueueStore, clock: Clock) -> None:
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


def test_a_worker_that_would_consume_a_pulled_queue_is_refused(atoll: Atoll) -> None:
    """A queue has one consumer. Messages that a program pulls must not go to a worker."""
    assert atoll.control("POST", "/api/queues", {"name": "pulled-jobs"}).status == 201
    assert atoll.control("PUT", "/api/queues/pulled-jobs/pull", {}).status == 200
    body = {
        "name": "takes-pulled",
        "script": "export default { queue() {} }",
        "queue_consumers": [{"queue": "pulled-jobs"}],
    }
    answer = atoll.control("POST", "/api/workers", body)
    assert answer.status == 409 and "has a consumer that pulls" in answer.text
    assert atoll.control("GET", "/api/workers/takes-pulled").status == 404
