"""Fixtures: a node in the test's own folder, and restarts of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from control_plane import Clock, Engines, Node

from atoll.config import Settings


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engines() -> Engines:
    return Engines()


@pytest.fixture
def settings() -> Settings:
    return Settings(control_hosts=("control.example",))


@pytest.fixture
def start(tmp_path: Path, settings: Settings, engines: Engines, clock: Clock) -> Callable[..., Any]:
    """Opens a node in the test's folder: `async with start() as node`. Open it again for a restart."""

    @asynccontextmanager
    async def opened(given: Settings | None = None) -> AsyncIterator[Node]:
        node = Node(tmp_path, given or settings, engines, clock)
        try:
            yield node
        finally:
            await node.close()

    return opened


@pytest.fixture
async def node(start: Callable[..., Any]) -> AsyncIterator[Node]:
    async with start() as opened:
        yield opened
