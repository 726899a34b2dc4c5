"""A backup of a store that is written to and merged meanwhile is a whole store."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from atoll.observe.backup import copy_folder, work_folder
from tests.objects.journals import key, make_commit, page, running, segments


async def test_a_backup_during_commits_and_merges_is_consistent(tmp_path: Path) -> None:
    data = tmp_path / "data"
    acknowledged = dict.fromkeys(range(6), 0)
    async with running(data) as stored:
        stop = asyncio.Event()

        async def commit(number: int) -> None:
            while not stop.is_set():
                sequence = acknowledged[number] + 1
                words = {each: page(sequence) for each in range(1, 5)}
                await stored.begin(key(number), make_commit(sequence, 4, words))
                acknowledged[number] = sequence

        for number in acknowledged:
            await stored.open(key(number))
        writing = [asyncio.ensure_future(commit(number)) for number in acknowledged]
        with work_folder(data) as work:
            before = dict(acknowledged)
            copying = asyncio.ensure_future(asyncio.to_thread(copy_folder, data, Path(work)))
            while not copying.done():
                await stored.store._merger._round()
                await asyncio.sleep(0)
            manifest = await copying
            stop.set()
            await asyncio.gather(*writing)
            assert not any(entry.name.endswith(".spare") for entry in manifest.files)
            shutil.copytree(work, tmp_path / "copy")
        await stored.store._merger._round()
        await stored.store._merger.release()
        assert len(segments(data)) <= 1, "segments that were kept for the backup are gone"
    async with running(tmp_path / "copy") as stored:
        assert await stored.store.damaged() == []
        for number, least in before.items():
            opened = await stored.open(key(number))
            assert opened.sequence >= least
            assert await stored.words(key(number)) == [str(opened.sequence)] * 4
