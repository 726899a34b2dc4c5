"""Timers never fire early. A request does not wait for a timer beyond timer_ms; an operator may refuse such timers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from engine_room import EngineRoom, script

from atoll.engine.pool import PoolLimits
from atoll.errors import LoadFailed
from atoll.workers import Limits

WAYS = {
    "setTimeout": "new Promise((r) => setTimeout(r, MS, 'rang'))",
    "setInterval": "new Promise((r) => setInterval(r, MS, 'rang'))",
    "AbortSignal.timeout": "new Promise((r) => { AbortSignal.timeout(MS).onabort = () => r('rang'); })",
    "scheduler.wait": "scheduler.wait(MS).then(() => 'rang')",
    "node:timers": "import('node:timers').then((t) => new Promise((r) => t.setTimeout(r, MS, 'rang')))",
    "node:timers/promises": "import('node:timers/promises').then((t) => t.setTimeout(MS, 'rang'))",
    "node:timers/promises wait": "import('node:timers/promises').then((t) => t.scheduler.wait(MS)).then(() => 'rang')",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("delay", ["200", "60_000", "2 ** 31", "2 ** 32 + 5", "2 ** 53 - 1", "1e100", "Infinity"])
async def test_a_timer_longer_than_the_limit_does_not_fire_early(room: EngineRoom, way: str, delay: str) -> None:
    if delay in ("1e100", "Infinity") and ("AbortSignal" in way or way == "scheduler.wait"):
        return  # not a valid delay: https://webidl.spec.whatwg.org/#EnforceRange
    version = script(
        f"""export default {{ async fetch(request, env) {{
          let rang = false;
          {WAYS[way].replace("MS", delay)}.then(() => (rang = true));
          for (let i = 0; i < 4; i++) await new Promise((r) => setTimeout(r, 20));
          return new Response(String(rang));
        }} }};""",
        limits=Limits(timer_ms=50, cpu_ms=1000),
    )
    assert (await room.get(version)).body == b"false"


@pytest.mark.parametrize("way", WAYS)
async def test_a_timer_longer_than_the_limit_fires_in_time_if_its_call_is_open(room: EngineRoom, way: str) -> None:
    version = script(
        f"""export default {{ async fetch(request, env) {{
          const keep = setInterval(() => {{}}, 20);
          const text = await {WAYS[way].replace("MS", "150")};
          clearInterval(keep);
          return new Response(text);
        }} }};""",
        limits=Limits(timer_ms=50, cpu_ms=1000),
    )
    await room.pool.loader.check(version)
    started = time.monotonic()
    assert (await room.get(version)).body == b"rang"
    assert time.monotonic() - started >= 0.15


async def test_a_request_that_waits_only_for_a_timer_beyond_the_limit_ends_with_its_name(room: EngineRoom) -> None:
    source = "export default { fetch: () => new Promise((r) => setTimeout(() => r(new Response('rang')), 60_000)) };"
    ear = await room.get(script(source))
    assert ear.code == "NEVER_RESPONDS" and ear.failure is not None
    assert (
        "a call does not wait for timers longer than timer_ms, and 1 such timer of this request was set"
        in ear.failure.message
    )


async def test_wait_until_with_a_timer_beyond_the_limit_keeps_no_call_open(room: EngineRoom) -> None:
    source = """export default { fetch(request, env, ctx) {
      ctx.waitUntil(new Promise((r) => setTimeout(r, 60_000)));
      return new Response("here");
    } };"""
    assert (await room.get(script(source))).body == b"here"
    await room.until(lambda: room.records, "the record")
    assert "would never settle" in room.records[0].logs[-1].text


async def test_an_abort_timer_that_is_never_cleared_does_not_end_a_call(room: EngineRoom) -> None:
    """Many packages never clear this timer. The next call must work too."""
    source = """export default { async fetch(request, env) {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 60_000);
      await new Promise((r) => setTimeout(r, 120));
      return new Response(String(controller.signal.aborted));
    } };"""
    version = script(source, limits=Limits(timer_ms=200, cpu_ms=1000))
    for _ in range(3):
        assert (await room.get(version)).body == b"false"


async def test_timers_beyond_the_limit_count_towards_the_ten_thousand(room: EngineRoom) -> None:
    source = """export default { fetch() {
      let set = 0;
      try {
        for (;;) { setTimeout(() => {}, set % 2 ? 9e3 : 9e9); set++; }
      } catch (error) { return new Response(`${set} ${error}`); }
    } };"""
    version = script(source)
    for _ in range(3):
        assert (await room.get(version)).body.startswith(
            b"10000 QuotaExceededError: You have exceeded the number of active timeouts you may set."
        )


async def test_top_level_code_does_not_wait_for_a_timer_beyond_the_limit(room: EngineRoom) -> None:
    source = "await new Promise((r) => setTimeout(r, 60_000)); export default { fetch() {} };"
    with pytest.raises(LoadFailed, match="top-level await would never finish"):
        await room.pool.loader.check(script(source))


@pytest.mark.parametrize("way", WAYS)
async def test_an_operator_may_refuse_timers_beyond_the_limit(open_room: Callable[..., Any], way: str) -> None:
    room = await open_room(limits=PoolLimits(refuse_long_timers=True))
    source = f"""export default {{ async fetch() {{
      try {{ return new Response(await ({WAYS[way].replace("MS", "60_000")})); }}
      catch (error) {{ return new Response(`${{error.name}}: ${{error.message}}`); }}
    }} }};"""
    text = (await room.get(script(source))).body.decode()
    assert re.fullmatch(
        r"RangeError: A timer of 60000 ms is too long: this node allows 30000 ms \(timer_ms\)\.", text
    ), text
