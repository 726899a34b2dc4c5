"""A disk whose reports of durable commits a test gives when it likes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atoll.objects.store import Commit, Done, ObjectKey
from tests.engine.engine_room import EngineRoom


class SlowDisk:
    """Holds back the report of commits, as a slow disk would."""

    def __init__(self, room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: list[Callable[[Exception | None], None]] = []
        real = room.objects.runtime.store.commit

        def commit(key: ObjectKey, commit: Commit, done: Done) -> None:
            def report(error: Exception | None) -> None:
                self.waiting.append(lambda other: done(other or error))

            real(key, commit, report)

        monkeypatch.setattr(room.objects.runtime.store, "commit", commit)

    def finish(self, error: Exception | None = None) -> None:
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each(error)
