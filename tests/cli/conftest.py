"""Fixtures of the command tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.dev_session import ATOLL, Dev

StartIn = Callable[..., Dev]


@pytest.fixture
def start_in() -> Iterator[StartIn]:
    """`start_in(folder, *words, **files)` writes files and runs `atoll dev` there; the fixture stops it."""
    sessions: list[Dev] = []

    def run(folder: Path, *words: str, program: Sequence[str] = (ATOLL,), **files: str) -> Dev:
        folder.mkdir(exist_ok=True, parents=True)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        sessions.append(Dev(folder, *words, program=program))
        return sessions[-1]

    yield run
    for session in sessions:
        session.stop()
