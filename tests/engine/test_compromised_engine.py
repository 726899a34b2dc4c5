"""An engine that lies is killed. Python, the other engines and their calls are not affected."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_room import HELLO, PATIENCE, EngineRoom, script
from lying_engine import HELLOS, LIES

from atoll.engine.link import link
from atoll.engine.process.engine_process import EngineFiles
from atoll.errors import StartError
from atoll.wire.generated import Outcome
from atoll.workers import Limits


@pytest.fixture
def liar(tmp_path: Path) -> Callable[[str], EngineFiles]:
    """The files of an engine that sends the given lie."""

    def made(lie: str) -> EngineFiles:
        node = tmp_path / "node"
        program = Path(__file__).with_name("lying_engine.py").read_text()
        node.write_text(f"#!{sys.executable}\n" + program.replace("__file__", repr(__file__)))
        node.chmod(0o755)
        for name in ("engine.node", "web.js"):
            (tmp_path / name).write_text(lie)
        (tmp_path / "main.js").write_text(lie)
        return EngineFiles(node, tmp_path / "main.js", tmp_path / "engine.node", tmp_path / "web.js")

    return made


@pytest.fixture
async def room_of(open_room: Callable[..., Any], liar: Callable[[str], EngineFiles]) -> Callable[..., Any]:
    async def opened(lie: str, **given: Any) -> EngineRoom:
        return await open_room(files=liar(lie), sandbox="off", kinds=("echo",), **given)  # type: ignore[no-any-return]

    return opened


async def test_the_fake_engine_works_while_it_is_honest(room_of: Callable[..., Any]) -> None:
    room = await room_of("honest")
    ear = await room.get(script(HELLO))
    assert (ear.status, ear.body, ear.ended) == (200, b"hello", True)
    assert room.records[0].outcome == Outcome.OK


@pytest.mark.parametrize("lie", LIES)
async def test_an_engine_that_lies_is_killed(room_of: Callable[..., Any], lie: str) -> None:
    room = await room_of(lie)
    (liar,) = room.supervisor.pids
    ear = room.call(script(HELLO))
    ear.grants = False
    await room.until(lambda: liar not in room.supervisor.pids, "the end of the liar")
    await room.until(lambda: room.supervisor.pids, "a new engine")
    assert ear.ended or ear.code == "ENGINE_DIED"
    assert room.pool.stats().engines_lost == 1
    assert len(room.records) == 1


@pytest.mark.parametrize("lie", HELLOS)
async def test_an_engine_of_another_build_refuses_to_start(
    tmp_path: Path, make_room: Callable[..., Any], liar: Callable[[str], EngineFiles], lie: str
) -> None:
    room = make_room(tmp_path, files=liar(lie), sandbox="off", kinds=("echo",))
    with pytest.raises(StartError) as refused:
        await room.supervisor.start()
    told = str(refused.value)
    if lie == "another wire":
        assert "0123456789abcdef" in told and link.WIRE_HASH in told and "make setup" in told
    if lie == "other ops":
        assert "kv.get" in told and "echo.wait" in told


async def test_a_response_before_loaded_is_a_lie(room_of: Callable[..., Any]) -> None:
    room = await room_of("responds before loaded")
    ear = await room.get(script(HELLO))
    assert ear.code == "ENGINE_DIED"
    assert room.pool.stats().engines_lost == 3, "nothing shows that the call started, so it moves twice"


async def test_a_call_whose_engines_all_die_while_loading_fails_after_two_moves(room_of: Callable[..., Any]) -> None:
    room = await room_of("dies while loading")
    ear = await room.get(script(HELLO))
    assert ear.code == "ENGINE_DIED"
    assert room.pool.stats().moves == 2


async def test_a_call_to_a_loaded_worker_that_had_not_begun_moves_too(room_of: Callable[..., Any]) -> None:
    room = await room_of("dies before it begins")
    version = script(HELLO)
    await room.pool.loader.check(version)
    ear = await room.get(version)
    assert ear.code == "ENGINE_DIED"
    assert room.pool.stats().moves == 2


async def test_a_call_that_every_engine_refuses_fails_after_two_moves(room_of: Callable[..., Any]) -> None:
    room = await room_of("refuses calls")
    ear = await room.get(script(HELLO))
    assert ear.code == "UNLOADED"
    assert room.pool.stats().moves == 2
    assert room.pool.stats().engines_lost == 0
    await room.until(lambda: not room.pool.busy, "the end of the stand-ins")
    assert len(room.records) == 1


async def test_an_engine_that_misses_heartbeats_is_killed(
    room_of: Callable[..., Any],
) -> None:
    room = await room_of("deaf", heartbeat_seconds=0.1)
    await room.until(lambda: room.pool.stats().engines_lost, "the end of the deaf engine")


async def test_an_engine_that_reads_nothing_is_killed_before_memory_runs_out(
    room_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "UNREAD_BYTES", 4 << 20)
    room = await room_of("reads nothing")
    version = script(HELLO)
    await room.pool.loader.check(version)
    ears = [room.call(version, body=b"x" * 65536) for _ in range(100)]
    async with asyncio.timeout(PATIENCE):
        for ear in ears:
            assert (await ear.over()).code == "ENGINE_DIED"


async def test_frames_after_a_cancel_are_dropped_until_done(room_of: Callable[..., Any]) -> None:
    room = await room_of("silent until cancelled")
    ear = room.call(script(HELLO))
    await room.until(lambda: room.isolate(ear.call.version).ready, "LOADED")
    ear.call.cancel()
    await room.until(lambda: not room.pool.busy, "DONE")
    assert (ear.status, ear.failure) == (0, None)
    assert room.records[0].outcome == Outcome.CANCELED
    assert room.pool.stats().engines_lost == 0


async def test_frames_after_an_early_failure_are_dropped_until_done(room_of: Callable[..., Any]) -> None:
    room = await room_of("fails early and goes on")
    ear = await room.get(script(HELLO))
    assert (ear.code, ear.status, ear.body) == ("CPU", 0, b"")
    await room.until(lambda: not room.pool.busy, "DONE")
    assert [record.outcome for record in room.records] == [Outcome.EXCEEDED_CPU]
    assert room.pool.stats().engines_lost == 0


async def test_a_call_that_never_responds_ends_at_its_wall_limit(room_of: Callable[..., Any]) -> None:
    room = await room_of("silent until cancelled")
    ear = await room.get(script(HELLO, limits=Limits(wall_ms=200)))
    assert ear.code == "WALL"
    assert "0.2 s" in ear.failure.message
    await room.until(lambda: room.records, "the record")
    assert room.records[0].outcome == Outcome.EXCEEDED_WALL_TIME
    assert 200_000 <= room.records[0].wall_us < 5_000_000


async def test_an_engine_that_ignores_cancel_and_unload_is_stuck_and_killed(
    room_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.engine.calls.call_table.CANCEL_SECONDS", 0.2)
    monkeypatch.setattr("atoll.engine.loaded.engine_session.CANCEL_SECONDS", 0.2)
    room = await room_of("ignores everything")
    ear = await room.get(script(HELLO, limits=Limits(wall_ms=100)))
    assert ear.code == "WALL"
    await room.until(lambda: room.pool.stats().engines_lost, "the end of the stuck engine")
    assert [record.outcome for record in room.records] == [Outcome.EXCEEDED_WALL_TIME]


async def test_a_load_that_never_ends_fails_as_a_startup_error(
    room_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.engine.loaded.loader.LOAD_SECONDS", 0.2)
    monkeypatch.setattr("atoll.engine.pool.SLOW_SWEEP", 0.1)
    room = await room_of("never loads")
    assert (await room.get(script(HELLO))).code == "STARTUP"
    assert room.pool.stats().engines_lost == 0


async def test_calls_beyond_the_queue_of_a_loading_worker_are_refused(room_of: Callable[..., Any]) -> None:
    room = await room_of("never loads")
    version = script(HELLO)
    ears = [room.call(version) for _ in range(105)]
    assert [ear.code for ear in ears] == [""] * 100 + ["OVERLOADED"] * 5
    assert [record.outcome for record in room.records] == [Outcome.LOAD_SHED] * 5
