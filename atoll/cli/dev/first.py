"""The first build of a session, begun before the node is even imported: the bundler is a process of its own."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor

from atoll.cli.talk import say
from atoll.project.build import Builder
from atoll.project.built import Built
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
