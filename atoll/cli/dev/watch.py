"""When to build again: changes of the project's files, told by the kernel and gathered for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from enum import IntEnum
from pathlib import Path

from watchfiles import Change, awatch

from atoll.project.files import CONFIGS
from atoll.project.model import Project

# Folders that hold what tools made
IGNORED = {"node_modules", ".git", ".atoll", ".wrangler", "dist", "__pycache__", ".venv", "build", "coverage", ".cache"}
IGNORED_ENDINGS = ("~", ".swp", ".swx", ".tmp", ".map")
DEBOUNCE_MS = 40
STEP_MS = 10


class Reason(IntEnum):
    """Why to build again, from the least to the most that has to be done."""

    SOURCES = 1
    CONFIG = 2
    ASKED = 3
    STOPPING = 4


class Watcher:
    def __init__(self, project: Project) -> None:
        self._queue: asyncio.Queue[Reason] = asyncio.Queue()
        self._moved = asyncio.Event()  # other folders are to be watched
        self._folders: set[Path] = set()
        self.watch(project)
        self._files = asyncio.ensure_future(self._follow())  # before the first build: no save is missed

    def watch(self, project: Project) -> None:
        """The folder of the project, that of its script, and what its build step names."""
        folders = {project.folder, *project.build.watch}
        if project.main is not None and not project.main.is_relative_to(project.folder):
            folders.add(project.main.parent)
        if folders != self._folders:
            self._folders = folders
            self._moved.set()

    def poke(self, reason: Reason) -> None:
        self._queue.put_nowait(reason)

    async def reasons(self) -> AsyncIterator[Reason]:
        """Yields when something is to be done, the most of what came meanwhile. Ends with STOPPING."""
        while True:
            reason = await self._queue.get()
            while not self._queue.empty():
                reason = max(reason, self._queue.get_nowait())
            if reason is Reason.STOPPING:
                return
            yield reason

    async def close(self) -> None:
        self._folders = set()
        self._moved.set()
        await self._files

    async def _follow(self) -> None:
        while self._folders:
            self._moved.clear()
            there = [folder for folder in self._folders if folder.is_dir()]
            async for changes in awatch(
                *there, watch_filter=is_source, debounce=DEBOUNCE_MS, step=STEP_MS, stop_event=self._moved
            ):
                self.poke(Reason.CONFIG if any(is_config(path) for _, path in changes) else Reason.SOURCES)


def is_source(_: Change, path: str) -> bool:
    parts = Path(path).parts
    return not IGNORED.intersection(parts) and not path.endswith(IGNORED_ENDINGS)


def is_config(path: str) -> bool:
    name = Path(path).name
    return name in CONFIGS or name.startswith((".dev.vars", ".env")) or name in ("tsconfig.json", "package.json")
