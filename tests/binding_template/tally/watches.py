"""Starts the tallied() handlers of the workers that watch a tally."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from atoll.bindings.events import EventFailed, EventKind, Events
from atoll.bindings.triggers import Trigger
from atoll.workers import Version

log = logging.getLogger("atoll.tally")

TALLIED = EventKind("tallied", is_background=True)


class TallyTriggers(Trigger):
    def __init__(self, events: Events) -> None:
        self._events = events
        self._watching: dict[str, tuple[Version, set[str]]] = {}  # by id of the worker
        self._running: set[asyncio.Task[None]] = set()

    def put(self, version: Version, entries: Sequence[Any]) -> None:
        self._watching[version.worker_id] = version, {entry.tally for entry in entries}

    async def drop(self, worker_id: str) -> None:
        self._watching.pop(worker_id, None)

    def changed(self, tenant: str, tally: str, count: int) -> None:
        for version, tallies in self._watching.values():
            if version.tenant == tenant and tally in tallies:
                task = asyncio.get_running_loop().create_task(self._run(version, tally, count))
                self._running.add(task)
                task.add_done_callback(self._running.discard)

    async def _run(self, version: Version, tally: str, count: int) -> None:
        try:
            await self._events.run(version, TALLIED, f"TALLY {tally}", {"tally": tally, "count": count})
        except EventFailed as error:
            log.debug("tallied() of %s failed: %s", version.worker_name, error)

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
