"""When to build again: changes of the project's files, told by the kernel and gathered for a moment.

Folders are watched one by one, those that tools fill (node_modules) not at all: there the kernel would be asked to
watch thousands for nothing, and each of them costs time at the start. It happens in a thread, and only once the
project answers: what was saved before that is seen by its time.
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

# Folders that hold what tools made
IGNORED = {"node_modules", ".git", ".atoll", ".wrangler", "dist", "__pycache__", ".venv", "build", "coverage", ".cache"}
IGNORED_ENDINGS = ("~", ".swp", ".swx", ".tmp", ".map", ".log")
MOST_FOLDERS = 2_000  # somebody may have started it in a home folder
DEBOUNCE_MS = 40
STEP_MS = 10
POLL_MS = 300  # where the kernel does not tell
ADDED = 1  # as watchfiles numbers what happened to a file


class Reason(IntEnum):
    """Why to build again, from the least to the most that has to be done."""

    SOURCES = 1
    CONFIG = 2
    ASKED = 3
    STOPPING = 4


class Watcher:
    """`poke` from the start; files from `start` on."""

    def __init__(self, project: Project, say: Callable[[str], None]) -> None:
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Reason] = asyncio.Queue()
        self._moved = threading.Event()  # other folders are to be watched
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._roots: tuple[Path, ...] = ()
        self._single: tuple[Path, ...] = ()
        self._told = ""
        self.watch(project)

    def watch(self, project: Project, inputs: Iterable[Path] = (), *, anew: bool = False) -> None:
        """The folder of the project with all below it, what its build step names, and where else its sources are."""
        roots = {project.folder, *project.build.watch}
        single = {path.parent for path in inputs if "node_modules" not in path.parts}
        if project.main is not None:
            single.add(project.main.parent)
        single = {folder for folder in single if not _is_below(folder, roots)}
        if project.build.command:  # what it writes would have it run again, for ever
            single = {folder for folder in single if not any(folder.is_relative_to(root) for root in roots)}
        wanted = tuple(sorted(roots)), tuple(sorted(single))
        if anew or wanted != (self._roots, self._single):
            self._roots, self._single = wanted
            self._moved.set()

    def start(self, is_stale: Callable[[], Reason | None]) -> None:
        """Watch from now on. `is_stale` is asked once, when nothing can be missed any more."""
        self._moved.clear()
        self._thread = threading.Thread(target=self._run, args=(is_stale,), name="watcher", daemon=True)
        self._thread.start()

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
                reason = reason or Reason.SOURCES  # something may have been saved while nobody watched
        notify.close()

    def _notify(self) -> RustNotify:
        from watchfiles._rust_notify import RustNotify  # late: the first answer does not wait for it

        polls = False
        while True:
            folders = [str(folder) for folder in folders_of(self._roots)]
            if len(folders) == MOST_FOLDERS:
                self._tell(f"only the first {MOST_FOLDERS} folders are watched: `r` builds anew")
            folders += [str(folder) for folder in self._single if folder.is_dir() and os.access(folder, os.R_OK)]
            try:
                # Not with `ignore_permission_denied`: it passes over every other fault too
                return RustNotify(folders, False, polls, POLL_MS, False, False)
            except FileNotFoundError:
                continue  # one of them went meanwhile
            except (OSError, RuntimeError) as error:  # the kernel gives only so many watches to a user
                if polls:
                    raise
                why = str(error).partition(" about [")[0]
                self._tell(f"the system does not tell of changes ({why}), so files are looked at every {POLL_MS} ms")
                polls = True

    def _tell(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self._loop.call_soon_threadsafe(self._say, text)


def folders_of(roots: Iterable[Path]) -> list[Path]:
    """The folders below the roots that people write in, those next to a root first, and no more than MOST_FOLDERS."""
    found: dict[Path, None] = {}
    waiting = deque(root for root in roots if root.is_dir())
    while waiting and len(found) < MOST_FOLDERS:
        folder = waiting.popleft()
        if folder in found:
            continue
        try:
            with os.scandir(folder) as entries:
                inner = [Path(e.path) for e in entries if e.name not in IGNORED and e.is_dir(follow_symlinks=False)]
        except OSError:  # it went, or is not ours to read
            continue
        found[folder] = None
        waiting += sorted(inner)
    return list(found)


def _is_below(folder: Path, roots: Iterable[Path]) -> bool:
    """Whether one who watches the roots watches this folder too."""
    below = (folder.relative_to(root).parts for root in roots if folder.is_relative_to(root))
    return any(not IGNORED.intersection(parts) for parts in below)


def is_source(path: str) -> bool:
    return os.path.basename(path) not in IGNORED and not path.endswith(IGNORED_ENDINGS)


def is_config(path: str) -> bool:
    name = os.path.basename(path)
    return name in CONFIGS or name.startswith((".dev.vars", ".env")) or name in ("tsconfig.json", "package.json")
