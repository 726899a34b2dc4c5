"""What begins before the node is even imported, because it is the work of other processes: the first build, and an
engine. On a machine with two cores both are done when the imports are. And what may come as early: Ctrl-C.
"""

from __future__ import annotations

import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import NamedTuple

from atoll.cli.talk import say
from atoll.config import Settings
from atoll.engine.early import EarlyEngine, prepared
from atoll.project.build import Builder
from atoll.project.built import Built
from atoll.project.fetch import cache_folder
from atoll.project.model import Project, ProjectError


def build(builder: Builder) -> Built | ProjectError:
    """A build that failed is told like one that did not: a session goes on."""
    try:
        return builder.build()
    except ProjectError as error:
        return error


class FirstBuild:
    """`result` is there in a moment. `builder` is the session's then, which closes it."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.began = time.time()
        self.builder = Builder(project, dev=True, say=say)
        self._thread = ThreadPoolExecutor(1)
        self.result: Future[Built | ProjectError] = self._thread.submit(build, self.builder)

    def __enter__(self) -> FirstBuild:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        self.builder.close()

    def is_stale(self, built: Built) -> bool:
        """Whether a source was saved while nobody watched yet."""
        for path in built.inputs:
            try:
                if path.stat().st_mtime >= self.began:
                    return True
            except OSError:
                return True
        return False


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


class Interrupt:
    """Ctrl-C until a session handles it. Python raises it wherever it stands, and where that is a callback (imports
    have them), the error is printed and lost: so it is remembered too, and the session looks.
    """

    def __init__(self) -> None:
        self.came = False

    def __enter__(self) -> Interrupt:
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        signal.default_int_handler(number, frame)


class Begun(NamedTuple):
    at: float  # on the monotonic clock
    build: FirstBuild
    engine: FirstEngine
    interrupt: Interrupt
