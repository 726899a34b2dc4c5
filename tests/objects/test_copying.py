"""Copies of objects in storage: exactly what was durable, and all or nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from atoll.errors import InvalidArgument, StorageFailed
from atoll.objects.history import HistoryBounds
from atoll.objects.store import PAGE, ObjectDamaged
from tests.objects.journals import Stored, key, make_commit, page, running


async def store(stored: Stored, words: list[str]) -> None:
    """Object 1 has these words, in its journal and in its file."""
    sequence = (await stored.open(key())).sequence
    changed = {number: page(word) for number, word in enumerate(words, 1)}
    await stored.begin(key(), make_commit(sequence + 1, len(words), changed))


async def test_a_copy_of_an_open_object_has_what_was_committed_before_it(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        await store(stored, ["a", "b"])
        under_way = stored.begin(key(), make_commit(2, 3, {3: page("c")}))
        await stored.store.copy(key(), key(2))
        assert under_way.done()
        await stored.begin(key(), make_commit(3, 1, {1: page("later")}))
        stored.store.close(key())
        assert await stored.words(key(2)) == ["a", "b", "c"]
        await stored.write(key(2), "x")
        assert (await stored.words(key()), await stored.words(key(2))) == (["later"], ["x"])
    async with running(tmp_path) as stored:
        assert (await stored.words(key()), await stored.words(key(2))) == (["later"], ["x"])
        assert (await stored.open(key(2))).sequence == 2


async def test_an_empty_object_is_copied_and_one_that_is_open_or_not_empty_is_no_target(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        await stored.store.copy(key(), key(2))
        assert await stored.words(key(2)) == []
        await stored.write(key(), "a")
        await stored.write(key(2), "b")
        with pytest.raises(ValueError, match="empty"):
            await stored.store.copy(key(), key(2))
        await stored.open(key(3))
        with pytest.raises(ValueError, match="empty"):
            await stored.store.copy(key(), key(3))
        assert await stored.words(key(2)) == ["b"]


async def test_a_copy_in_parts_is_all_or_nothing_when_the_node_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.objects.copying.MAX_ONE", 4)
    monkeypatch.setattr("atoll.objects.copying.PIECE", 4)
    words = [f"page {number}" for number in range(1, 15)]
    copies: list[Path] = []
    data = tmp_path / "live"
    async with running(data) as stored:
        await store(stored, words)
        stored.store.close(key())
        copier = stored.store.copy.__self__  # type: ignore[attr-defined]
        keep = copier._store

        async def kill_before(state: object, record: object) -> None:
            copies.append(Path(await asyncio.to_thread(shutil.copytree, data, tmp_path / str(len(copies)))))
            await keep(state, record)

        copier._store = kill_before
        await stored.store.copy(key(), key(2))
        assert await stored.words(key(2)) == words
    assert len(copies) == 5, "the wish to go back, and four parts"
    for each in copies:
        async with running(each) as stored:
            assert (await stored.words(key()), await stored.words(key(2))) == (words, [])
            assert await stored.store.damaged() == []
            await stored.write(key(2), "again")
    async with running(data) as stored:
        assert await stored.words(key(2)) == words


async def test_copies_that_cannot_be_made_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as stored:
        await store(stored, ["a", "b", "c"])
        stored.store.close(key())
        with monkeypatch.context() as patch:
            patch.setattr("atoll.objects.copying.MAX_COPIED", 2)
            for target in (key(2), None):
                with pytest.raises(InvalidArgument, match="copies are bounded"):
                    await stored.store.copy(key(), target)
        with monkeypatch.context() as patch:
            patch.setattr("atoll.objects.copying.MAX_ONE", 2)
            stored.store._history.bounds = HistoryBounds(days=0)
            with pytest.raises(InvalidArgument, match="object_history_days"):
                await stored.store.copy(key(), key(2))
        await stored.store.copy(key(), None)
        assert await stored.words(key(2)) == [], "nothing is copied without a target"
        await stored.store._merger._round()
        path = stored.store._files.path(key())
        os.truncate(path, PAGE)
        with pytest.raises(ObjectDamaged):
            await stored.store.copy(key(), key(2))
        path.unlink()
        with pytest.raises(ObjectDamaged, match="missing"):
            await stored.store.copy(key(), key(2))
        assert await stored.words(key(2)) == []


async def test_a_disk_that_is_full_during_a_copy_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as stored:
        await store(stored, ["a"])
        stored.store.close(key())
        monkeypatch.setattr(os, "sendfile", lambda *args: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(StorageFailed, match="full"):
            await stored.store.copy(key(), key(2))
        monkeypatch.undo()
        assert await stored.words(key(2)) == []
        await stored.store.copy(key(), key(2))
        assert await stored.words(key(2)) == ["a"]
