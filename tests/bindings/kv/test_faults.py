"""The disk is full, read-only or damaged: a clear error, nothing lost, and recovery afterwards."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.bindings.kv.sqlite import SqliteKV
from atoll.bindings.kv.store import Space, StoredValue
from atoll.errors import StorageFailed
from tests.disks import SmallDisk, small_disk
from tests.running import COMMAND

SPACE = Space("alice", "things")
NOW = 1_800_000_000.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 40) as made:
        yield made


async def test_a_full_disk_is_a_clear_error_loses_nothing_and_recovers(disk: SmallDisk) -> None:
    ballast = disk.folder / "other"
    ballast.write_bytes(bytes(20 << 20))
    store = SqliteKV(disk.folder / "kv.db")
    await store.create(SPACE, NOW)
    stored = 0
    with pytest.raises(StorageFailed, match="full"):
        for stored in range(100):
            await store.put(SPACE, [(b"%d" % stored, StoredValue(bytes([stored]) * (1 << 20)))])
    assert 5 < stored < 99
    for key in range(stored):
        [entry] = await store.get(SPACE, [b"%d" % key], NOW)
        assert entry == StoredValue(bytes([key]) * (1 << 20)), "every acknowledged value is there"
    assert await store.get(SPACE, [b"%d" % stored], NOW) == [None]
    ballast.unlink()
    await store.put(SPACE, [(b"%d" % stored, StoredValue(b"now it fits"))])
    assert await store.get(SPACE, [b"%d" % stored], NOW) == [StoredValue(b"now it fits")]
    await store.close()


def test_an_unwritable_data_folder_is_reported_at_the_start(disk: SmallDisk) -> None:
    data = disk.folder / "data"
    data.mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(disk.folder)], check=True)
    done = subprocess.run([*COMMAND, "--port=0", f"--data={data}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "cannot be used: Read-only file system" in done.stderr and "hint:" in done.stderr
    assert "Traceback" not in done.stderr


async def test_a_file_that_cannot_grow_fails_writes_only_and_recovers(tmp_path: Path) -> None:
    store = SqliteKV(tmp_path / "kv.db")
    await store.create(SPACE, NOW)
    await store.put(SPACE, [(b"before", StoredValue(bytes(500_000)))])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))
    try:
        with pytest.raises(StorageFailed):
            await store.put(SPACE, [(b"large", StoredValue(bytes(2_000_000)))])
        assert await store.get(SPACE, [b"before", b"large"], NOW) == [StoredValue(bytes(500_000)), None]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await store.put(SPACE, [(b"large", StoredValue(bytes(2_000_000)))])
    assert await store.get(SPACE, [b"large"], NOW) == [StoredValue(bytes(2_000_000))]
    await store.close()


async def test_a_damaged_page_costs_the_keys_on_it_and_no_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "kv.db"
    keys = [b"%04d" % i for i in range(2000)]
    store = SqliteKV(path)
    await store.create(SPACE, NOW)
    await store.put(SPACE, [(key, StoredValue(key * 25)) for key in keys])
    await store.close()
    content = bytearray(path.read_bytes())
    middle = len(content) // 4096 // 2 * 4096
    content[middle : middle + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    store = SqliteKV(path)
    lost = 0
    for key in keys:
        try:
            assert await store.get(SPACE, [key], NOW) == [StoredValue(key * 25)]
        except StorageFailed as error:
            assert str(error) == "the storage of this node is damaged"
            lost += 1
    assert 0 < lost < 100
    assert caplog.text.count("is damaged (") == 1 and str(path) in caplog.text, "one log line, not one per key"
    await store.put(SPACE, [(b"new", StoredValue(b"works"))])
    assert await store.get(SPACE, [b"new"], NOW) == [StoredValue(b"works")]
    await store.close()
