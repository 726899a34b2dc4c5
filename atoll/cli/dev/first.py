"""What begins before the node is even imported, because it is the work of other processes: the first build, and an
engine. On a machine with two cores both are done when the imports are.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from atoll.cli.interrupt import Interrupt
from atoll.cli.talk import say
from atoll.config import Settings
from atoll.engine.early import EarlyEngine, prepared
from atoll.project.build import Builder
from atoll.project.built import Built
from atoll.project.fetch import cache_folder
from atoll.project.model import Project, ProjectError

if TYPE_CHECKING:
    from atoll.cli.dev.watch import Reason


def build(builder: Builder) -> Built | ProjectError:
    """A build that failed is told like one that did not: a session goes on."""
    try:
        return builder.build()
    except ProjectError as error:
        return error


CLOCK_STEP = 0.02  # file systems tell the time in steps of some milliseconds


class FirstBuild:
    """`result` is there in a moment. `builder` is the session's then, which closes it."""

    def __init__(self, project: Project, began: float) -> None:
        """`began` is when the project was not read yet, on the clock of file systems."""
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
        """What there is to do because a file was saved while nobody watched yet."""
        from atoll.cli.dev.watch import Reason, is_config

        built = self.result.result()
        try:
            with os.scandir(self.project.folder) as entries:
                if any(is_config(entry.name) and self._is_new(entry.stat()) for entry in entries):
                    return Reason.CONFIG
            if isinstance(built, ProjectError) or any(self._is_new(path.stat()) for path in built.inputs):
                return Reason.SOURCES  # what does not build may lack a file that is there by now
        except OSError:
            return Reason.SOURCES
        return None

    def _is_new(self, about: os.stat_result) -> bool:
        """By the time of the inode: a file that is moved to its place keeps that of its contents."""
        return about.st_ctime >= self.began - CLOCK_STEP


class FirstEngine:
    """`result` is there in a moment; the node's supervisor takes it over."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._thread = ThreadPoolExecutor(1)
        self.result: Future[EarlyEngine] = self._thread.submit(self._start)

    def _start(self) -> EarlyEngine:
        settings = self._settings
        command = prepared(
            settings.data,
            shared=cache_folder(),  # a new project need not wait until a snapshot is made for it
            threads=settings.engine_threads,
            engines=settings.engines,
            spares=settings.spares,
            pbkdf2_iterations=settings.pbkdf2_iterations,
            heap_initial_mb=settings.heap_initial_mb,
            sandbox_mode=settings.sandbox,
        )
        return EarlyEngine(command)

    def __enter__(self) -> FirstEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        if self.result.exception() is None:
            self.result.result().close()


class Begun(NamedTuple):
    at: float  # on the monotonic clock
    build: FirstBuild
    engine: FirstEngine
    interrupt: Interrupt
