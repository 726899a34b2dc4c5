"""The control API of a node that serves workers before it has one.

Its modules are half of a node's imports, and a request to a worker needs none of them. So a thread imports them once
the node serves, or when the first request to the control API comes, and calls of workers go on meanwhile.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from atoll.manifests.every import preload_admin

if TYPE_CHECKING:
    from atoll.control.api import ControlApi

MODULES = (
    "atoll.api.work",
    "atoll.control.api",
    "atoll.control.endpoints.metrics",
    "atoll.control.endpoints.node_routes",
    "atoll.control.endpoints.of_bindings",
)


def import_control() -> None:
    for name in MODULES:
        importlib.import_module(name)
    preload_admin()


class LateControl:
    def __init__(self, make: Callable[[], ControlApi], owned: AsyncExitStack) -> None:
        """Once `owned` is closed, nothing is made any more."""
        self._make = make
        self._owned = owned
        self._made: ControlApi | None = None
        self._making: asyncio.Task[ControlApi] | None = None

    def now(self) -> ControlApi:
        """The control API, made at once if need be: for the start, when nothing else waits."""
        if self._made is None:
            self._made = self._make()
        return self._made

    async def bring(self) -> ControlApi:
        if self._made is not None:
            return self._made
        if self._making is None:
            self._making = asyncio.ensure_future(self._bring())
            self._owned.callback(self._making.cancel)
        return await asyncio.shield(self._making)

    async def _bring(self) -> ControlApi:
        await asyncio.to_thread(import_control)
        return self.now()
