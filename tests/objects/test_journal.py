"""Objects are stored, merged into files, listed, deleted, and found again."""

from __future__ import annotations

from pathlib import Path

from tests.objects.journals import key, make_commit, page, running, segments


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
