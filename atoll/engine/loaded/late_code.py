"""The code of versions that are not kept in memory: read when such a version is about to be loaded.

Most workers of a node are not loaded, and most previews are never called, so neither is in memory with its code
(`Version.is_whole` is false). Little code of a version with traffic is read at once. Else the first calls wait in the
queue of the pool while a thread reads the code. The code stays in memory for a while, within a bound for all such
versions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from atoll.errors import Failure, LoadFailed, StorageFailed
from atoll.wire.generated import ErrorCode
from atoll.workers import Module, Version

log = logging.getLogger("atoll.pool")

# Reads the modules of a version; none if the version was deleted.
ReadCode: TypeAlias = Callable[[Version], Awaitable[tuple[Module, ...]]]
# The same for little code, without waiting.
ReadCodeNow: TypeAlias = Callable[[Version], "tuple[Module, ...]"]

KEPT_BYTES = 32 << 20
LITTLE_BYTES = 256 << 10  # takes less time to read than to wake a thread for it
FAILURE_SECONDS = 1.0  # for which calls get the failure, before the code is read again
GONE = Failure(ErrorCode.UNLOADED, "this version was deleted")


class LateCode:
    def __init__(self, read: ReadCode | None, clock: Callable[[], float], read_now: ReadCodeNow | None = None) -> None:
        self._read = read
        self._read_now = read_now
        self._clock = clock
        self._whole: OrderedDict[Version, Version] = OrderedDict()  # the same with its code, oldest use first
        self._bytes = 0
        self._reading: dict[Version, asyncio.Task[None]] = {}
        self._failed: dict[Version, tuple[Failure, float]] = {}  # until when
        self.on_ready: Callable[[], None] = lambda: None  # called when calls that waited for code can go on

    def is_here(self, version: Version) -> bool:
        """Whether a version can be loaded. If its code is missing, begins to read it. LoadFailed if that failed."""
        if version.is_whole or version in self._whole:
            return True
        failure, until = self._failed.get(version, (GONE, 0.0))
        if self._clock() < until:
            raise LoadFailed(failure)
        if self._read_now is not None and 0 < version.stored_bytes <= LITTLE_BYTES and version not in self._reading:
            modules, failure = self._little(version, self._read_now)
            self._settle(version, modules, failure)
            if not modules:
                raise LoadFailed(failure)
            return True
        if version not in self._reading:
            self._failed.pop(version, None)
            task = asyncio.get_running_loop().create_task(self._bring(version))
            self._reading[version] = task
        return False

    async def ready(self, version: Version) -> None:
        """Wait until a version can be loaded. LoadFailed if its code cannot be read."""
        if not self.is_here(version):
            await asyncio.shield(self._reading[version])
            self.is_here(version)

    def whole(self, version: Version) -> Version:
        """A version with its code. LoadFailed if it is not here: ask `is_here` first."""
        found = version if version.is_whole else self._whole.get(version)
        if found is None:
            raise LoadFailed(GONE)
        if found is not version:
            self._whole.move_to_end(version)
        return found

    async def _bring(self, version: Version) -> None:
        failure = GONE
        modules: tuple[Module, ...] = ()
        try:
            if self._read is not None:
                modules = await self._read(version)
        except StorageFailed as error:
            failure = Failure(ErrorCode.UNAVAILABLE, f"the code of this version cannot be read: {error}")
        except Exception:
            log.exception("reading the code of %s failed", version.id)
            failure = Failure(ErrorCode.INTERNAL, "the code of this version cannot be read")
        finally:
            del self._reading[version]
        self._settle(version, modules, failure)
        self.on_ready()

    def _little(self, version: Version, read: ReadCodeNow) -> tuple[tuple[Module, ...], Failure]:
        try:
            return read(version), GONE
        except StorageFailed as error:
            return (), Failure(ErrorCode.UNAVAILABLE, f"the code of this version cannot be read: {error}")
        except Exception:
            log.exception("reading the code of %s failed", version.id)
            return (), Failure(ErrorCode.INTERNAL, "the code of this version cannot be read")

    def _settle(self, version: Version, modules: tuple[Module, ...], failure: Failure) -> None:
        if modules:
            self._keep(version, replace(version, modules=modules, has_code=True, stored_bytes=0))
        else:
            now = self._clock()
            self._failed = {each: kept for each, kept in self._failed.items() if now < kept[1]}
            self._failed[version] = (failure, now + FAILURE_SECONDS)

    def _keep(self, version: Version, whole: Version) -> None:
        self._whole[version] = whole
        self._bytes += _size(whole)
        while self._bytes > KEPT_BYTES and len(self._whole) > 1:
            self._bytes -= _size(self._whole.popitem(last=False)[1])

    def forget(self, version: Version) -> None:
        whole = self._whole.pop(version, None)
        if whole is not None:
            self._bytes -= _size(whole)


def _size(whole: Version) -> int:
    return sum(len(module.source) for module in whole.modules)
