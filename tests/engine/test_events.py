"""Calls for events: what the handler receives, what Python receives back, and what the record says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from atoll.bindings.cron.clock import SCHEDULED
from atoll.bindings.events import EventFailed, EventKind
from atoll.bindings.queue.consumer import BATCH
from atoll.engine.pool import PoolLimits
from atoll.wire.generated import ErrorCode, Outcome
from atoll.workers import Limits
from tests.engine.engine_room import EngineRoom, script

META = {"cron": "*/5 * * * *", "scheduledTime": 1_700_000_000_000}


async def run(room: EngineRoom, source: str) -> dict[str, object]:
    answer = await room.events.run(script(source), SCHEDULED, "CRON */5 * * * *", META)
    await room.until(lambda: not room.pool.busy, "DONE")
    return json.loads(answer)  # type: ignore[no-any-return]


async def test_a_scheduled_handler_gets_its_controller_env_and_ctx(room: EngineRoom) -> None:
    source = """export default { async scheduled(controller, env, ctx) {
      console.log(controller.cron, controller.scheduledTime, typeof env.ECHO.say, typeof ctx.waitUntil);
      await env.ECHO.say("x");
      controller.noRetry();
    } };"""
    assert await run(room, source) == {"noRetry": True}
    record = room.records[-1]
    assert (record.event, record.outcome) == ("scheduled", Outcome.OK)
    assert record.head.startswith(b"CRON */5 * * * *\n")
    assert record.logs[0].text == "*/5 * * * * 1700000000000 function function"


async def test_a_service_worker_script_listens_to_scheduled(room: EngineRoom) -> None:
    source = """addEventListener("scheduled", (event) => {
      event.waitUntil((async () => { await null; console.log(event.cron, event.scheduledTime); })());
    });"""
    assert await run(room, source) == {"noRetry": False}
    assert room.records[-1].logs[0].text == "*/5 * * * * 1700000000000"


@pytest.mark.parametrize(
    "source",
    [
        "export default { scheduled() { throw new RangeError('no'); } }",
        "export default { async scheduled() { throw new RangeError('no'); } }",
        "export default { scheduled(c, env, ctx) { ctx.waitUntil(Promise.reject(new RangeError('no'))); } }",
        "addEventListener('scheduled', () => { throw new RangeError('no'); })",
    ],
)
async def test_an_error_of_an_event_handler_reaches_its_trigger_and_the_record(room: EngineRoom, source: str) -> None:
    with pytest.raises(EventFailed) as caught:
        await run(room, source)
    assert (caught.value.failure.name, caught.value.failure.message) == ("RangeError", "no")
    await room.until(lambda: not room.pool.busy, "DONE")
    record = room.records[-1]
    assert record.outcome == Outcome.EXCEPTION and record.failure is not None
    assert "worker.js" in record.failure.stack or "main.js" in record.failure.stack or record.failure.stack


async def test_the_answer_waits_for_wait_until(room: EngineRoom) -> None:
    source = """export default { scheduled(c, env, ctx) {
      ctx.waitUntil(env.ECHO.wait(50).then(() => { console.log("late"); c.noRetry(); }));
    } }"""
    assert await run(room, source) == {"noRetry": False}, "the result of the handler itself counts"
    assert [line.text for line in room.records[-1].logs] == ["late"]


async def test_an_event_without_a_handler_fails_with_a_clear_error(room: EngineRoom) -> None:
    with pytest.raises(EventFailed, match="does not export a scheduled"):
        await run(room, "export default { fetch() { return new Response(); } }")


async def test_an_event_handler_that_waits_forever_fails(room: EngineRoom) -> None:
    with pytest.raises(EventFailed) as caught:
        await run(room, "export default { scheduled() { return new Promise(() => {}); } }")
    assert caught.value.failure.code == ErrorCode.NEVER_RESPONDS


async def test_an_endless_handler_uses_up_its_cpu_time(room: EngineRoom) -> None:
    with pytest.raises(EventFailed) as caught:
        await run(room, "export default { scheduled() { for (;;); } }")
    assert caught.value.failure.code == ErrorCode.CPU


async def test_an_event_may_take_longer_than_a_request(room: EngineRoom) -> None:
    version = script(
        "export default { async scheduled(c, env) { await env.ECHO.wait(600); } }", limits=Limits(wall_ms=200)
    )
    answer = await room.events.run(version, SCHEDULED, "CRON * * * * *", META)
    assert json.loads(answer) == {"noRetry": False}


BURN = "for (let i = 0; i < 3e8; i++);"  # far more than 10 ms and far less than a second


@pytest.mark.parametrize("event", [SCHEDULED, BATCH])
async def test_an_event_may_compute_longer_than_a_request(room: EngineRoom, event: EventKind) -> None:
    source = f"export default {{ fetch() {{ {BURN} }}, scheduled() {{ {BURN} }}, async queue() {{ await 0; {BURN} }} }}"
    version = script(source, limits=Limits(cpu_ms=10))
    meta = META if event == SCHEDULED else {"queue": "q", "messages": []}
    await room.events.run(version, event, "LABEL", meta)
    await room.until(lambda: not room.pool.busy, "DONE")
    assert room.records[-1].outcome == Outcome.OK and room.records[-1].cpu_us > 10_000
    assert (await room.get(version)).code == "CPU", "a request of the same worker may not"


async def test_an_endless_event_ends_at_the_limit_of_the_node(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(event_cpu_ms=200))
    version = script("export default { scheduled() { for (;;); } }", limits=Limits(cpu_ms=10))
    with pytest.raises(EventFailed) as caught:
        await room.events.run(version, SCHEDULED, "LABEL", META)
    found = re.fullmatch(r"used (\d+) ms of CPU, limit 200 ms", caught.value.failure.message)
    assert found is not None and 200 < int(found[1]) <= 300


async def test_what_threads_of_the_engine_compute_counts_for_the_limit_of_events_and_not_of_requests(
    room: EngineRoom,
) -> None:
    source = """export default { async scheduled() {
      for (let i = 0; i < 2e7; i++) Math.sqrt(i);
      await crypto.subtle.digest("SHA-256", new Uint8Array(3e6));
      console.log("digested");
    } };"""
    version = script(source, limits=Limits(cpu_ms=5))
    await room.events.run(version, SCHEDULED, "CRON */5 * * * *", META)
    await room.until(lambda: not room.pool.busy, "DONE")
    assert room.records[-1].outcome == Outcome.OK and room.records[-1].cpu_us > 5_000
    assert room.records[-1].logs[0].text == "digested"
