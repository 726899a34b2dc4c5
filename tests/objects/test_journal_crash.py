"""After a crash: what was acknowledged is there, what was not is absent or whole, and damage refuses one object."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.objects.local import LocalObjects
from atoll.objects.replay import replay
from atoll.objects.segments import FIRST
from atoll.objects.store import ObjectDamaged
from tests.objects.journals import MOST, SEGMENT, Stored, key, make_commit, page, running, segments

CHILD = """
import asyncio, sys
from pathlib import Path
from tests.objects.journals import key, make_commit, page, running

async def main():
    async with running(Path(sys.argv[1])) as stored:
        sequences = {number: (await stored.open(key(number))).sequence for number in range(8)}

        async def commit(number):
            sequence = sequences[number]
            while True:
                sequence += 1
                await stored.begin(key(number), make_commit(sequence, 2, {1: page(sequence), 2: page(sequence)}))
                sys.stdout.write(f"{number} {sequence}\\n")
                sys.stdout.flush()

        await asyncio.gather(*(commit(number) for number in range(8)))

asyncio.run(main())
"""


def test_a_killed_node_has_what_it_acknowledged(tmp_path: Path) -> None:
    acknowledged: dict[int, int] = {}
    for lines in (300, 900):
        with subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            said = [child.stdout.readline() for _ in range(lines)]
            child.send_signal(signal.SIGKILL)
            said += child.stdout.readlines()
        for line in said:
            if line.endswith("\n"):
                number, sequence = line.split()
                acknowledged[int(number)] = int(sequence)

    async def check() -> None:
        async with running(tmp_path) as stored:
            for number, sequence in acknowledged.items():
                opened = await stored.open(key(number))
                assert opened.sequence >= sequence
                assert await stored.words(key(number)) == [str(opened.sequence)] * 2
            assert await stored.store.damaged() == []

    asyncio.run(check())
    assert len(acknowledged) == 8 and max(acknowledged.values()) > 100


async def crashed(folder: Path, *groups: dict[int, str]) -> tuple[Path, list[int]]:
    """A data folder as a kill leaves it, with one group for each dictionary, and where the groups end."""
    live = folder / "live"
    ends = [FIRST]
    store = await LocalObjects.start(live, segment=SEGMENT, most=MOST)
    stored = Stored(store)
    sequences = {number: 0 for group in groups for number in group}
    for number in sequences:
        await stored.open(key(number))
    for group in groups:
        for number, word in group.items():
            sequences[number] += 1
            done = stored.begin(key(number), make_commit(sequences[number], 1, {1: page(word)}))
            await done
            ends.append(store._journal._at)
    copy = folder / "crashed"
    shutil.copytree(live, copy)
    await store.stop()
    return copy, ends


async def words_of(data: Path, number: int) -> list[str]:
    async with running(data) as stored:
        return await stored.words(key(number))


def with_journal(data: Path, bytes_: bytes) -> None:
    (segment,) = segments(data)
    segment.write_bytes(bytes_)


async def test_a_tail_torn_at_any_byte_is_absent_or_whole(tmp_path: Path) -> None:
    data, ends = await crashed(tmp_path, {1: "a", 2: "b"}, {1: "c"})
    (segment,) = segments(data)
    whole = segment.read_bytes()
    start, end = ends[2], ends[3]
    last = whole.rindex(page("c"), 0, end) + 4096  # behind it is only the copy of the directory
    for place in range(start, end):
        with segment.open("r+b") as file:
            file.seek(start)
            file.write(whole[start:place] + bytes(end - place))
        replayed = replay(segment.parent)
        expected = [(key(1), 1), (key(2), 1), (key(1), 2)][: 3 if place >= last else 2]
        assert [(each.record.key, each.record.sequence) for each in replayed.found] == expected
        assert not replayed.lost and not any(each.is_damaged for each in replayed.found)
        assert replayed.last_end == (end if len(expected) == 3 else start)


async def test_a_torn_tail_is_written_over(tmp_path: Path) -> None:
    data, ends = await crashed(tmp_path, {1: "a", 2: "b"}, {1: "c"})
    (segment,) = segments(data)
    whole = segment.read_bytes()
    for place in (ends[2], ends[2] + 30, ends[2] + 1000, ends[3] - 200):
        torn = tmp_path / "torn"
        shutil.copytree(data, torn)
        with_journal(torn, whole[:place] + bytes(len(whole) - place))
        for words in (["a"], ["again"]):
            async with running(torn) as stored:
                assert await stored.words(key(1)) == words
                assert await stored.words(key(2)) == ["b"]
                assert await stored.store.damaged() == []
                await stored.write(key(1), "again")
        shutil.rmtree(torn)


async def test_a_torn_group_stays_absent_after_two_starts(tmp_path: Path) -> None:
    data, ends = await crashed(tmp_path, {1: "a"}, {1: "b"})
    (segment,) = segments(data)
    whole = bytearray(segment.read_bytes())
    whole[ends[1] + 2000] ^= 1
    with_journal(data, bytes(whole))
    store = await LocalObjects.start(data, segment=SEGMENT, most=MOST)
    stored = Stored(store)
    await stored.write(key(2), "x")
    again = tmp_path / "again"
    shutil.copytree(data, again)
    await store.stop()
    async with running(again) as stored:
        assert await stored.words(key(1)) == ["a"]
        assert await stored.words(key(2)) == ["x"]
        assert await stored.store.damaged() == []


async def test_a_flipped_bit_refuses_one_object_at_most(tmp_path: Path) -> None:
    data, ends = await crashed(tmp_path, {1: "a"}, {2: "b"}, {3: "c"})
    (segment,) = segments(data)
    whole = segment.read_bytes()
    refused = 0
    for place in [
        *range(ends[1], ends[1] + 160, 7),
        *range(ends[1] + 160, ends[2], 499),
        *range(ends[2] - 192, ends[2], 7),
    ]:
        flipped = tmp_path / "flipped"
        shutil.copytree(data, flipped)
        with_journal(flipped, whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        async with running(flipped) as stored:
            assert await stored.words(key(1)) == ["a"]
            assert await stored.words(key(3)) == ["c"]
            try:
                assert await stored.words(key(2)) == ["b"]
                assert await stored.store.damaged() == []
            except ObjectDamaged as error:
                refused += 1
                assert str(error) == "commit 1 of this object is damaged in the journal"
                assert [each.key for each in await stored.store.damaged()] == [key(2)]
        async with running(flipped) as stored:
            assert len(await stored.store.damaged()) in (0, 1), "it is remembered"
        shutil.rmtree(flipped)
    assert refused > 10


async def test_damage_that_names_no_object_refuses_all_until_the_file_is_moved_away(tmp_path: Path) -> None:
    data, ends = await crashed(tmp_path, {1: "a"}, {2: "b"}, {3: "c"})
    (segment,) = segments(data)
    whole = segment.read_bytes()
    with_journal(data, whole[: ends[1]] + bytes(ends[2] - ends[1]) + whole[ends[2] :])
    async with running(data) as stored:
        with pytest.raises(ObjectDamaged, match="not known which ones"):
            await stored.store.open(key(1))
        (damaged,) = await stored.store.damaged()
        assert str(segment) in damaged.words
    segment.rename(tmp_path / "away")
    async with running(data) as stored:
        assert await stored.words(key(1)) == []


@pytest.mark.parametrize("how", ["short", "long", "header", "missing"])
async def test_a_damaged_file_refuses_its_object_only(tmp_path: Path, how: str) -> None:
    async with running(tmp_path) as stored:
        for number in (1, 2):
            await stored.open(key(number))
            await stored.begin(key(number), make_commit(1, 2, {1: page("a"), 2: page("b")}))
        path = stored.store._files.path(key(1))
    if how == "missing":
        path.unlink()
    elif how == "header":
        path.write_bytes(b"?" + path.read_bytes()[1:])
    else:
        os.truncate(path, 4096 if how == "short" else 3 * 4096)
    for _ in range(2):
        async with running(tmp_path) as stored:
            with pytest.raises(ObjectDamaged, match="file"):
                await stored.store.open(key(1))
            assert await stored.words(key(2)) == ["a", "b"]
            assert [each.key for each in await stored.store.damaged()] == [key(1)]
    async with running(tmp_path) as stored:
        await stored.store.delete(key(1))
        assert await stored.words(key(1)) == [] and await stored.store.damaged() == []


async def test_a_page_that_looks_like_a_group_is_never_taken_for_one(tmp_path: Path) -> None:
    """A tenant chooses what is in pages. Old groups in a file that is used again are the best imitation."""
    data, ends = await crashed(tmp_path, {1: "a"}, {2: "b"})
    (segment,) = segments(data)
    old = segment.read_bytes()[FIRST : ends[2]]
    async with running(tmp_path / "other") as stored:
        await stored.open(key(5))
        changed = {number + 1: old[number * 4096 :][:4096].ljust(4096, b"\0") for number in range(2)}
        await stored.begin(key(5), make_commit(1, 2, changed))
        copied = tmp_path / "copied"
        shutil.copytree(tmp_path / "other", copied)
    (segment,) = segments(copied)
    torn = bytearray(segment.read_bytes())
    torn[FIRST : FIRST + 64] = bytes(64)
    at = torn.rindex(b"END.", 0, stored.store._journal._at)
    torn[at : at + 64] = bytes(64)
    segment.write_bytes(bytes(torn))
    async with running(copied) as stored:
        assert [await stored.words(key(number)) for number in (1, 2, 5)] == [[], [], []]


async def test_a_deletion_that_a_crash_interrupted_is_carried_out(tmp_path: Path) -> None:
    async with running(tmp_path / "live") as stored:
        await stored.write(key(1), "a")
        await stored.store._merger._round()
        shutil.copytree(tmp_path / "live" / "objects" / "files", tmp_path / "files")
        shutil.copy(tmp_path / "live" / "objects" / "index.db", tmp_path / "index.db")
        await stored.store.delete(key(1))
        await stored.write(key(1), "b")
        shutil.copytree(tmp_path / "live", tmp_path / "crashed")
    folder = tmp_path / "crashed" / "objects"
    shutil.rmtree(folder / "files")
    shutil.copytree(tmp_path / "files", folder / "files")  # as if nothing but the journal had reached the disk
    async with running(tmp_path / "crashed") as stored:
        assert await stored.words(key(1)) == ["b"]
        assert (await stored.open(key(1))).sequence == 1
