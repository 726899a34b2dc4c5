"""How long an object lives: its timers, abort(), its name in an alarm."""

from __future__ import annotations

import asyncio

import pytest

from tests.eventually import eventually
from tests.objects.hibernating import SOURCE, Stage, opened, stage, until

__all__ = ["stage"]


async def test_timers_outlive_the_call_that_set_them_and_keep_the_object_in_memory(stage: Stage) -> None:
    code = "object.ticks = 0; object.timer = setInterval(() => { object.ticks++; }, 20); return object.number;"
    assert await stage.run(code) == 1
    await asyncio.sleep(1.5)  # five times as long as an idle object stays
    number, ticks = await stage.run("return [object.number, object.ticks];")
    assert number == 1 and ticks > 10
    await stage.run("clearInterval(object.timer);")
    await stage.evicted()
    assert await stage.run("return object.number;") == 2


async def test_a_timer_uses_bindings_and_sets_others_after_its_call(stage: Stage) -> None:
    code = """
      object.seen = [];
      const step = async (n) => {
        await ctx.storage.put("n", n);
        object.seen.push(await ctx.storage.get("n"));
        await new Promise((resolve) => setTimeout(resolve, 5));
        if (n < 5) setTimeout(() => step(n + 1), 5);
      };
      setTimeout(() => step(1), 40_000 - 39_990);
    """
    await stage.run(code)

    async def has_seen_all() -> bool:
        return bool(await stage.run("return object.seen;") == [1, 2, 3, 4, 5])

    await eventually(has_seen_all, "all steps")
    await stage.evicted()


async def test_a_timer_sends_to_a_hibernatable_socket(stage: Stage) -> None:
    async with stage.connect() as client:
        await stage.run("setTimeout(() => ctx.getWebSockets()[0].send('later'), 50);")
        assert await client.recv() == "later"


async def test_abort_stops_the_code_that_calls_it(stage: Stage) -> None:
    code = """
      const text = async (code) => { try { return await env.ROOM.getByName("one").run(code); } catch (e) { return [e.message, e.durableObjectReset]; } };
      const first = await text("try { ctx.abort('stop'); } finally { await ctx.storage.put('after', 1); }");
      const second = await text("await null; for (;;) { try { ctx.abort(); } catch {} }");
      return [first, second, await text("return [object.number, (await ctx.storage.get('after')) ?? null]")];
    """
    stopped = ["Application called abort() to reset Durable Object.", True]
    assert await stage.run(code, "/worker") == [["stop", True], stopped, [3, None]]


async def test_abort_leaves_other_calls_of_the_isolate_alone(stage: Stage) -> None:
    code = """
      const other = env.ROOM.getByName("other");
      const waiting = other.run("await new Promise((resolve) => setTimeout(resolve, 300)); return 'fine';");
      await room.run("await null; ctx.abort();").catch(() => {});
      return await waiting;
    """
    assert await stage.run(code, "/worker") == "fine"


ALARMS = SOURCE.replace(
    "  async run(code) {",
    """
  async alarm() {
    await this.ctx.storage.put("named", [...((await this.ctx.storage.get("named")) ?? []), this.ctx.id.name ?? null]);
    if (await this.ctx.storage.get("aborts")) this.ctx.abort("no more", { retryAlarm: false });
  }
  async run(code) {""",
)


async def test_an_alarm_knows_the_name_of_its_object_after_an_eviction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atoll.engine.objects.runtime.IDLE_SECONDS", 0.2)
    async with opened(ALARMS) as stage:
        await stage.run("await ctx.storage.setAlarm(Date.now() + 1500);")
        await stage.evicted()
        await until(lambda: stage.node.node.objects.alarms.delivered, "the alarm")
        assert await stage.run("return await ctx.storage.get('named');") == ["one"]


async def test_an_aborted_alarm_is_not_repeated_if_the_object_says_so() -> None:
    async with opened(ALARMS) as stage:
        await stage.run("await ctx.storage.put('aborts', 1); await ctx.storage.setAlarm(Date.now());")
        await until(lambda: stage.node.node.objects.alarms.failed, "the alarm failed")
        assert await stage.run("return await ctx.storage.getAlarm();") is None
