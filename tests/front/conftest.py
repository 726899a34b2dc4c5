"""Fixtures: a real front on a free port, with a scripted pool behind it."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest_asyncio
from scripted import Front, ScriptedPool, version

from atoll.front.bounds import Bounds
from atoll.front.options import FrontOptions
from atoll.front.server import Server, listen
from atoll.router import Router

BOUNDS = {field.name for field in dataclasses.fields(Bounds)}


@pytest_asyncio.fixture
async def start() -> AsyncIterator[Callable[..., Awaitable[Front]]]:
    """Starts a front: `await start(body_bytes=10)`."""
    fronts: list[Front] = []

    async def started(**settings: Any) -> Front:
        pool = ScriptedPool()
        router = Router()
        router.put("w", version("w"))
        bounds = {name: settings.pop(name) for name in BOUNDS & set(settings)}
        control = settings.pop("control", None)
        server = Server(pool, router, control, FrontOptions(bounds=Bounds(**bounds), **settings))
        await server.startup(listen("127.0.0.1", 0))
        fronts.append(Front(server, pool, router))
        return fronts[-1]

    yield started
    for front in fronts:
        await front.close()


@pytest_asyncio.fixture
async def front(start: Callable[..., Awaitable[Front]]) -> Front:
    return await start()
