"""Copies what one object has stored to another one: facets are cloned with it.

The source may be in use. What is durable of it when nothing is under way is merged into its file, and the file is
copied. The pages then become commits of the target. Up to the size of a commit that is one; more of them are parts, and
before the first one the target is told to go back to nothing. So after a crash it is empty or whole.
"""

from __future__ import annotations

import asyncio
import os
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from atoll.errors import InvalidArgument
from atoll.objects.durable import COMMIT, LAST_PART, PART, RESTORE, Record
from atoll.objects.faults import storage_failed
from atoll.objects.files import ObjectFiles
from atoll.objects.history import History
from atoll.objects.merger import Merger
from atoll.objects.store import PAGE, ObjectDamaged, ObjectKey, check_key
from atoll.objects.table import ObjectState, ObjectTable

MAX_COPIED = (1 << 30) // PAGE  # nothing is merged while a file is copied
MAX_ONE = 8_192  # pages of a copy that is one commit
PIECE = 1_024  # pages of each part of a larger one

Store = Callable[[ObjectState, Record], Awaitable[None]]


class Copier:
    def __init__(
        self, table: ObjectTable, merger: Merger, history: History, files: ObjectFiles, scratch: Path, store: Store
    ) -> None:
        self._table = table
        self._merger = merger
        self._history = history
        self._files = files
        self._scratch = scratch
        self._store = store

    async def copy(self, source: ObjectKey, target: ObjectKey | None) -> None:
        """Copy what is durable of an object to one that is empty and not open. An empty source is copied too.

        InvalidArgument if the source is too large, ObjectDamaged if it cannot be trusted.
        """
        check_key(source)
        if target is None:
            async with self._table.alone_with(source) as state:
                self._check(state)
            return
        check_key(target)
        try:
            with tempfile.TemporaryFile(dir=self._scratch) as file:
                async with self._table.alone_with(source) as state:
                    pages = await self._snapshot(state, file.fileno())
                async with self._table.alone_with(target) as state:
                    if state.is_open or state.pages:
                        raise ValueError("an object can be copied to an empty one only")
                    if pages:
                        await self._fill(state, file.fileno(), pages)
        except OSError as error:
            raise storage_failed(error, self._scratch) from None

    async def _snapshot(self, state: ObjectState, into: int) -> int:
        """Copy the file of an object that nobody opens or deletes meanwhile. Returns its pages."""
        self._check(state)
        async with self._merger.still(state):
            self._check(state)
            base = state.base
            if base.pages:
                await asyncio.to_thread(self._files.copy, state.key, base, os.dup(into))
            return base.pages

    def _check(self, state: ObjectState) -> None:
        if state.damage is not None:
            raise ObjectDamaged(state.damage, str(self._files.path(state.key)))
        if state.pages > MAX_COPIED:
            raise InvalidArgument(
                f"it stores {state.pages * PAGE >> 20} MB, and copies are bounded to {MAX_COPIED * PAGE >> 20} MB"
            )
        if state.pages > MAX_ONE and not self._history.is_on:
            raise InvalidArgument(
                f"a copy of more than {MAX_ONE * PAGE >> 20} MB needs the history of objects,"
                " and `object_history_days` of this node is 0"
            )

    async def _fill(self, state: ObjectState, file: int, pages: int) -> None:
        state.restart()
        before = state.sequence
        is_one = pages <= MAX_ONE
        if not is_one:
            await self._store(state, Record(RESTORE, state.key, before, alarm_ms=before))
        step = pages if is_one else PIECE
        for first in range(1, pages + 1, step):
            numbers = range(first, min(first + step, pages + 1))
            contents = await asyncio.to_thread(_read, os.dup(file), len(numbers) * PAGE, (first - 1) * PAGE)
            packed = struct.pack(f"<{len(numbers)}I", *numbers)
            record = Record(COMMIT, state.key, state.queued + 1, pages, packed, contents)
            if not is_one:
                record.part, record.alarm_ms = LAST_PART if numbers[-1] == pages else PART, before
            record.at_ms = state.queued_ms = max(int(time.time() * 1000), state.queued_ms)
            record.chain = state.chain
            state.queued += 1
            await self._store(state, record)


def _read(fd: int, size: int, at: int) -> bytes:
    """Closes the descriptor: a thread may outlive the one who asked, and with them the file."""
    try:
        return os.pread(fd, size, at)
    finally:
        os.close(fd)
