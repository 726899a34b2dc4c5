"""Fixtures: an engine room with real engines, which fails (and does not skip) when the engine is not built."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.engine.engine_room import EngineRoom


@pytest.fixture(scope="session")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Snapshots depend on the build alone: one folder for all rooms of a run saves making one per test."""
    return tmp_path_factory.mktemp("snapshots")


@pytest_asyncio.fixture
async def open_room(snapshots: Path) -> AsyncIterator[Callable[..., Any]]:
    """Start an engine room of one's own: `await open_room(engines=2)`."""
    async with AsyncExitStack() as stack:

        async def opened(**given: Any) -> EngineRoom:
            return await stack.enter_async_context(EngineRoom(snapshots, **given))

        yield opened


@pytest_asyncio.fixture
async def room(open_room: Callable[..., Any]) -> EngineRoom:
    return await open_room()  # type: ignore[no-any-return]
