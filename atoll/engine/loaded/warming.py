"""When a node starts, loads the workers that were in use before it stopped.

Their ids are in a file of the data folder, the most recently used first. It is written every few seconds and at the
end, so it is useful even after a crash. Workers are loaded in the background, one at a time, and evict nothing. For all
other workers the LOAD frames are made in advance, as many as may be kept, so that first calls wait only for the engine.
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
WARMED = 100  # of these, the ones that are loaded again
WRITE_SECONDS = 5.0
PACE_SECONDS = 0.005  # between two LOAD frames; making one takes 0.2 ms


class WarmLoader(Protocol):
    """What is used of the loader."""

    def recent(self) -> list[str]: ...
    async def warm(self, version: Version) -> bool: ...
    async def prepare(self, version: Version) -> bool: ...


class ActiveVersion(Protocol):
    @property
    def version(self) -> Version: ...


class DeployedWorkers(Protocol):
    """What is used of the deployer."""

    def active(self, worker_id: str) -> Version | None: ...
    def all(self) -> Sequence[ActiveVersion]: ...


class Warming:
    def __init__(self, path: Path, loader: WarmLoader, workers: DeployedWorkers) -> None:
        self._path = path
        self._loader = loader
        self._workers = workers
        self._recent = read(path)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop, and write the file. Call it before the engines end."""
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(self._remember, self._loader.recent())

    async def _run(self) -> None:
        await self._load_recent()
        await self._prepare_others()
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await asyncio.to_thread(self._remember, self._loader.recent())

    async def _load_recent(self) -> None:
        warmed = 0
        for worker_id in self._recent[:WARMED]:
            version = self._workers.active(worker_id)
            try:
                warmed += version is not None and await self._loader.warm(version)
            except (EngineError, LoadFailed) as error:  # its first call gets the failure
                log.info("%s was not loaded in advance: %s", worker_id, error)
        if warmed:
            log.info("%d workers were loaded in advance", warmed)

    async def _prepare_others(self) -> None:
        for version in [worker.version for worker in self._workers.all()]:
            if self._workers.active(version.worker_id) is not version:
                continue  # it was replaced meanwhile
            try:
                if not await self._loader.prepare(version):
                    return
            except (EngineError, LoadFailed):
                continue
            await asyncio.sleep(PACE_SECONDS)

    def _remember(self, loaded: Iterable[str]) -> None:
        """Write the ids of the loaded workers, followed by those that were loaded before."""
        recent = list(dict.fromkeys([*loaded, *self._recent]))[:REMEMBERED]
        if recent == self._recent:
            return
        self._recent = recent
        fresh = self._path.with_suffix(".tmp")
        try:
            fresh.write_bytes(msgspec.json.encode(recent))
            fresh.replace(self._path)
        except OSError as error:  # the node works without it
            log.warning("%s cannot be written: %s", self._path, error)


def read(path: Path) -> list[str]:
    """The worker ids in the file; none if it is missing or invalid."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[str])[:REMEMBERED]
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
