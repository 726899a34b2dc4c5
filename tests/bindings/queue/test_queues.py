"""Queues from both ends: what a producer sends, what a consumer receives, and that nothing is lost or stuck."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from atoll.bindings.queue import consumer as queues_module
from atoll.bindings.queue.consumer import QueueTriggers
from atoll.bindings.queue.entries import QueueConsumer
from atoll.bindings.queue.ops import QueueBinding
from atoll.bindings.queue.sqlite import SqliteQueues
from atoll.bindings.queue.store import NewMessage, QueueStore, Settlement
from atoll.engine.calls.call import Call
from atoll.engine.calls.events import EventRunner
from atoll.engine.pool import TenantCaps
from atoll.errors import StorageFailed
from atoll.workers import Grant
from tests.engine.engine_room import EngineRoom, script
from tests.eventually import eventually

TAKES = """
export default {
  async queue(batch, env, ctx) {
    console.log(JSON.stringify({ queue: batch.queue, bodies: batch.messages.map((m) => m.body) }));
  },
};
"""


@pytest.fixture
def triggers(room: EngineRoom) -> QueueTriggers:
    return queue_binding(room).trigger


def queue_binding(room: EngineRoom) -> QueueBinding:
    binding = room.bindings["queue"]
    assert isinstance(binding, QueueBinding)
    return binding


def consumer(**fields: object) -> QueueConsumer:
    return QueueConsumer(**{"queue": "jobs", "max_batch_timeout": 0.05, "retry_delay": 0, **fields})  # type: ignore[arg-type]


async def send(store: QueueStore, *bodies: object, delay: int = 0, queue: str = "jobs") -> None:
    found = await store.ensure("default", queue)
    await store.send(found.id, [NewMessage("json", json.dumps(body).encode(), delay) for body in bodies])


def said(room: EngineRoom) -> list[str]:
    return [line.text for record in room.records for line in record.logs]


async def empty(room: EngineRoom, queue: str = "jobs") -> None:
    found = await queue_binding(room).store.find("default", queue)
    assert found is not None

    async def is_empty() -> bool:
        return sum((await queue_binding(room).store.depth(found.id))[:3]) == 0

    await eventually(is_empty, "an empty queue")


async def test_a_message_reaches_the_consumer(room: EngineRoom, triggers: QueueTriggers) -> None:
    producer = script(
        """export default { async fetch(request, env) {
          await env.JOBS.send({ n: 1 });
          await env.JOBS.send("two", { contentType: "text" });
          await env.JOBS.send(new Uint8Array([3, 3]), { contentType: "bytes" });
          await env.JOBS.send(new Map([[4, new Date(4)]]), { contentType: "v8" });
          await env.JOBS.sendBatch([{ body: 5 }, { body: [6], delaySeconds: 0 }]);
          return new Response("sent");
        } };""",
        grants={"JOBS": Grant("JOBS", "queue", "0 jobs")},
    )
    await queue_binding(room).store.ensure("default", "jobs")
    assert (await room.get(producer)).body == b"sent"
    takes = script(
        """export default { queue(batch) { for (const { id, timestamp, attempts, body } of batch.messages)
          console.log(id.length, timestamp instanceof Date, attempts,
            body instanceof ArrayBuffer ? new Uint8Array(body) : body);
        } };"""
    )
    triggers.put(takes, [consumer(max_batch_size=6)])
    await empty(room)
    assert said(room) == [
        "32 true 1 { n: 1 }",
        "32 true 1 two",
        "32 true 1 Uint8Array(2) [ 3, 3 ]",
        "32 true 1 Map(1) { 4 => 1970-01-01T00:00:00.004Z }",
        "32 true 1 5",
        "32 true 1 [ 6 ]",
    ]
    assert (room.records[-1].event, room.records[-1].head.split(b"\n")[0]) == ("queue", b"QUEUE jobs")


async def test_a_full_batch_is_delivered_at_once_and_the_rest_after_the_timeout(
    room: EngineRoom, triggers: QueueTriggers
) -> None:
    await send(queue_binding(room).store, *range(7))
    triggers.put(script(TAKES), [consumer(max_batch_size=3, max_concurrency=1)])
    await empty(room)
    assert [json.loads(line)["bodies"] for line in said(room)] == [[0, 1, 2], [3, 4, 5], [6]]


@pytest.mark.parametrize(
    ("handler", "left"),
    [
        ("batch.messages[0].ack(); throw new Error('no')", ["b", "c"]),
        ("batch.messages[1].retry()", ["b"]),
        ("batch.retryAll()", ["a", "b", "c"]),
        ("batch.retryAll(); batch.messages[2].ack()", ["a", "b", "c"]),
        ("batch.messages[2].ack(); batch.retryAll()", ["a", "b"]),
        ("batch.ackAll(); batch.retryAll(); batch.messages[2].retry()", []),
        ("batch.messages[1].retry({ delaySeconds: '0' })", ["b"]),
        ("batch.messages[0].ack(); batch.messages[1].retry({ delaySeconds: -Infinity })", ["b", "c"]),
        ("batch.messages[0].ack(); batch.messages[1].retry({ delaySeconds: 86401 })", ["b", "c"]),
        ("batch.messages[0].ack(); batch.messages[1].retry({ delaySeconds: {} })", ["b", "c"]),
        ("Object.prototype.toJSON = nonsense; batch.ackAll()", ["a", "b", "c"]),
        ("batch.ackAll(); throw new Error('no')", []),
        ("batch.messages[0].ack(); batch.messages[0].retry()", []),
        ("ctx.waitUntil(Promise.reject(new Error('no')))", ["a", "b", "c"]),
        ("ctx.waitUntil(Promise.resolve().then(() => batch.messages[1].retry()))", ["b"]),
        ("for (;;);", ["a", "b", "c"]),
    ],
)
async def test_the_handler_decides_about_each_message(
    room: EngineRoom, triggers: QueueTriggers, handler: str, left: list[str]
) -> None:
    await send(queue_binding(room).store, "a", "b", "c")
    source = f"""function nonsense() {{ delete Object.prototype.toJSON; return "nonsense"; }}
    export default {{ queue(batch, env, ctx) {{
      const bodies = batch.messages.map((m) => m.body).join("");
      console.log(bodies, batch.messages[0].attempts);
      if (batch.messages[0].attempts > 1) return;
      {handler}
    }} }};"""
    triggers.put(script(source), [consumer(max_batch_size=3)])
    await empty(room)
    lines = [line for line in said(room) if line[-1].isdigit()]
    assert lines[0] == "abc 1" and [word for line in lines[1:] for word in line.split()[0]] == left


async def test_a_service_worker_script_listens_to_its_queue(room: EngineRoom, triggers: QueueTriggers) -> None:
    await send(queue_binding(room).store, "a", "b")
    source = """addEventListener("queue", (event) => {
      console.log(event.queue, event.messages.map((m) => m.body).join(""), event.messages[0].attempts);
      if (event.messages[0].attempts > 1) return event.ackAll();
      event.messages[0].retry();
      event.waitUntil(Promise.resolve().then(() => event.messages[1].ack()));
    });"""
    triggers.put(script(source), [consumer(max_batch_size=2)])
    await empty(room)
    assert said(room) == ["jobs ab 1", "jobs a 2"]


async def test_a_message_that_fails_too_often_goes_to_the_dead_letter_queue(
    room: EngineRoom, triggers: QueueTriggers
) -> None:
    await send(queue_binding(room).store, "poison", "good")
    source = """export default { queue(batch) { for (const m of batch.messages) {
      console.log(m.body, m.attempts);
      if (m.body === "poison") m.retry();
    } } };"""
    triggers.put(script(source), [consumer(max_batch_size=2, max_retries=2, dead_letter_queue="dead")])
    await empty(room)
    assert sorted(said(room)) == ["good 1", "poison 1", "poison 2", "poison 3"]
    dead = await queue_binding(room).store.find("default", "dead")
    assert dead is not None
    (letter,) = await queue_binding(room).store.lease(dead.id, 10)
    assert (letter.body, letter.attempts) == (b'"poison"', 1)


async def test_without_a_dead_letter_queue_a_failing_message_is_dropped_and_counted(
    room: EngineRoom, triggers: QueueTriggers
) -> None:
    await send(queue_binding(room).store, "poison")
    triggers.put(script("export default { queue() { throw new Error('no'); } }"), [consumer(max_retries=1)])
    await empty(room)
    found = await queue_binding(room).store.find("default", "jobs")
    assert found is not None and found.dropped == 1
    assert len(room.records) == 2


async def test_a_paused_queue_waits_and_a_purged_one_is_empty(room: EngineRoom, triggers: QueueTriggers) -> None:
    queue = await queue_binding(room).store.ensure("default", "jobs")
    await queue_binding(room).store.pause(queue.id, True)
    await send(queue_binding(room).store, 1, 2)
    triggers.put(script(TAKES), [consumer()])
    await asyncio.sleep(0.2)
    assert not room.records and (await queue_binding(room).store.depth(queue.id)).waiting == 2
    assert await queue_binding(room).store.purge(queue.id) == 2
    await send(queue_binding(room).store, 3)
    await queue_binding(room).store.pause(queue.id, False)
    await empty(room)
    assert json.loads(said(room)[0])["bodies"] == [3]


async def test_a_delayed_message_is_delivered_after_its_delay(room: EngineRoom, triggers: QueueTriggers) -> None:
    triggers.put(script(TAKES), [consumer(max_batch_timeout=0.01)])
    jobs = await queue_binding(room).store.ensure("default", "jobs")
    await queue_binding(room).store.send(jobs.id, [NewMessage("json", b'"later"', 1), NewMessage("json", b'"now"', 0)])
    await empty(room)
    lines = [json.loads(line)["bodies"] for line in said(room)]
    assert lines == [["now"], ["later"]]


async def test_an_engine_killed_with_a_batch_loses_no_message(room: EngineRoom, triggers: QueueTriggers) -> None:
    await send(queue_binding(room).store, *range(5))
    source = """export default { async queue(batch, env) {
      console.log("begun", batch.messages[0].attempts);
      if (batch.messages[0].attempts === 1) await env.ECHO.wait(9000);
    } };"""
    triggers.put(script(source), [consumer(max_batch_size=5)])
    await room.until(room_busy(room), "the batch")
    [session] = room.supervisor._running
    await room.until(lambda: any(map(session.ledger.begun, range(64))), "the begin of its handler")
    room.kill_engine()
    await empty(room)
    await room.until(lambda: said(room)[-1:] == ["begun 2"], "the record of the second attempt")


async def test_results_of_a_removed_consumer_are_stored_after_a_full_disk(
    room: EngineRoom, triggers: QueueTriggers, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, tries = queue_binding(room).store.settle, 0

    async def settle_later(queue_id: int, settlement: Settlement) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            await triggers.drop("worker-test")
            raise StorageFailed("the disk of this node is full")
        await settle(queue_id, settlement)

    monkeypatch.setattr(queue_binding(room).store, "settle", settle_later)
    monkeypatch.setattr(queues_module, "AGAIN_SECONDS", 0.01)
    await send(queue_binding(room).store, "a")
    triggers.put(script(TAKES), [consumer()])
    await empty(room)
    assert len(said(room)) == 1


async def test_a_former_consumer_releases_the_queue_to_the_new_one(room: EngineRoom, triggers: QueueTriggers) -> None:
    first, second = script(TAKES, name="first"), script(TAKES, name="second")
    for version in (first, second):
        triggers.put(version, [consumer()])
    triggers.put(first, [])
    await send(queue_binding(room).store, "a")
    await empty(room)
    await triggers.drop(second.worker_id)
    await triggers.drop(first.worker_id)
    assert [record.version.worker_name for record in room.records] == ["second"]


def room_busy(room: EngineRoom):  # type: ignore[no-untyped-def]
    return lambda: room.pool.busy


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("env.JOBS.send(undefined)", "cannot be undefined"),
        ("env.JOBS.send('x'.repeat(128001), { contentType: 'text' })", "128001 bytes exceeds limit of 128000"),
        ("env.JOBS.send(1, { delaySeconds: -1 })", "delaySeconds"),
        ("env.JOBS.send(1, { delaySeconds: 86401 })", "delaySeconds"),
        ("env.JOBS.send(1, { contentType: 'xml' })", "xml"),
        ("env.JOBS.send(1, { contentType: 'text' })", "must be a string"),
        ("env.JOBS.sendBatch([])", "no message"),
        ("env.JOBS.sendBatch(Array(101).fill({ body: 1 }))", "100 messages"),
        ("env.JOBS.sendBatch(Array(3).fill({ body: 'x'.repeat(100000) }))", "exceeds limit of 256000"),
        ("env.JOBS.send(() => {}, { contentType: 'v8' })", "could not be cloned"),
    ],
)
async def test_an_invalid_message_is_refused_with_its_reason(room: EngineRoom, code: str, text: str) -> None:
    queue = await queue_binding(room).store.ensure("default", "jobs")
    source = f"""export default {{ async fetch(request, env) {{
      try {{ await {code}; return new Response("sent"); }} catch (error) {{ return new Response(error.message); }}
    }} }};"""
    answer = await room.get(script(source, grants={"JOBS": Grant("JOBS", "queue", "0 jobs")}))
    assert text in answer.body.decode()
    assert (await queue_binding(room).store.depth(queue.id)).waiting == 0


async def test_batches_that_are_refused_use_no_attempt(
    room: EngineRoom, triggers: QueueTriggers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant at its quota, or a full node, must not cost any message."""
    monkeypatch.setattr(queues_module, "AGAIN_SECONDS", 0.01)
    room.pool.set_caps("default", TenantCaps(calls=0))
    await send(queue_binding(room).store, "a")
    triggers.put(
        script("export default { queue({ messages: [m] }) { console.log(m.body, m.attempts); } };"),
        [consumer(max_retries=0)],
    )

    async def was_refused() -> bool:
        return len(room.records) >= 2

    await eventually(was_refused, "refusals")
    room.pool.set_caps("default", None)
    await empty(room)
    assert said(room) == ["a 1"]


