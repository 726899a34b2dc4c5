"""Objects are stored, merged into files, listed, deleted, and found again."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from atoll.objects.store import DELETE_ALARM, SET_ALARM, InvalidCommit, ObjectKey
from tests.objects.journals import MOST, key, make_commit, page, running, segments


async def test_what_was_committed_is_there_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        opened = await stored.open(key())
        assert (opened.pages, opened.sequence, opened.alarm_ms) == (0, 0, -1)
        await stored.begin(key(), make_commit(1, 2, {1: page("a"), 2: page("b")}))
        await stored.begin(key(), make_commit(2, 3, {3: page("c"), 1: page("d")}))
    async with running(tmp_path) as stored:
        assert await stored.words(key()) == ["d", "b", "c"]
        assert (await stored.open(key())).sequence == 2
        assert not segments(tmp_path), "all is merged when a store stops"


async def test_a_database_that_shrinks_and_grows_has_no_old_pages(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        await stored.open(key())
        await stored.begin(key(), make_commit(1, 3, {1: page("a"), 2: page("b"), 3: page("c")}))
        await stored.begin(key(), make_commit(2, 1, {}))
        await stored.begin(key(), make_commit(3, 3, {3: page("d")}))
        assert await stored.pages(key()) == [page("a"), bytes(4096), page("d")]


async def test_commits_that_break_the_rules_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        with pytest.raises(InvalidCommit, match="not open"):
            stored.begin(key(), make_commit(1, 1, {1: page("a")}))
        await stored.open(key())
        wrong = [
            make_commit(2, 1, {1: page("a")}),
            make_commit(0, 1, {1: page("a")}),
            make_commit(1, 1, {2: page("a")}),
            make_commit(1, 1, {0: page("a")}),
            make_commit(1, 1 << 31, {}),
            make_commit(1, 1, {1: b"short"}),
            make_commit(1, 1, {1: page("a")}, alarm=3),
            make_commit(1, 1, {1: page("a")}, alarm=SET_ALARM, alarm_ms=-5),
        ]
        for commit in wrong:
            with pytest.raises(InvalidCommit):
                stored.begin(key(), commit)
        await stored.begin(key(), make_commit(1, 1, {1: page("a")}))
        assert await stored.words(key()) == ["a"]
        with pytest.raises(ValueError, match="not the key"):
            await stored.store.open(ObjectKey("n", "../" * 22))


async def test_alarms_are_part_of_commits_and_found_again(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        heard: list[int | None] = []
        stored.store.on_alarms = lambda: heard.append(stored.store.next_alarm())
        for number, at_ms in ((1, 500), (2, 300), (3, 400)):
            await stored.open(key(number))
            await stored.begin(key(number), make_commit(1, 0, {}, SET_ALARM, at_ms))
        await stored.begin(key(3), make_commit(2, 0, {}, DELETE_ALARM))
        assert heard[0] == 500 and heard[-1] == 300
    for _ in range(2):  # handed out again after a restart, until it is cleared
        async with running(tmp_path) as stored:
            store = stored.store
            assert (await stored.open(key(1))).alarm_ms == 500
            assert store.next_alarm() == 300
            due = store.due_alarms(450, 10)
            assert [(alarm.key, alarm.at_ms) for alarm in due] == [(key(2), 300)]
            assert store.due_alarms(450, 10) == []
            store.retry_alarm(due[0], 460)
            assert store.next_alarm() == 460
    async with running(tmp_path) as stored:
        (alarm,) = stored.store.due_alarms(450, 10)
        await stored.open(key(2))
        await stored.begin(key(2), make_commit(2, 0, {}, SET_ALARM, 300))
        await stored.store.clear_alarm(alarm)
        assert stored.store.next_alarm() == 300, "the object has set a new one"
        (alarm,) = stored.store.due_alarms(450, 10)
        await stored.store.clear_alarm(alarm)
    async with running(tmp_path) as stored:
        assert (await stored.open(key(2))).alarm_ms == -1
        assert stored.store.next_alarm() == 500


async def test_objects_are_listed_and_counted(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        for number in (5, 1, 3):
            await stored.write(key(number), "x")
        await stored.write(key(2, "others"), "x")
        await stored.open(key(9))
        for _ in range(2):  # before and after the merge
            first = await stored.store.list_objects("counters", "", 2)
            assert [(each.id, each.bytes) for each in first] == [(key(1).id, 4096), (key(3).id, 4096)]
            assert [each.id for each in await stored.store.list_objects("counters", first[-1].id, 2)] == [key(5).id]
            assert stored.store.size("counters") == (3, 3 * 4096)
            await stored.store._merger._round()
    async with running(tmp_path) as stored:
        assert stored.store.size("counters") == (3, 3 * 4096)
        assert stored.store.size("nobody") == (0, 0)


async def test_a_deleted_object_is_gone_and_begins_anew(tmp_path: Path) -> None:
    for is_merged in (False, True):
        async with running(tmp_path) as stored:
            await stored.write(key(), "a", "b")
            if is_merged:
                await stored.store._merger._round()
            await stored.store.delete(key())
            assert stored.store.size("counters") == (0, 0)
            assert await stored.store.list_objects("counters", "", 9) == []
            assert await stored.words(key()) == []
            await stored.write(key(), "c")
        async with running(tmp_path) as stored:
            assert await stored.words(key()) == ["c"]
            await stored.store.delete(key())


async def test_a_namespace_is_deleted_whole(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        await stored.write(key(1), "a")
        await stored.store._merger._round()
        await stored.write(key(2), "b")
        await stored.write(key(3, "others"), "c")
        await stored.store.delete_namespace("counters")
        assert stored.store.size("counters") == (0, 0)
    async with running(tmp_path) as stored:
        assert await stored.store.list_objects("counters", "", 9) == []
        assert await stored.words(key(3, "others")) == ["c"]
    assert len([path for path in (tmp_path / "objects/files").rglob("*") if path.is_file()]) == 1
    assert not list((tmp_path / "objects/trash").iterdir())


async def test_an_object_that_stored_nothing_leaves_no_file(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        await stored.open(key())
        stored.store.close(key())
    assert not [path for path in (tmp_path / "objects/files").rglob("*") if path.is_file()]


async def test_the_journal_is_bounded_and_nothing_is_lost_when_it_is_full(tmp_path: Path) -> None:
    async with running(tmp_path, most=4 * MOST) as stored:
        full: list[bool] = []
        hurry = stored.store._journal.on_full

        def on_full() -> None:
            full.append(stored.store.is_waiting)
            hurry()

        stored.store._journal.on_full = on_full
        keys = [key(number) for number in range(20)]
        for each in keys:
            await stored.open(each)
        waiting = []
        for sequence in range(1, 121):
            waiting += [stored.begin(each, make_commit(sequence, 1, {1: page(sequence)})) for each in keys]
        assert stored.store.held == 2400 * 4100
        await asyncio.gather(*waiting)
        assert stored.store.held == 0 and True in full, "it had to wait"
        assert stored.store._journal.bytes <= 4 * MOST
        assert await stored.words(keys[7]) == ["120"]


async def test_a_commit_larger_than_a_segment_is_stored(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        await stored.open(key())
        changed = {number: page(number) for number in range(1, 600)}
        await stored.begin(key(), make_commit(1, 599, changed))
        assert await stored.pages(key()) == list(changed.values())


async def test_engines_are_told_what_is_merged(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        told: list[tuple[ObjectKey, int]] = []
        stored.store.on_merged = lambda key, sequence: told.append((key, sequence))
        opened = await stored.store.open(key())
        await stored.begin(key(), make_commit(1, 1, {1: page("a")}))
        assert stored.store.merged(key()) == 0 and os.pread(opened.fd, 1, 0) == b""
        await stored.store._merger._round()
        assert told == [(key(), 1)] and stored.store.merged(key()) == 1
        assert os.pread(opened.fd, 4096, 0) == page("a"), "the descriptor of the engine sees it"
        os.close(opened.fd)


async def test_opening_waits_for_commits_of_an_engine_that_died(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        await stored.open(key())
        under_way = [stored.begin(key(), make_commit(number, 1, {1: page(number)})) for number in (1, 2, 3)]
        stored.store.close(key())
        assert (await stored.open(key())).sequence == 3
        assert await stored.words(key()) == ["3"]
        await asyncio.gather(*under_way)


async def test_an_object_that_is_merged_while_it_is_opened_is_opened(tmp_path: Path) -> None:
    """The records that the opening was to merge are gone from the journal when its turn comes."""
    async with running(tmp_path) as stored:
        await stored.write(key(), "a")
        merger = stored.store._merger
        first, second = threading.Event(), threading.Event()
        merger._sync_thread.submit(first.wait)  # it is in the file, and not synced yet
        merging = asyncio.ensure_future(merger._round())
        state = stored.store._table.state(key())
        while state.merging is None:  # noqa: ASYNC110 (no event tells that it begins)
            await asyncio.sleep(0)
        await state.merging
        merger.post(second.wait)
        opening = asyncio.ensure_future(stored.words(key()))
        for _ in range(5):
            await asyncio.sleep(0)
        first.set()
        await merging
        stored.store._journal.remove(1 << 40)
        second.set()
        assert await opening == ["a"]
