"""Fixtures: a real front on a free port, with a scripted pool behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest_asyncio
import uvloop
from scripted import Front, ScriptedPool, version

from atoll.front.server import Server
from atoll.router import Router


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest_asyncio.fixture
async def start() -> AsyncIterator[Callable[..., Awaitable[Front]]]:
    """Start a front: `await start(body_bytes=10)`."""
    fronts: list[Front] = []

    async def started(**settings: Any) -> Front:
        pool = ScriptedPool()
        router = Router()
        router.put("w", version("w"))
        server = Server(pool=pool, router=router, port=0, **settings)
        await server.startup()
        fronts.append(Front(server, pool, router))
        return fronts[-1]

    yield started
    for front in fronts:
        await front.close()


@pytest_asyncio.fixture
async def front(start: Callable[..., Awaitable[Front]]) -> Front:
    return await start()
