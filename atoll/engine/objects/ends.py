"""Objects that end because somebody wants them to: they are deleted, or taken back to a bookmark."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Protocol

from atoll.engine.objects import failures
from atoll.engine.objects.among_nodes import AmongNodes
from atoll.engine.objects.fences import Fences
from atoll.engine.objects.hibernation import Hibernation
from atoll.engine.objects.live_object import OPENING, LiveObject
from atoll.errors import ObjectFailure
from atoll.objects.store import Elsewhere, ObjectKey, ObjectStorage
from atoll.workers import Version


class EndHome(Protocol):
    """What this needs of the runtime."""

    store: ObjectStorage
    hibernation: Hibernation
    among: AmongNodes | None

    def end(self, live: LiveObject, failure: ObjectFailure) -> None: ...


class Barred:
    """Objects that are being deleted."""

    def __init__(self) -> None:
        self._times: dict[ObjectKey, int] = {}

    @contextmanager
    def of(self, key: ObjectKey) -> Iterator[None]:
        self._times[key] = self._times.get(key, 0) + 1
        try:
            yield
        finally:
            self._times[key] -= 1
            if not self._times[key]:
                del self._times[key]

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._times


class ObjectEnds:
    def __init__(self, home: EndHome, live: dict[ObjectKey, LiveObject], fences: Fences) -> None:
        self.barred = Barred()
        self._home = home
        self._live = live
        self._fences = fences

    async def delete(self, key: ObjectKey) -> None:
        """Delete what an object stored. Its calls fail."""
        with self.barred.of(key):
            await self._end(key)
            self._home.hibernation.delete(lambda each: each == key)
            while True:
                try:
                    return await self._home.store.delete(key)
                except Elsewhere as elsewhere:
                    if self._home.among is None or not await self._home.among.claim(key, elsewhere):
                        raise

    async def restore(self, key: ObjectKey, bookmark: str) -> str:
        """Take an object back to a bookmark now. Its calls fail. Returns the bookmark that undoes it."""
        undo = await self._home.store.past.ask(key, bookmark)
        while True:
            if (live := self._live.get(key)) is not None:
                self._home.end(live, failures.RESTORED)
            await self._fences.passed(key)
            if await self._home.store.past.carry_out(key):  # not if a call has opened it again, before the wish
                return undo
            await asyncio.sleep(0.01)

    async def delete_namespace(self, namespace: str) -> None:
        for key in [key for key in self._live if key.namespace == namespace]:
            await self._end(key)
        self._home.hibernation.delete(lambda key: key.namespace == namespace)
        await self._home.store.delete_namespace(namespace)

    def update(self, version: Version, moved: Collection[str] = ()) -> None:
        """A version is active: objects of the same worker with other code are reset, and those in moved namespaces."""
        for live in list(self._live.values()):
            is_moved = live.key.namespace in moved
            if not is_moved and (live.version.worker_id != version.worker_id or live.version is version):
                continue
            if live.state == OPENING and not is_moved:
                live.version = version
                for call in live.waiting:
                    call.version = version
            else:
                self._home.end(live, failures.UPDATED)
        self._home.hibernation.update(version)

    async def _end(self, key: ObjectKey) -> None:
        while (live := self._live.get(key)) is not None:
            if live.state == OPENING:
                await asyncio.sleep(0.01)
            else:
                self._home.end(live, failures.DELETED)
        await self._fences.passed(key)
