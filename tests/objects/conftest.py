"""Fixtures: a raw engine for the tests of object storage."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.objects.raw_engine import RawEngine

slots = itertools.count(1000)


@pytest.fixture(scope="session")
def storage_snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage-snapshots")


@pytest.fixture(scope="module")
def shared_engine(storage_snapshots: Path) -> Iterator[RawEngine]:
    """One engine for all tests of a file: each test uses slots of its own."""
    with RawEngine(storage_snapshots) as engine:
        yield engine


@pytest.fixture
def slot(shared_engine: RawEngine) -> int:
    """A new and empty database."""
    number = next(slots)
    shared_engine.open(number)
    return number


@pytest.fixture
def engine(storage_snapshots: Path) -> Iterator[RawEngine]:
    """An engine that a test may break."""
    with RawEngine(storage_snapshots) as engine:
        yield engine
