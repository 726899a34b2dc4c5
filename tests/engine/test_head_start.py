"""The head start of a fresh isolate: the first calls of a large bundle may be slow; endless loops gain little."""

from __future__ import annotations

from engine_room import EngineRoom, script

from atoll.workers import Limits
from tests.engine.bundle import bundle

MB = 1 << 20
HEAD_START_MS = 158  # for 1 MB of code: engine/src/limits/head_start.h
FUND_MS = 2000  # for one tenant in one engine

BURN = """
const round = () => { let sum = 0; for (let i = 0; i < 20000; i++) sum += Math.sqrt(i); return sum; };
export default { fetch(request) {
  const rounds = Number(new URL(request.url).pathname.slice(1));
  for (let i = 0; i < rounds; i++) round();
  return new Response("done");
} };
"""


async def cpu_ms(room: EngineRoom) -> float:
    """The CPU time of the last call in ms."""
    return room.records[-1].cpu_us / 1000


async def test_the_first_render_of_a_large_bundle_succeeds(room: EngineRoom) -> None:
    """The limit is far below the time to compile, so the test does not depend on the speed of the machine."""
    version = script(bundle(MB), limits=Limits(cpu_ms=10))
    first = await room.get(version)
    assert first.body == b"true", first.failure
    await room.until(lambda: room.records, "the record")
    assert await cpu_ms(room) > 12.5, "the call used more than saved time allows; otherwise the test proves nothing"
    for _ in range(3):
        assert (await room.get(version)).body == b"true"
    assert await cpu_ms(room) < 10


async def test_an_endless_loop_in_a_large_bundle_ends_after_its_limit_and_the_head_start(room: EngineRoom) -> None:
    version = script(bundle(MB), limits=Limits(cpu_ms=50))
    ear = await room.get(version, "http://test/loop")
    assert ear.code == "CPU"
    await room.until(lambda: room.records, "the record")
    assert await cpu_ms(room) <= (50 + HEAD_START_MS) * 1.25


async def test_new_isolates_do_not_exceed_the_head_start_fund_of_a_tenant(room: EngineRoom) -> None:
    """Each loop ends its isolate, so each call gets a new one, of other versions and other workers."""
    beyond = 0.0
    for number in range(40):
        version = script(bundle(MB) + f"// {number}", f"w{number % 7}", limits=Limits(cpu_ms=50))
        assert (await room.get(version, "http://test/loop")).code == "CPU"
        await room.until(lambda number=number: len(room.records) > number, "the record")
        beyond += await cpu_ms(room) - 50
    last = [record.cpu_us / 1000 for record in room.records[-5:]]
    assert max(last) < 50 + HEAD_START_MS / 2, "only the refill since then is left"
    assert FUND_MS / 2 < beyond < FUND_MS * 2


async def test_the_head_start_is_used_up_once(room: EngineRoom) -> None:
    await room.get(script(BURN, "probe", Limits(cpu_ms=30_000)), "http://test/2000")
    await room.until(lambda: room.records, "the record")
    rounds = int(2000 * 110 / await cpu_ms(room))
    version = script(BURN + "//" + "x" * MB, limits=Limits(cpu_ms=50))
    codes = []
    while not codes or codes[-1] == "":
        codes.append((await room.get(version, f"http://test/{rounds}")).code)
        assert len(codes) < 10, "every call exceeds its limit by 60 ms"
    assert len(codes) > 1 and codes[-1] == "CPU"
