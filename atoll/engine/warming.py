"""Workers that were in use before the node stopped are loaded again when it starts, before anybody asks for them.

Which ones those are stands in a file of the data folder, the most recently used first. It is written now and then and
at the end, so a node that was killed knows nearly as much. Loading happens in the background, one worker at a time, and
makes nobody leave: real calls come first. Of all the others the LOAD frames are made ready, as many as are kept, so
that their first calls wait for nothing but the engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from atoll.errors import EngineError, LoadFailed
from atoll.workers import Version

log = logging.getLogger("atoll.pool")

REMEMBERED = 200  # workers in the file
WARMED = 100  # of them, those that are loaded again
WRITE_SECONDS = 5.0
PACE_SECONDS = 0.005  # between two LOAD frames; making one takes 0.2 ms


class Loads(Protocol):
    """The pool, as far as it is needed here."""

    def recent(self) -> list[str]: ...
    async def warm(self, version: Version) -> bool: ...
    async def prepare(self, version: Version) -> bool: ...


class Deployed(Protocol):
    @property
    def version(self) -> Version: ...


class Workers(Protocol):
    """The deployer, as far as it is needed here."""

    def active(self, worker_id: str) -> Version | None: ...
    def all(self) -> Sequence[Deployed]: ...


class Warming:
    def __init__(self, path: Path, pool: Loads, workers: Workers) -> None:
        self._path = path
        self._pool = pool
        self._workers = workers
        self._recent = read(path)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """While the pool still knows what is loaded."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await asyncio.to_thread(self._remember, self._pool.recent())

    async def _run(self) -> None:
        await self._load_recent()
        await self._prepare_others()
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await asyncio.to_thread(self._remember, self._pool.recent())

    async def _load_recent(self) -> None:
        warmed = 0
        for worker_id in self._recent[:WARMED]:
            version = self._workers.active(worker_id)
            try:
                warmed += version is not None and await self._pool.warm(version)
            except (EngineError, LoadFailed) as error:  # its first call will tell whoever makes it
                log.info("%s was not loaded in advance: %s", worker_id, error)
        if warmed:
            log.info("%d workers were loaded in advance", warmed)

    async def _prepare_others(self) -> None:
        for version in [worker.version for worker in self._workers.all()]:
            if self._workers.active(version.worker_id) is not version:
                continue  # it was replaced meanwhile
            try:
                if not await self._pool.prepare(version):
                    return
            except (EngineError, LoadFailed):
                continue
            await asyncio.sleep(PACE_SECONDS)

    def _remember(self, loaded: Iterable[str]) -> None:
        """Those that are loaded now, before those that were."""
        recent = list(dict.fromkeys([*loaded, *self._recent]))[:REMEMBERED]
        if recent == self._recent:
            return
        self._recent = recent
        fresh = self._path.with_suffix(".tmp")
        try:
            fresh.write_bytes(msgspec.json.encode(recent))
            fresh.replace(self._path)
        except OSError as error:  # a start that is not warm is no reason to fail
            log.warning("%s cannot be written: %s", self._path, error)


def read(path: Path) -> list[str]:
    """Worker ids; none if there is no such file, or it makes no sense."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[str])[:REMEMBERED]
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return []
