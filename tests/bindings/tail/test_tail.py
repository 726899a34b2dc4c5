"""Tail workers: what they receive, that loops are impossible, and that a slow one loses only its own items."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import msgspec
import pytest

from atoll.bindings.cron.clock import SCHEDULED
from atoll.bindings.queue.consumer import BATCH
from atoll.bindings.scope import QUIET
from atoll.bindings.tail import delivery as tail_module
from atoll.bindings.tail.delivery import TailTriggers
from atoll.bindings.tail.entries import TailConsumer
from atoll.logs import Invocation
from atoll.workers import Version
from tests.engine.engine_room import EngineRoom, script

WATCHER = script("export default { tail(events) { console.log(JSON.stringify(events)); } }", name="watcher")


@pytest.fixture
async def tails(room: EngineRoom) -> AsyncIterator[TailTriggers]:
    tails = TailTriggers(room.events, lambda tenant, name: WATCHER if name == "watcher" else None)
    yield tails
    await tails.close()


def watched(source: str) -> Version:
    return replace(script(source, name="shop"), triggers={"tail_consumers": (TailConsumer("watcher"),)}, tag="v1")


async def told(room: EngineRoom) -> list[dict[str, object]]:
    def lines() -> list[str]:
        return [line.text for record in room.records if record.event == "tail" for line in record.logs]

    await room.until(lines, "the tail event")
    return [item for line in lines() for item in json.loads(line)]


async def record_of(room: EngineRoom, version: Version, url: str = "http://shop.example/a?b") -> Invocation:
    await room.get(version, url)
    await room.until(lambda: not room.pool.busy, "DONE")
    return next(record for record in reversed(room.records) if record.event == "fetch")


async def test_a_tail_worker_receives_records(room: EngineRoom, tails: TailTriggers) -> None:
    source = "export default { fetch() { console.warn('careful', 1); return new Response('', { status: 404 }); } }"
    tails.hear(await record_of(room, watched(source)))
    (item,) = await told(room)
    assert item["scriptName"] == "shop" and item["outcome"] == "ok" and item["exceptions"] == []
    assert item["logs"][0]["level"] == "warn" and item["logs"][0]["message"] == ["careful 1"]  # type: ignore[index]
    event = item["event"]
    assert event["response"] == {"status": 404} and event["request"]["method"] == "GET"  # type: ignore[index]
    assert event["request"]["url"] == "http://shop.example/a?b"  # type: ignore[index]
    assert item["scriptVersion"] == {"id": watched(source).id, "tag": "v1"}
    assert isinstance(item["logs"][0]["timestamp"], int)  # type: ignore[index]
    assert item["cpuTime"] >= 0 and item["wallTime"] > 0 and item["truncated"] is False  # type: ignore[operator]


async def test_records_of_crons_and_batches_have_their_event(room: EngineRoom, tails: TailTriggers) -> None:
    version = watched("export default { scheduled() {}, queue() {} }")
    await room.events.run(version, SCHEDULED, "CRON 0 9 * * 2", {"cron": "0 9 * * 2", "scheduledTime": 5})
    message = {"id": "0", "timestamp": 0, "attempts": 1, "type": "text", "size": 1}
    meta = {"queue": "jobs", "messages": [message, message]}
    await room.events.run(version, BATCH, "QUEUE jobs", meta, b"ab")
    await room.until(lambda: not room.pool.busy, "DONE")
    for record in list(room.records):
        tails.hear(record)
    cron, batch = await told(room)
    assert cron["event"] == {"type": "scheduled", "cron": "0 9 * * 2", "scheduledTime": 5}
    assert batch["event"] == {"type": "queue", "queue": "jobs", "batchSize": 2}


async def test_a_record_of_an_exception_has_its_stack(room: EngineRoom, tails: TailTriggers) -> None:
    source = "export default { async fetch() { await scheduler.wait(50); throw new TypeError('no'); } }"
    tails.hear(await record_of(room, watched(source)))
    (item,) = await told(room)
    (thrown,) = item["exceptions"]  # type: ignore[misc]
    assert thrown["timestamp"] - item["eventTimestamp"] >= 40, "the time of the throw, not of the call"
    assert (item["outcome"], thrown["name"], thrown["message"]) == ("exception", "TypeError", "no")  # type: ignore[index]


async def test_secret_headers_are_redacted_unless_requested(room: EngineRoom, tails: TailTriggers) -> None:
    global WATCHER
    record = await record_of(room, watched("export default { fetch() { return new Response(); } }"))
    head = b"GET http://shop.example/0123456789abcdef0123456789abcdef\nAuthorization: Bearer x\r\nAccept: a\r\n"
    before, WATCHER = WATCHER, script(
        "export default { tail([{ event: { request } }]) { console.log(JSON.stringify([[request.url, request.headers,"
        " request.getUnredacted().url, request.getUnredacted().headers]])); } }",
        name="watcher",
    )  # fmt: skip
    try:
        tails.hear(record._replace(head=head))
        (seen,) = await told(room)
    finally:
        WATCHER = before
    assert seen == [
        "http://shop.example/REDACTED",
        {"authorization": "REDACTED", "accept": "a"},
        "http://shop.example/0123456789abcdef0123456789abcdef",
        {"authorization": "Bearer x", "accept": "a"},
    ]


async def test_calls_caused_by_tail_workers_are_not_reported(room: EngineRoom, tails: TailTriggers) -> None:
    record = await record_of(room, watched("export default { fetch() { return new Response(); } }"))
    tails.hear(record._replace(event="tail"))
    tails.hear(record._replace(hops=QUIET + 1))
    await asyncio.sleep(tail_module.BATCH_SECONDS * 2)
    assert not [record for record in room.records if record.event == "tail"]


async def test_an_overloaded_tail_worker_loses_the_newest_records_and_they_are_counted(
    room: EngineRoom, tails: TailTriggers
) -> None:
    record = await record_of(room, watched("export default { fetch() { return new Response(); } }"))
    for _ in range(tail_module.WAITING_ITEMS + 7):
        tails.hear(record)
    assert tails.dropped["default", "watcher"] == 7
    await room.until(lambda: not tails._boxes, "the last batch")
    assert len(await told(room)) == tail_module.WAITING_ITEMS


async def test_a_failing_or_missing_tail_worker_affects_no_other(room: EngineRoom, tails: TailTriggers) -> None:
    version = replace(
        watched("export default { fetch() { return new Response(); } }"),
        triggers={"tail_consumers": (TailConsumer("gone"),)},
    )
    tails.hear(await record_of(room, version))
    await room.until(lambda: not tails._boxes, "the batch")
    assert tails.dropped["default", "gone"] == 1


async def test_records_refused_by_a_limit_are_counted_and_those_of_a_throwing_handler_are_not(
    room: EngineRoom, tails: TailTriggers
) -> None:
    global WATCHER
    record = await record_of(room, watched("export default { fetch() { return new Response(); } }"))
    before = WATCHER
    try:
        WATCHER = script("export default { tail() { throw new Error('seen'); } }", name="watcher")
        tails.hear(record)
        await room.until(lambda: not tails._boxes, "the batch that is thrown over")
        assert not tails.dropped
        loop = script("export default { tail() { for (;;); } }", name="watcher")
        WATCHER = replace(loop, limits=msgspec.structs.replace(loop.limits, cpu_ms=10))
        tails.hear(record)
        await room.until(lambda: not tails._boxes, "the batch that is ended")
    finally:
        WATCHER = before
    assert tails.dropped == {("default", "watcher"): 1}


async def test_losses_of_many_tail_workers_share_one_counter(
    room: EngineRoom, tails: TailTriggers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_module, "COUNTED", 2)
    record = await record_of(room, watched("export default { fetch() { return new Response(); } }"))
    for name in ("a", "b", "c", "d", "a"):
        tails.hear(record._replace(version=replace(record.version, triggers={"tail_consumers": (TailConsumer(name),)})))
    await room.until(lambda: not tails._boxes, "the batches")
    assert tails.dropped == {("default", "a"): 2, ("default", "b"): 1, tail_module.OTHERS: 2}
