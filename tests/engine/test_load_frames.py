"""LOAD frames that are prepared before the first call, and the cost of creating an isolate."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path

from engine_room import HELLO, EngineRoom, script

from atoll.engine.limits import PoolLimits
from atoll.engine.loaded.load_frames import AHEAD_BYTES, CodeCache, LoadFrames
from atoll.engine.pool import TenantCaps
from atoll.engine.process.engine_process import V8_FLAGS, ensure_snapshot, find_files
from atoll.wire.codec import HEADER_SIZE
from atoll.wire.load import encode_load
from atoll.workers import Module, ModuleKind, Version


class Store:
    """Returns the same code cache for every version and records the requests."""

    def __init__(self) -> None:
        self.asked: list[Version] = []

    def load(self, version: Version, v8: str) -> CodeCache:
        self.asked.append(version)
        return (b"from the store",)


def test_a_prepared_load_reads_the_store_once() -> None:
    store, version = Store(), script(HELLO)
    frames = LoadFrames(store.load, PoolLimits())
    assert frames.prepare(version, "v8")
    assert frames.prepare(version, "v8")
    payload, cached = frames.get(version, "v8")
    assert cached and payload[-1].endswith(b"from the store")
    assert store.asked == [version]


def test_a_code_cache_at_hand_is_not_read_again() -> None:
    store, version = Store(), script(HELLO)
    frames = LoadFrames(store.load, PoolLimits())
    assert frames.prepare(version, "v8", (b"at hand",))
    assert frames.get(version, "v8")[0][-1].endswith(b"at hand")
    assert frames.get(version, "another v8")[0][-1].endswith(b"from the store")
    frames.forget(version)
    assert frames.get(version, "v8")[0][-1].endswith(b"from the store")


def test_prepared_loads_are_bounded_in_bytes() -> None:
    frames = LoadFrames(None, PoolLimits())
    versions = [script(HELLO + "/" * (1 << 20), f"w{n}") for n in range(2 * AHEAD_BYTES >> 20)]
    ready = [frames.prepare(version, "v8") for version in versions]
    assert ready == [True] * (AHEAD_BYTES >> 20) + [False] * (AHEAD_BYTES >> 20)
    assert len(b"".join(frames.get(versions[-1], "v8")[0])) > 1 << 20, (
        "a version that is not prepared can still be loaded"
    )


def test_large_sources_are_sent_without_a_copy() -> None:
    large = Module("large.txt", ModuleKind.TEXT, b"x" * (1 << 20))
    version = dataclasses.replace(
        script(HELLO), modules=(*script(HELLO).modules, large, Module("s.txt", ModuleKind.TEXT, b"s"))
    )
    pieces, _ = LoadFrames(None, PoolLimits()).get(version, "v8")
    frame = encode_load(7, 128, pieces)
    assert len(frame) == 3 and frame[1] is large.source and frame[2] == b"s"
    assert int.from_bytes(frame[0][:4], "little") == len(b"".join(frame)) - HEADER_SIZE


async def test_a_prepared_version_loads_with_the_code_cache_it_was_prepared_with(room: EngineRoom) -> None:
    deployed = script(HELLO)
    await room.pool.loader.check(deployed)
    await room.until(lambda: room.saved == 1, "the code cache")
    stored = dataclasses.replace(deployed)  # as after a restart: the same worker, read from the store
    assert await room.pool.loader.prepare(stored)
    (key,) = room.caches
    room.caches[key] = (b"spoilt" * 100,)
    assert (await room.get(stored)).body == b"hello"
    report = room.isolate(stored).report
    assert report is not None and not report.cache_rejected, "the store is not read again"


async def test_code_caches_of_shared_engines_are_not_used_in_the_engine_of_a_tenant(room: EngineRoom) -> None:
    """V8 does not verify bytecode: code from a compromised shared engine would take over a tenant's own engine too."""
    version = script(HELLO)
    await room.pool.loader.check(version)
    await room.until(lambda: room.saved == 1, "the code cache")
    (shared,) = room.caches
    room.caches[shared] = (b"planted" * 100,)
    room.pool.set_caps("default", TenantCaps(own_engine=True))
    assert (await room.get(version)).body == b"hello"
    report = room.isolate(version).report
    assert report is not None and not report.cache_rejected, "the planted cache is not even offered to V8"
    await room.until(lambda: len(room.caches) == 2, "the code cache of its own engine")
    (own,) = room.caches.keys() - {shared}
    assert own == f"{shared} tenant default"


def test_the_engine_measures_the_cost_of_an_isolate(snapshots: Path) -> None:
    files = find_files()
    command = [str(files.node), *V8_FLAGS, str(files.main), "rehearse", str(ensure_snapshot(files, snapshots)), "3"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60, env={"OPENSSL_CONF": "/dev/null"})
    found = json.loads(done.stdout)
    assert found["snapshot_bytes"] > 100_000
    assert all(found[step] > 0 for step in ("make_us", "context_us", "warm_us", "end_us")), found
