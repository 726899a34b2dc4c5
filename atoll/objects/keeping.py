"""Keeps the past: before commits are merged into the file of an object, what they overwrite goes into the history.

The order is what counts. Steps that undo some commits are durable before the file gets any of them, so what the file
has of other commits is what it was. After a crash the file may have some pages of commits that are still in the
journal; the history then has their steps, and only later ones are made.

If the history cannot be written, such as on a full disk, objects come first: their past begins anew after what is
merged. A file that is there while the history can be trusted is removed before; that needs no room on the disk.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from atoll.errors import StorageFailed
from atoll.objects.durable import COMMIT, Record
from atoll.objects.files import ObjectFiles
from atoll.objects.history import History, HistoryReach
from atoll.objects.store import ObjectDamaged, ObjectKey
from atoll.objects.table import ObjectState
from atoll.objects.undo import Pages, Step, UndoMaker, steps_of

log = logging.getLogger("atoll.objects")

PUT_BYTES = 8 << 20  # of steps that are stored at once
UNBOUNDED = 1 << 62
SLICE = 0.02  # seconds in the thread of files without a pause: who opens an object waits for it


class Plan:
    """The steps of one object."""

    def __init__(self, state: ObjectState, kept: HistoryReach, commits: Sequence[Record], most: int) -> None:
        self.key: ObjectKey = state.key
        self.most = most if state.restore is None else UNBOUNDED  # it is about to go back
        self.pages = state.row.pages  # of the file, without the commits
        self.known = [commit for commit in commits if commit.sequence <= kept.last]
        new = commits[len(self.known) :]
        self.steps: list[Step] = steps_of(
            new, kept.last, kept.last_at, bool(kept.is_point), state.marks, every=state.is_replayed
        )


class HistoryKeeper:
    def __init__(self, history: History, files: ObjectFiles, in_file_thread: Callable[..., Awaitable[Any]]) -> None:
        self._history = history
        self._files = files
        self._in_file_thread = in_file_thread

    async def keep(self, states: Sequence[ObjectState]) -> None:
        """Make steps for all pending commits. Nobody else may merge these objects meanwhile."""
        if not self._history.is_on:
            return
        try:
            await self._keep(states)
        except StorageFailed as error:
            if any(state.restore is not None for state in states):
                raise  # what is about to be undone must stay so
            log.error("objects lose their past, since their history cannot be written: %s", error)
            await self._in_file_thread(self._history.distrust)
            for state in states:
                if commits := [each for each in state.pending if each.kind == COMMIT]:
                    state.kept = HistoryReach(0, commits[-1].sequence, commits[-1].at_ms, 1, 0)
                    state.is_replayed = state.is_unsure = False

    async def _keep(self, states: Sequence[ObjectState]) -> None:
        pending = [(state, [each for each in state.pending if each.kind == COMMIT]) for state in states]
        pending = [(state, commits) for state, commits in pending if commits and not state.is_deleted]
        await self._look_up([(state, commits) for state, commits in pending if state.kept is None])
        plans = []
        for state, commits in pending:
            assert state.kept is not None
            if commits[-1].sequence > state.kept.last:
                plans.append((state, Plan(state, state.kept, commits, self._history.bounds.object_bytes)))
        if not plans:
            return
        for state, _ in plans:
            state.kept, state.is_unsure = None, True
        await self._store([plan for _, plan in plans])
        for state, plan in plans:
            last = plan.steps[-1]
            state.kept = HistoryReach(0, last.last, last.last_at, int(last.ends_at_point), 0)
            state.marks = {mark for mark in state.marks if mark > last.last}
            state.is_replayed = state.is_unsure = False

    async def _look_up(self, pending: Sequence[tuple[ObjectState, list[Record]]]) -> None:
        if not pending:
            return
        if not self._history.is_trusted:
            await asyncio.gather(*(self._history.delete(state.key) for state, _ in pending if state.is_replayed))
        found = await self._history.kept([state.key for state, _ in pending])
        cuts = []
        for (state, commits), kept in zip(pending, found, strict=True):
            if kept is not None and (state.is_replayed or state.is_unsure or kept.last != state.row.sequence):
                # Pieces without an end, steps that a restored backup does not know, or a history that has a gap
                last = min(kept.last, commits[-1].sequence)
                cuts.append(self._history.cut(state.key, last, state.row.sequence))
        if cuts:
            await asyncio.gather(*cuts)
            found = await self._history.kept([state.key for state, _ in pending])
        for (state, commits), kept in zip(pending, found, strict=True):
            if kept is None:
                # What a crash left in the file cannot be told from what was there: the past begins after it
                is_sure = not state.is_replayed or not state.row.sequence
                last_known = state.row if is_sure else commits[-1]
                kept = HistoryReach(0, last_known.sequence, last_known.at_ms, 1, 0)
            state.kept = kept

    async def _store(self, plans: Sequence[Plan]) -> None:
        waiting: list[Pages] = []
        size = 0
        making = self._make(plans)
        is_over = False
        while not is_over:
            taken: tuple[list[Pages], bool] = await self._in_file_thread(_take, making)
            is_over = taken[1]
            for part in taken[0]:
                waiting.append(part)
                size += len(part.data or b"")
                if size >= PUT_BYTES:
                    await self._history.put(waiting)
                    waiting, size = [], 0
        if waiting:
            await self._history.put(waiting)

    def _make(self, plans: Sequence[Plan]) -> Iterator[Pages | None]:
        for plan in plans:
            if not plan.steps:
                continue
            try:
                yield from self._of_object(plan)
            except ObjectDamaged:
                # The merge finds the same. This object is refused, so it needs no step
                yield Pages(plan.key, plan.steps[-1], 0, 0, None, True, plan.most)
            yield None

    def _of_object(self, plan: Plan) -> Iterator[Pages | None]:
        fd = -1
        with suppress(FileNotFoundError):
            fd = os.open(self._files.path(plan.key), os.O_RDONLY | os.O_CLOEXEC)
        try:
            with self._files.segments() as segments:
                maker = UndoMaker(plan.key, fd, plan.pages, plan.known, segments)
                for step in plan.steps:
                    yield from maker.parts(step, plan.most)
                    maker.follow(step)
        finally:
            if fd >= 0:
                os.close(fd)


def _take(making: Iterator[Pages | None]) -> tuple[list[Pages], bool]:
    """What comes in a short time, and whether it was all."""
    until = time.monotonic() + SLICE
    some: list[Pages] = []
    size = 0
    for part in making:
        if part is not None:
            some.append(part)
            size += len(part.data or b"")
        if time.monotonic() >= until or size >= PUT_BYTES:
            return some, False
    return some, True
