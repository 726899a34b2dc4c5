"""Messages that move to another queue: dead letters are tried again. Over the store and over HTTP."""

from __future__ import annotations

import pytest

from atoll.bindings.queue import redelivery
from atoll.bindings.queue.store import NewMessage, QueueOverQuota, QueueStore
from tests.bindings.queue.test_queue_store import Opened
from tests.bindings.queue.test_queue_store import opened as opened  # the fixture: every backend
from tests.running import Atoll

FAILS = """let healthy = false;
export default {
  fetch() { healthy = true; return new Response("ok"); },
  async queue(batch) {
    for (const each of batch.messages) if (healthy) console.log("got", each.body); else each.retry();
  },
}"""


@pytest.fixture
def store(opened: Opened) -> QueueStore:
    return opened.store


async def test_messages_move_in_order_with_their_types_and_bodies(store: QueueStore) -> None:
    dead, jobs = await store.ensure("acme", "dead"), await store.ensure("acme", "jobs")
    bodies = [bytes([n % 256]) * (n % 50) for n in range(1_200)]
    for first in range(0, 1_200, 100):
        await store.send(dead.id, [NewMessage("v8", body, None) for body in bodies[first : first + 100]])
    await store.send(dead.id, [NewMessage("text", b"later", 600)])
    before = await store.total("acme")
    assert await redelivery.move(store, dead, jobs) == 1_200
    found = []
    after = 0
    while some := await store.peek(jobs.id, after, 100):
        found += some
        after = some[-1].seq
    assert [each.body for each in found] == bodies
    assert {(each.type, each.attempts) for each in found} == {("v8", 0)}
    [left] = await store.peek(dead.id, 0, 10)
    assert left.body == b"later" and await store.total("acme") == before


async def test_messages_that_do_not_fit_stay_and_are_due_at_once(store: QueueStore) -> None:
    dead, jobs = await store.ensure("acme", "dead"), await store.ensure("acme", "jobs")
    await store.send(dead.id, [NewMessage("text", b"x" * 100, None)])
    store.bound("acme", await store.total("acme"))  # a message is in both queues for a moment
    with pytest.raises(QueueOverQuota):
        await redelivery.move(store, dead, jobs)
    assert (await store.depth(dead.id)).waiting == 1 and (await store.depth(jobs.id)).waiting == 0


def test_dead_letters_go_back_to_their_queue_and_are_delivered(atoll: Atoll) -> None:
    consumer = {"queue": "orders", "dead_letter_queue": "orders-dead", "max_retries": 0, "max_batch_timeout": 0}
    atoll.deploy("mover", FAILS, queue_consumers=[consumer])
    shown = atoll.control("GET", "/api/queues/orders").json
    assert shown["dead_letter_queue"] == "orders-dead" and shown["consumer"] == "mover"
    assert atoll.control("GET", "/api/queues/orders-dead").json["dead_letter_queue"] is None
    assert atoll.control("POST", "/api/queues/orders/messages", {"messages": [{"body": "again"}]}).status == 201
    atoll.wait_until(lambda: atoll.control("GET", "/api/queues/orders-dead").json["waiting"] == 1)
    assert atoll.get("mover").text == "ok"
    moved = atoll.control("POST", "/api/queues/orders-dead/move", {"to": "orders"})
    assert moved.json == {"moved": 1}
    atoll.wait_until(lambda: any("again" in str(each["logs"]) for each in atoll.logs("mover")))
    assert atoll.control("GET", "/api/queues/orders-dead").json["waiting"] == 0


def test_messages_move_only_to_another_queue_that_is_there(atoll: Atoll) -> None:
    atoll.control("POST", "/api/queues", {"name": "lonely"})
    assert atoll.control("POST", "/api/queues/lonely/move", {"to": "lonely"}).status == 400
    assert atoll.control("POST", "/api/queues/lonely/move", {"to": "nowhere"}).status == 404
    assert atoll.control("POST", "/api/queues/lonely/move", {}).status == 400
