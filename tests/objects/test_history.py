"""Objects go back in time: exactly to the state of a bookmark, or of a time, and forth again."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atoll.errors import InvalidArgument, StorageFailed
from atoll.objects.bookmarks import Bookmark, decode_bookmark, encode_bookmark
from atoll.objects.history import HistoryBounds
from atoll.objects.local import LocalObjects
from atoll.objects.store import PAGE
from atoll.observe.backup import copy_folder, work_folder
from tests.objects.journals import MOST, SEGMENT, Stored, key, make_commit, page, running

MARK = "[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}"


async def commit(stored: Stored, sequence: int, changed: dict[int, str], size: int) -> None:
    await stored.begin(key(), make_commit(sequence, size, {number: page(word) for number, word in changed.items()}))


async def restore(stored: Stored, bookmark: str) -> str:
    stored.store.close(key())
    undo = await stored.store.past.ask(key(), bookmark)
    await stored.open(key())
    return undo


async def test_an_object_goes_back_to_a_bookmark_and_forth_again(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        past = stored.store.past
        await stored.open(key())
        empty = past.current(key())
        await commit(stored, 1, {1: "a", 2: "b"}, 2)
        first = past.current(key())
        await commit(stored, 2, {1: "c", 3: "d"}, 3)
        await commit(stored, 3, {}, 1)
        second = past.current(key())
        assert empty < first < second
        undo = await restore(stored, first)
        assert undo > second
        assert await stored.words(key()) == ["a", "b"]
        again = await restore(stored, undo)
        assert await stored.words(key()) == ["c"]
        await restore(stored, empty)
        assert await stored.words(key()) == []
        await restore(stored, again)
        assert await stored.words(key()) == ["a", "b"]


async def test_a_restore_waits_until_the_object_is_opened_again(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        past = stored.store.past
        await stored.open(key())
        await commit(stored, 1, {1: "a"}, 1)
        first = past.current(key())
        await commit(stored, 2, {1: "b"}, 1)
        undo = await past.ask(key(), first)
        await commit(stored, 3, {1: "c"}, 1)  # it is still in use
        assert await stored.words(key()) == ["a"]
        await restore(stored, undo)
        assert await stored.words(key()) == ["c"], "what came after the wish is part of what is undone"
        undo = await past.ask(key(), first)
        await past.ask(key(), undo)
        assert await stored.words(key()) == ["c"], "the wish was taken back"


async def test_an_object_goes_back_to_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_800_000_000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    async with running(tmp_path) as stored:
        past = stored.store.past
        await stored.open(key())
        for sequence in range(1, 41):  # ten in a second
            now[0] += 0.1
            await commit(stored, sequence, {1: str(sequence)}, 1)
        await stored.store._merger._round()
        ms = int(now[0] * 1000)
        found = decode_bookmark(key(), await past.at(key(), ms - 2_000))
        assert found is not None and 10 <= found.sequence <= 20 and found.at_ms <= ms - 2_000
        latest = decode_bookmark(key(), await past.at(key(), ms + 99_000))
        assert latest is not None and latest.sequence == 40
        before = decode_bookmark(key(), await past.at(key(), 1_000))
        assert before == Bookmark(0, 0), "there was nothing"
        await restore(stored, await past.at(key(), ms - 2_000))
        assert await stored.words(key()) == [str(found.sequence)]


async def test_bookmarks_that_are_none_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        past = stored.store.past
        await stored.open(key())
        for sequence in range(1, 4):
            await commit(stored, sequence, {1: str(sequence)}, 1)
        await stored.store._merger._round()
        at_ms = decode_bookmark(key(), past.current(key())).at_ms  # type: ignore[union-attr]
        wrong = [
            "",
            "now",
            past.current(key()).upper() + "G",
            encode_bookmark(key(2), Bookmark(at_ms, 3)),
            encode_bookmark(key(), Bookmark(at_ms, 4)),
            encode_bookmark(key(), Bookmark(at_ms - 86_400_000, 3)),
            encode_bookmark(key(), Bookmark(at_ms - 86_400_000, 2)),
            encode_bookmark(key(), Bookmark(at_ms, (1 << 64) - 1)),
            encode_bookmark(key(), Bookmark(at_ms, 2, is_before_restore=True)),
        ]
        for text in wrong:
            with pytest.raises(InvalidArgument):
                await past.ask(key(), text)
        assert await stored.words(key()) == ["3"]


async def test_history_ends_at_its_bounds_and_with_its_object(tmp_path: Path) -> None:
    bounds = HistoryBounds(object_bytes=40_000, node_bytes=60_000)
    store = await LocalObjects.start(tmp_path, segment=SEGMENT, most=MOST, bounds=bounds)
    stored = Stored(store)
    await stored.open(key())
    first = store.past.current(key())
    for sequence in range(1, 60):
        noise = random.Random(sequence).randbytes(PAGE)
        await stored.begin(key(), make_commit(sequence, 1, {1: noise}))
        await store._merger._round()
        assert store._history.bytes <= 45_000
    last = store.past.current(key())
    with pytest.raises(InvalidArgument, match="not any more"):
        await store.past.ask(key(), first)
    with pytest.raises(InvalidArgument, match="no history of this object before"):
        await store.past.at(key(), 1_000)
    await stored.begin(key(), make_commit(60, 1, {1: page("x")}))
    await store.past.ask(key(), last)
    store.close(key())
    await store.delete(key())
    assert store._history.bytes == 0
    with pytest.raises(InvalidArgument):
        await store.past.ask(key(), last)
    assert await stored.pages(key()) == []
    await store.stop()


async def test_old_steps_go_and_a_restore_that_waits_keeps_its_own(tmp_path: Path) -> None:
    async with running(tmp_path) as stored:
        store = stored.store
        marks = {}
        for number in (1, 2):
            await stored.write(key(number), "a")
            marks[number] = store.past.current(key(number))
            await stored.write(key(number), "b")
        await store._merger._round()
        await store.past.ask(key(1), marks[1])
        store._history._looked = 0.0
        store._history.bounds = HistoryBounds(days=1e-9)
        await asyncio.sleep(0.002)
        await store._merger._round()
        store._history.bounds = HistoryBounds()
        with pytest.raises(InvalidArgument, match="not any more"):
            await store.past.ask(key(2), marks[2])
        assert await stored.words(key(1)) == ["a"]


async def test_a_large_restore_is_all_or_nothing_when_the_node_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.objects.point_in_time.COMMIT_PAGES", 3)
    data = tmp_path / "live"
    copies: list[Path] = []
    async with running(data) as stored:
        await stored.open(key())
        await commit(stored, 1, {number: f"old {number}" for number in range(1, 21)}, 20)
        first = stored.store.past.current(key())
        await commit(stored, 2, {number: f"new {number}" for number in range(1, 21)}, 22)
        stored.store.close(key())
        await stored.store.past.ask(key(), first)
        keep = stored.store._store

        async def kill_before(state: object, record: object) -> None:
            copies.append(Path(shutil.copytree(data, tmp_path / str(len(copies)))))
            await keep(state, record)  # type: ignore[arg-type]

        monkeypatch.setattr(stored.store.past, "_store", kill_before)
        assert await stored.words(key()) == [f"old {number}" for number in range(1, 21)]
        await restore(stored, await stored.store.past.at(key(), 1_000))
        assert await stored.words(key()) == []
    assert len(copies) > 7
    for copy in copies[:-1]:
        async with running(copy) as stored:
            for _ in range(2):
                assert await stored.words(key()) == [f"old {number}" for number in range(1, 21)]
            assert await stored.store.damaged() == []


async def test_a_full_disk_costs_the_past_and_not_the_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    async with running(data) as stored:
        store = stored.store
        await stored.write(key(), "a")
        first = store.past.current(key())
        await store._merger._round()

        async def full(parts: object) -> None:
            raise StorageFailed("the disk of this node is full")

        with monkeypatch.context() as patch:
            patch.setattr(store._history, "put", full)
            await stored.write(key(), "b")
            assert await stored.words(key()) == ["b"]
            shutil.copytree(data, tmp_path / "crashed")
        second = store.past.current(key())
        await stored.write(key(), "c")
        with pytest.raises(InvalidArgument):
            await store.past.ask(key(), first)
        await restore(stored, second)
        assert await stored.words(key()) == ["b"]
    async with running(tmp_path / "crashed") as stored:  # `b` was in the file, and no step undoes it
        await stored.store._merger._round()
        with pytest.raises(InvalidArgument):
            await stored.store.past.ask(key(), first)
        assert await stored.words(key()) == ["b"]


async def test_a_backup_during_merges_has_a_true_history(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running(data) as stored:
        marks: dict[int, str] = {}
        await stored.open(key())
        stop = asyncio.Event()

        async def write() -> None:
            sequence = 0
            while not stop.is_set():
                sequence += 1
                await commit(stored, sequence, {each: f"{sequence} {each}" for each in range(1, 5)}, 4)
                marks[sequence] = stored.store.past.current(key())

        writing = asyncio.ensure_future(write())
        await asyncio.sleep(0.05)
        with work_folder(data) as work:
            copying = asyncio.ensure_future(asyncio.to_thread(copy_folder, data, Path(work)))
            while not copying.done():
                await stored.store._merger._round()
                await asyncio.sleep(0)
            await copying
            stop.set()
            await writing
            shutil.copytree(work, tmp_path / "copy")
    async with running(tmp_path / "copy") as stored:
        last = (await stored.open(key())).sequence
        for sequence in sorted({1, 2, last // 2, last - 1, last}):
            await restore(stored, marks[sequence])
            assert await stored.words(key()) == [f"{sequence} {each}" for each in range(1, 5)]


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.lists(st.integers(1, 6), max_size=4, unique=True), st.integers(0, 6)),
        st.tuples(st.just("mark")),
        st.tuples(st.just("back"), st.integers(0, 30)),
        st.tuples(st.just("merge")),
        st.tuples(st.just("kill")),
        st.tuples(st.just("reopen")),
    ),
    max_size=40,
)


def copy_of_killed(data: Path, copy: Path) -> None:
    """Copy the folder of a running store. Another thread may remove a segment meanwhile: then copy it again."""
    for _ in range(10):
        try:
            shutil.copytree(data, copy)
            return
        except shutil.Error:
            shutil.rmtree(copy)
    raise AssertionError("the folder never stays the same")


class Run:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starts = 0
        self.pages: list[bytes] = []
        self.marks: list[tuple[str, list[bytes]]] = []
        self.stored: Stored
        self._count = 0

    async def start(self) -> None:
        data = self._folder / str(self._starts)
        self.stored = Stored(await LocalObjects.start(data, segment=SEGMENT, most=MOST))
        self.sequence = (await self.stored.open(key())).sequence

    async def act(self, act: tuple[object, ...]) -> None:
        store = self.stored.store
        match act:
            case ("commit", list(numbers), int(size)):
                self._count += 1
                self.sequence += 1
                changed = {each: page(f"{self._count} {each}") for each in numbers if each <= size}
                self.pages = [*self.pages[:size], *[bytes(PAGE)] * (size - len(self.pages))]
                for number, content in changed.items():
                    self.pages[number - 1] = content
                await self.stored.begin(key(), make_commit(self.sequence, size, changed))
            case ("mark",):
                self.marks.append((store.past.current(key()), self.pages))
            case ("back", int(number)) if self.marks:
                bookmark, pages = self.marks[number % len(self.marks)]
                undo = await restore(self.stored, bookmark)
                self.marks.append((undo, self.pages))
                self.pages = pages
                await self.check()
            case ("merge",):
                await store._merger._round()
            case ("kill",):
                copy_of_killed(self._folder / str(self._starts), self._folder / str(self._starts + 1))
                await store.stop()
                self._starts += 1
                await self.start()
            case ("reopen",):
                await self.check()

    async def check(self) -> None:
        assert await self.stored.pages(key()) == self.pages
        self.sequence = (await self.stored.open(key())).sequence


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(acts=ACTS)
def test_every_bookmark_is_exactly_the_state_it_was_taken_of(acts: list[tuple[object, ...]]) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            run = Run(Path(folder))
            await run.start()
            for act in acts:
                await run.act(act)
            for number in range(len(run.marks)):
                await run.act(("back", number))
            await run.stored.store.stop()

    asyncio.run(main())


async def test_many_bookmarks_of_one_moment_all_stay_valid(tmp_path: Path) -> None:
    """Times that run ahead of the clock would be later than the commit that follows them."""
    async with running(tmp_path) as stored:
        await stored.open(key())
        await commit(stored, 1, {1: "a"}, 1)
        marks = [stored.store.past.current(key()) for _ in range(1000)]
        assert marks == sorted(marks)
        await restore(stored, marks[0])
        for mark in (marks[-1], marks[0], marks[500]):
            await restore(stored, mark)
            assert await stored.words(key()) == ["a"]


async def test_bookmarks_sort_by_time() -> None:
    texts = [encode_bookmark(key(), Bookmark(at, 9)) for at in (0, 1, 999, 1000, int(time.time() * 1000), 1 << 41)]
    assert texts == sorted(texts)
    assert [decode_bookmark(key(), text).at_ms for text in texts][1:4] == [1, 999, 1000]  # type: ignore[union-attr]
