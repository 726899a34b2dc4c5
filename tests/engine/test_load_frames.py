"""LOAD frames that are ready before anybody asks for them, and what making an isolate costs the engine."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path

from engine_room import HELLO, EngineRoom, script

from atoll.engine.loads import AHEAD_BYTES, CodeCache, LoadFrames
from atoll.engine.measures import PoolLimits
from atoll.engine.pool import TenantCaps
from atoll.engine.process import V8_FLAGS, ensure_snapshot, find_files
from atoll.workers import Version


class Store:
    """Gives the same code cache for every version, and remembers who asked."""

    def __init__(self) -> None:
        self.asked: list[Version] = []

    def load(self, version: Version, v8: str) -> CodeCache:
        self.asked.append(version)
        return (b"from the store",)


def test_a_load_that_was_prepared_asks_the_store_once() -> None:
    store, version = Store(), script(HELLO)
    frames = LoadFrames(store.load, PoolLimits())
    assert frames.prepare(version, "v8")
    assert frames.prepare(version, "v8")
    payload, cached = frames.get(version, "v8")
    assert cached and payload.endswith(b"from the store")
    assert store.asked == [version]


def test_a_code_cache_at_hand_is_not_read_again() -> None:
    store, version = Store(), script(HELLO)
    frames = LoadFrames(store.load, PoolLimits())
    assert frames.prepare(version, "v8", (b"at hand",))
    assert frames.get(version, "v8")[0].endswith(b"at hand")
    assert frames.get(version, "another v8")[0].endswith(b"from the store")
    frames.forget(version)
    assert frames.get(version, "v8")[0].endswith(b"from the store")


def test_so_many_bytes_are_prepared_and_no_more() -> None:
    frames = LoadFrames(None, PoolLimits())
    versions = [script(HELLO + "/" * (1 << 20), f"w{n}") for n in range(2 * AHEAD_BYTES >> 20)]
    ready = [frames.prepare(version, "v8") for version in versions]
    assert ready == [True] * (AHEAD_BYTES >> 20) + [False] * (AHEAD_BYTES >> 20)
    assert len(frames.get(versions[-1], "v8")[0]) > 1 << 20, "whoever is asked for is loaded all the same"


async def test_a_prepared_version_loads_with_the_code_cache_it_was_prepared_with(room: EngineRoom) -> None:
    deployed = script(HELLO)
    await room.pool.check(deployed)
    await room.until(lambda: room.saved == 1, "the code cache")
    stored = dataclasses.replace(deployed)  # as after a restart: the same worker, read from the store
    assert await room.pool.prepare(stored)
    (key,) = room.caches
    room.caches[key] = (b"spoilt" * 100,)
    assert (await room.get(stored)).body == b"hello"
    report = room.placement(stored).report
    assert report is not None and not report.cache_rejected, "the store was not asked again"


async def test_code_that_shared_engines_made_is_not_run_in_an_engine_of_ones_own(room: EngineRoom) -> None:
    """V8 does not verify bytecode: an engine that was taken over would have spread to those that others have alone."""
    version = script(HELLO)
    await room.pool.check(version)
    await room.until(lambda: room.saved == 1, "the code cache")
    (shared,) = room.caches
    room.caches[shared] = (b"planted" * 100,)
    room.pool.set_caps("default", TenantCaps(own_engine=True))
    assert (await room.get(version)).body == b"hello"
    report = room.placement(version).report
    assert report is not None and not report.cache_rejected, "it was not even shown"
    await room.until(lambda: len(room.caches) == 2, "the code cache of its own engine")
    (own,) = room.caches.keys() - {shared}
    assert own == f"{shared} tenant default"


def test_the_engine_measures_what_an_isolate_costs_it(snapshots: Path) -> None:
    files = find_files()
    command = [str(files.node), *V8_FLAGS, str(files.main), "rehearse", str(ensure_snapshot(files, snapshots)), "3"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60, env={"OPENSSL_CONF": "/dev/null"})
    found = json.loads(done.stdout)
    assert found["snapshot_bytes"] > 100_000
    assert all(found[step] > 0 for step in ("make_us", "context_us", "warm_us", "end_us")), found