async def test_a_batch_with_an_internal_error_is_retried_and_becomes_a_dead_letter(
    room: EngineRoom, triggers: QueueTriggers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> bytes:
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(room.events, "run", broken)
    await send(queue_binding(room).store, "a")
    triggers.put(script(TAKES), [consumer(max_retries=1, dead_letter_queue="dead")])
    await empty(room)
    dead = await queue_binding(room).store.find("default", "dead")
    assert dead is not None and (await queue_binding(room).store.depth(dead.id)).waiting == 1
    assert caplog.text.count("a batch of jobs failed") == 2
    monkeypatch.undo()
    await send(queue_binding(room).store, "b")
    await empty(room)
    assert [json.loads(line)["bodies"] for line in said(room)] == [["b"]]


async def test_a_node_that_restarts_often_still_sweeps_old_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues_module, "SWEEP_SECONDS", 0.01)
    now = 1_800_000_000.0

    def opened() -> SqliteQueues:
        return SqliteQueues(tmp_path / "queues.db", clock=lambda: now)

    store = opened()
    queue = await store.ensure("default", "jobs", 60)
    await store.sweep()  # as on a node that has run for an hour
    await store.send(queue.id, [NewMessage("text", b"old", 0)])
    await store.close()
    now += 61
    store = opened()
    triggers = QueueTriggers(EventRunner(NoCalls()), store)

    async def is_swept() -> bool:
        return (await store.depth(queue.id)).waiting == 0

    await eventually(is_swept, "a sweep soon after the start")
    await triggers.close()
    await store.close()


class NoCalls:
    """A pool that must not be called."""

    def call(self, *_: object) -> Call:
        raise AssertionError
