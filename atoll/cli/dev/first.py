"""Starts the first build and an engine before the node is imported. Both run in other processes, and with two cores are
ready when the imports are.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from atoll.cli.interrupt import Interrupt
from atoll.cli.talk import say
from atoll.config import Settings
from atoll.engine.process.prestart import FirstEngines, PrestartedEngine, engine_command, engine_options
from atoll.project.build import Builder
from atoll.project.built import Built
from atoll.project.fetch import cache_folder
from atoll.project.model import Project, ProjectError

if TYPE_CHECKING:
    from atoll.cli.dev.watch import Reason


def build(builder: Builder) -> Built | ProjectError:
    """The result of the first build. A failed build does not end the session."""
    try:
        return builder.build()
    except ProjectError as error:
        return error


CLOCK_STEP = 0.02  # the time stamps of file systems advance in steps of some milliseconds


class FirstBuild:
    """The first build, in a thread; `result` is its future. The session takes over `builder` and closes it."""

    def __init__(self, project: Project, began: float) -> None:
        """`began` is a time before the project was read, on the clock of file systems."""
        self.project = project
        self.began = began
        self.builder = Builder(project, dev=True, say=say)
        self._thread = ThreadPoolExecutor(1)
        self.result: Future[Built | ProjectError] = self._thread.submit(build, self.builder)

    def __enter__(self) -> FirstBuild:
        return self

    def __exit__(self, *_: object) -> None:
        self.builder.abandon()
        self._thread.shutdown()
        self.builder.close()

    def stale(self) -> Reason | None:
        """What to rebuild because a file was saved before the watcher started."""
        from atoll.cli.dev.watch import Reason, folders_of, is_config

        if self.project.tool is not None:  # what it has made is new: only sources count
            return Reason.SOURCES if any(map(self._has_new, folders_of([self.project.tool.folder]))) else None
        built = self.result.result()
        try:
            with os.scandir(self.project.folder) as entries:
                if any(is_config(entry.name) and self._is_new(entry.stat()) for entry in entries):
                    return Reason.CONFIG
            if isinstance(built, ProjectError) or any(self._is_new(path.stat()) for path in built.inputs):
                return Reason.SOURCES  # the build may have failed for a file that exists by now
        except OSError:
            return Reason.SOURCES
        return None

    def _has_new(self, folder: Path) -> bool:
        try:
            with os.scandir(folder) as entries:
                return any(entry.is_file() and entry.stat().st_ctime > self.began for entry in entries)
        except OSError:
            return False

    def _is_new(self, about: os.stat_result) -> bool:
        """Compares the inode's change time: a file that is moved here keeps its old modification time."""
        return about.st_ctime >= self.began - CLOCK_STEP


def first_engine(settings: Settings) -> FirstEngines:
    """With the shared snapshot a new project does not wait for one of its own."""
    options = engine_options(settings, shared_snapshots=cache_folder())
    return FirstEngines(lambda: PrestartedEngine(engine_command(options)))


class Begun(NamedTuple):
    at: float  # on the monotonic clock
    builds: list[FirstBuild]  # one for each worker
    engine: FirstEngines
    interrupt: Interrupt
