"""When to build again: changes of the project's files, reported by the kernel and gathered for a moment.

Each folder is watched by itself. Folders that tools fill (node_modules) are not watched: they are thousands, and each
costs time at the start. The watch starts in a thread once the project answers. Files saved before that are found by
their change time.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from atoll.project.files import CONFIGS
from atoll.project.model import Project

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

# Folders that tools fill
IGNORED = {
    "node_modules", ".git", ".atoll", ".wrangler", "dist", "__pycache__", ".venv", "build", "coverage", ".cache",
    ".svelte-kit", ".output", ".nuxt", ".nitro", ".astro", ".next", ".open-next", ".react-router", ".tanstack", ".vite",
}  # fmt: skip
IGNORED_ENDINGS = ("~", ".swp", ".swx", ".tmp", ".map", ".log")
MOST_FOLDERS = 2_000  # a limit, in case the project is a home folder
DEBOUNCE_MS = 40
STEP_MS = 10
POLL_MS = 300  # where the kernel does not report changes
ADDED = 1  # watchfiles' number for a kind of change


class Reason(IntEnum):
    """Why to build again, in the order of how much there is to do."""

    SOURCES = 1
    CONFIG = 2
    ASKED = 3
    STOPPING = 4


class Watcher:
    """Reports pokes from the start, and changes of files after `start`."""

    def __init__(self, project: Project, say: Callable[[str], None]) -> None:
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Reason] = asyncio.Queue()
        self._moved = threading.Event()  # the folders to watch have changed
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._roots: tuple[Path, ...] = ()
        self._single: tuple[Path, ...] = ()
        self._told = ""
        self.watch(project)

    def watch(self, project: Project, inputs: Iterable[Path] = (), *, anew: bool = False) -> None:
        """Folders to watch: the project's with all below it, those of its build step, and those of other sources."""
        roots = {project.home or project.folder, *project.build.watch}
        single = {path.parent for path in inputs if "node_modules" not in path.parts}
        if project.main is not None:
            single.add(project.main.parent)
        single = {folder for folder in single if not _is_below(folder, roots)}
        if project.build.command or project.tool is not None:  # its own output would start it again, in a loop
            single = {folder for folder in single if not any(folder.is_relative_to(root) for root in roots)}
        wanted = tuple(sorted(roots)), tuple(sorted(single))
        if anew or wanted != (self._roots, self._single):
            self._roots, self._single = wanted
            self._moved.set()

    def start(self, is_stale: Callable[[], Reason | None]) -> None:
        """Start watching. `is_stale` is called once, when no later change can be missed."""
        self._moved.clear()
        self._thread = threading.Thread(target=self._run, args=(is_stale,), name="watcher", daemon=True)
        self._thread.start()

    def poke(self, reason: Reason) -> None:
        self._queue.put_nowait(reason)

    async def reasons(self) -> AsyncIterator[Reason]:
        """Yields when there is something to do: the strongest reason since the last one. Ends with STOPPING."""
        while True:
            reason = await self._queue.get()
            while not self._queue.empty():
                reason = max(reason, self._queue.get_nowait())
            if reason is Reason.STOPPING:
                return
            yield reason

    async def close(self) -> None:
        self._closing.set()
        self._moved.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    # In the thread

    def _run(self, is_stale: Callable[[], Reason | None]) -> None:
        notify = self._notify()
        reason = is_stale()
        while not self._closing.is_set():
            if reason is not None:
                self._loop.call_soon_threadsafe(self.poke, reason)
            changes = notify.watch(DEBOUNCE_MS, STEP_MS, 0, self._moved)
            sources = [] if isinstance(changes, str) else [(kind, path) for kind, path in changes if is_source(path)]
            reason = Reason.SOURCES if sources else None
            if any(is_config(path) for _, path in sources):
                reason = Reason.CONFIG
            has_grown = any(kind == ADDED and os.path.isdir(path) for kind, path in sources)
            if has_grown or self._moved.is_set():
                self._moved.clear()
                notify.close()
                notify = self._notify()
                reason = reason or Reason.SOURCES  # a file may have been saved before the watch began
        notify.close()

    def _notify(self) -> RustNotify:
        from watchfiles._rust_notify import RustNotify  # imported late: the first response does not wait for it

        polls = False
        while True:
            folders = [str(folder) for folder in folders_of(self._roots)]
            if len(folders) == MOST_FOLDERS:
                self._tell(f"only the first {MOST_FOLDERS} folders are watched: press `r` to build again")
            folders += [str(folder) for folder in self._single if folder.is_dir() and os.access(folder, os.R_OK)]
            try:
                # Not with `ignore_permission_denied`: it hides every other error too
                return RustNotify(folders, False, polls, POLL_MS, False, False)
            except FileNotFoundError:
                continue  # a folder is gone
            except (OSError, RuntimeError) as error:  # the kernel limits the watches of a user
                if polls:
                    raise
                why = str(error).partition(" about [")[0]
                self._tell(f"the system does not report changes ({why}), so files are checked every {POLL_MS} ms")
                polls = True

    def _tell(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self._loop.call_soon_threadsafe(self._say, text)


def folders_of(roots: Iterable[Path]) -> list[Path]:
    """The folders below the roots that people write in, nearest first, at most MOST_FOLDERS."""
    found: dict[Path, None] = {}
    waiting = deque(root for root in roots if root.is_dir())
    while waiting and len(found) < MOST_FOLDERS:
        folder = waiting.popleft()
        if folder in found:
            continue
        try:
            with os.scandir(folder) as entries:
                inner = [Path(e.path) for e in entries if e.name not in IGNORED and e.is_dir(follow_symlinks=False)]
        except OSError:  # gone, or not readable
            continue
        found[folder] = None
        waiting += sorted(inner)
    return list(found)


def _is_below(folder: Path, roots: Iterable[Path]) -> bool:
    """Whether a watch of the roots covers this folder."""
    below = (folder.relative_to(root).parts for root in roots if folder.is_relative_to(root))
    return any(not IGNORED.intersection(parts) for parts in below)


def is_source(path: str) -> bool:
    return os.path.basename(path) not in IGNORED and not path.endswith(IGNORED_ENDINGS)


def is_config(path: str) -> bool:
    name = os.path.basename(path)
    return name in CONFIGS or name.startswith((".dev.vars", ".env")) or name in ("tsconfig.json", "package.json")
