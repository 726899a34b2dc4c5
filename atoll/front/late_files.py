"""Assets of versions that only a preview URL leads to: their files are read when the first call wants them.

A version with traffic is in memory with the table of its files. A preview is not: a site may have 100,000 files, and
reading their names takes longer than the event loop may be held. Its first calls wait, each as a WaitingCall, while a
thread reads the table. Tables stay in memory within a bound on their files; the one that was unused longest goes first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from atoll.assets.rules import AssetRules
from atoll.assets.table import AssetFile, AssetTable
from atoll.engine.calls.call import CallListener
from atoll.errors import AtollError, Failure
from atoll.front.file_call import Answered
from atoll.wire.generated import ErrorCode

log = logging.getLogger("atoll.front")

KEPT_FILES: Final = 200_000
UNREADABLE: Final = Failure(ErrorCode.UNAVAILABLE, "the assets of this version cannot be read now")

ReadFiles: TypeAlias = Callable[[str, AssetRules], Awaitable[Mapping[str, AssetFile]]]  # (tenant, rules)


class WaitingCall(Answered):
    """A call that starts when the table is there. Until then the caller may send one window of its body."""

    __slots__ = ("_body", "_caller", "_granted", "_heard", "_real", "_start", "within")

    def __init__(self, caller: CallListener, start: Callable[[], Any]) -> None:
        self._caller: CallListener | None = caller
        self._start = start
        self._real: Any = None
        self._body: list[tuple[bytes, bool]] = []
        self._granted = 0
        self._heard = 0
        self.within: object = None

    @property
    def unsent(self) -> int:
        if self._real is not None:
            return int(self._real.unsent)
        return sum(len(chunk) for chunk, _ in self._body)

    def go(self) -> None:
        if self._caller is None:
            return
        self._real = self._start()
        self._real.within = self.within
        for chunk, ended in self._body:
            self._real.send_body(chunk, ended)
        self._body.clear()
        if self._granted:
            self._real.grant(self._granted)
        if self._heard:
            self._real.hear(self._heard)

    def fail(self, failure: Failure) -> None:
        caller, self._caller = self._caller, None
        if caller is not None:
            caller.on_failure(failure)

    def send_body(self, chunk: bytes, ended: bool) -> None:
        if self._real is not None:
            self._real.send_body(chunk, ended)
        elif self._caller is not None:
            self._body.append((chunk, ended))

    def grant(self, amount: int) -> None:
        if self._real is not None:
            self._real.grant(amount)
        else:
            self._granted += amount

    def hear(self, messages: int) -> None:
        if self._real is not None:
            self._real.hear(messages)
        else:
            self._heard += messages

    def cancel(self) -> None:
        self._caller = None
        if self._real is not None:
            self._real.cancel()

    def refuse(self, failure: Failure) -> None:
        self._caller = None
        if self._real is not None:
            self._real.refuse(failure)


class LateFiles:
    def __init__(self, read: ReadFiles | None, kept_files: int = KEPT_FILES) -> None:
        self._read = read
        self._kept_files = kept_files
        self._waiting: dict[AssetTable, list[WaitingCall]] = {}
        self._kept: OrderedDict[AssetTable, int] = OrderedDict()  # files of each, the last used last
        self._tasks: set[asyncio.Task[None]] = set()

    def used(self, table: AssetTable) -> None:
        """A late table that is here was used."""
        if table in self._kept:
            self._kept.move_to_end(table)

    def wait(self, tenant: str, table: AssetTable, call: WaitingCall) -> WaitingCall:
        """Start `call` when the files of `table` are here."""
        waiting = self._waiting.get(table)
        if waiting is not None:
            waiting.append(call)
            return call
        self._waiting[table] = [call]
        task = asyncio.get_running_loop().create_task(self._bring(tenant, table))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return call

    async def _bring(self, tenant: str, table: AssetTable) -> None:
        failure: Failure | None = None
        try:
            assert self._read is not None
            table.files = await self._read(tenant, table.rules)
            table.is_here = True
            self._keep(table)
        except AtollError as error:  # the disk, or a version that was deleted meanwhile
            log.warning("the assets of a preview cannot be read: %s", error)
            failure = UNREADABLE
        except Exception:
            log.exception("reading the assets of a preview failed")
            failure = UNREADABLE
        finally:
            waiting = self._waiting.pop(table, [])
        for call in waiting:
            call.go() if failure is None else call.fail(failure)

    def _keep(self, table: AssetTable) -> None:
        self._kept[table] = len(table.files)
        while len(self._kept) > 1 and sum(self._kept.values()) > self._kept_files:
            oldest, _ = self._kept.popitem(last=False)
            oldest.is_here = False
            oldest.files = {}

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
