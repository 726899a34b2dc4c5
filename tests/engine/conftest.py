"""Fixtures: an engine room with real engines. It fails, and does not skip, if the engine is not built."""

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
    """A folder for snapshots. They depend on the build alone, so all rooms of a test run share them."""
    return tmp_path_factory.mktemp("snapshots")


@pytest_asyncio.fixture
async def open_room(snapshots: Path) -> AsyncIterator[Callable[..., Any]]:
    """Starts a separate engine room: `await open_room(engines=2)`."""
    async with AsyncExitStack() as stack:

        async def opened(**given: Any) -> EngineRoom:
            return await stack.enter_async_context(EngineRoom(snapshots, **given))

        yield opened


@pytest_asyncio.fixture
async def make_room() -> AsyncIterator[Callable[..., Any]]:
    """Makes an engine room that is not started: `make_room(tmp_path)`."""
    async with AsyncExitStack() as stack:

        def made(data: Path, **given: Any) -> EngineRoom:
            room = EngineRoom(data, **given)
            stack.push_async_callback(room.close)
            return room

        yield made


@pytest_asyncio.fixture
async def room(open_room: Callable[..., Any]) -> EngineRoom:
    return await open_room()  # type: ignore[no-any-return]
