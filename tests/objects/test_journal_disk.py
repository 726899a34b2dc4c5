"""The disk becomes full or read-only: errors in words, nothing half stored, reads go on, and it recovers by itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from atoll.errors import StorageFailed
from atoll.objects.local import LocalObjects
from tests.disks import run, small_disk
from tests.objects.journals import MOST, SEGMENT, Stored, key, make_commit, page, running

BIG = {number: page(number) for number in range(1, 65)}


async def commit_until_refused(stored: Stored) -> tuple[int, StorageFailed]:
    """The last commit that was acknowledged, and the error of the next."""
    sequence = (await stored.open(key())).sequence
    while True:
        try:
            await stored.begin(key(), make_commit(sequence + 1, 64, BIG | {1: page(sequence + 1)}))
        except StorageFailed as error:
            return sequence, error
        sequence += 1


async def test_a_full_disk_refuses_commits_and_recovers(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 16) as disk:
        async with running(disk.folder / "data", most=2 << 20) as stored:
            await stored.write(key(2), "before")
            await stored.store._merger._round()
            disk.fill()
            last, error = await commit_until_refused(stored)
            assert str(error) == "the disk of this node is full"
            assert await stored.words(key(2)) == ["before"], "reading continues"
            disk.free()
            with pytest.raises(StorageFailed, match="before this one"):  # none slips in behind the lost one
                await stored.begin(key(), make_commit(last + 2, 64, BIG))
            assert stored.store.held == 0
            assert (await stored.open(key())).sequence == last
            assert (await stored.words(key()))[:1] == ([str(last)] if last else [])
            await stored.open(key())
            await stored.begin(key(), make_commit(last + 1, 64, BIG | {1: page("after")}))
            await stored.store._merger._round()
        async with running(disk.folder / "data") as stored:
            assert (await stored.words(key()))[0] == "after"
            assert await stored.store.damaged() == []


async def test_a_store_stops_and_starts_on_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 16) as disk:
        async with running(disk.folder / "data", most=2 << 20) as stored:
            disk.fill()
            last, _ = await commit_until_refused(stored)
        disk.free()
        async with running(disk.folder / "data") as stored:
            assert (await stored.open(key())).sequence == last


async def test_a_read_only_folder_refuses_commits_and_recovers(tmp_path: Path) -> None:
    store = await LocalObjects.start(tmp_path, segment=SEGMENT, most=MOST)
    stored = Stored(store)
    await stored.write(key(), "before")
    await store._merger._round()
    await stored.open(key())
    with read_only(tmp_path / "objects" / "journal"):
        big = {number: page("lost") for number in range(1, 65)}  # more than the rest of the segment, which is open
        with pytest.raises(StorageFailed, match="cannot be written to"):
            await stored.begin(key(), make_commit(2, 64, big))
        assert await stored.words(key()) == ["before"]
    await stored.write(key(), "after")
    await store.stop()
    async with running(tmp_path) as stored:
        assert await stored.words(key()) == ["after"]


async def test_a_data_folder_that_is_not_mounted_any_more_refuses_objects_and_gets_nothing(tmp_path: Path) -> None:
    """The mount point is an empty folder then. What was stored is there again once the disk is."""
    data, away = tmp_path / "data", tmp_path / "away"
    store = await LocalObjects.start(data, segment=SEGMENT, most=MOST)
    stored = Stored(store)
    await stored.write(key(), "before")
    await store._merger._round()
    opened = await store.open(key(3))  # lives when it happens
    data.rename(away)
    data.mkdir()
    big = {number: page("lost") for number in range(1, 65)}  # more than the rest of the segment, which is open
    with pytest.raises(StorageFailed, match="the storage of this node is not available"):
        await stored.begin(key(3), make_commit(1, 64, big))
    for each in (key(), key(2)):  # one that stores something, and a new one
        with pytest.raises(StorageFailed, match="the storage of this node is not available"):
            await stored.open(each)
    os.close(opened.fd)
    await store._merger._round()
    assert list(data.iterdir()) == [], "nothing lands in the mount point"
    assert await store.damaged() == []
    data.rmdir()
    away.rename(data)
    assert await stored.words(key()) == ["before"]
    await stored.write(key(2), "after")
    await store.stop()
    async with running(data) as stored:
        assert [await stored.words(key(number)) for number in (1, 2, 3)] == [["before"], ["after"], []]


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    run("mount", "--bind", folder, folder)
    try:
        run("mount", "-o", "remount,bind,ro", folder)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
