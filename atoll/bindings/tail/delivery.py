"""Sends the records of calls to tail workers, as TraceItems in batches.

`hear` runs once per call on the event loop, so it only appends; a worker without tail workers costs one lookup. A tail
worker that is too slow loses the newest items, which are counted. Loops are impossible: the calls of tail workers, and
the calls that result from them, are not sent to any tail worker.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from atoll.bindings.events import EventFailed, EventKind, Events
from atoll.bindings.scope import QUIET
from atoll.bindings.triggers import Trigger
from atoll.logs import Invocation
from atoll.trace_items import trace_item
from atoll.wire.generated import ErrorCode
from atoll.workers import Version

log = logging.getLogger("atoll.tail")

TAIL = EventKind("tail")
BATCH_ITEMS = 100
BATCH_SECONDS = 0.25
WAITING_ITEMS = 2_000  # for one tail worker
WAITING_BYTES = 4 << 20
COUNTED = 200  # tail workers whose lost items are counted separately; those of further ones are counted together
OTHERS = ("", "(other)")

Find = Callable[[str, str], Version | None]  # (tenant, name of a worker) -> its active version


class TailTriggers(Trigger):
    hears_calls = True

    def __init__(self, events: Events, find: Find) -> None:
        self._events = events
        self._find = find
        self._turn = asyncio.Lock()
        self._boxes: dict[tuple[str, str], _Box] = {}  # by tenant and name of the tail worker
        self.dropped: Counter[tuple[str, str]] = Counter()  # items lost, by tenant and name of the tail worker

    def hear(self, record: Invocation) -> None:
        """Receive the record of a finished call."""
        if record.hops >= QUIET or record.event == "tail":
            return
        version = record.version
        for consumer in version.triggers["tail_consumers"]:
            key = (version.tenant, consumer.service)
            box = self._boxes.get(key)
            if box is None:
                box = self._boxes[key] = _Box()
            if box.has_room():
                box.add(record)
            else:
                self._count_lost(key, 1)
            if box.task is None:
                box.task = asyncio.ensure_future(self._deliver(key, box))

    async def _deliver(self, key: tuple[str, str], box: _Box) -> None:
        """Send the waiting items, batch by batch, until none is left."""
        try:
            await asyncio.sleep(BATCH_SECONDS)
            while box.waiting:
                batch = box.empty(BATCH_ITEMS)
                version = self._find(*key)
                if version is None:  # the tail worker was deleted since the deploy that named it
                    self._count_lost(key, len(batch))
                    continue
                async with self._turn:  # a call may have logged thousands of lines: one batch at a time, in a thread
                    body = await asyncio.to_thread(trace_items, batch)
                try:
                    await self._events.run(version, TAIL, "TAIL", {}, body, hops=QUIET)
                except EventFailed as error:
                    log.warning("the tail worker %s failed: %s", version.worker_name, error)
                    if (
                        error.failure.code is not ErrorCode.EXCEPTION
                    ):  # not the tail worker's fault: it may not have received the batch
                        self._count_lost(key, len(batch))
        except Exception:
            log.exception("sending records to the tail worker %s failed", key[1])
        finally:
            box.task = None
            if not box.waiting:
                self._boxes.pop(key, None)

    def _count_lost(self, key: tuple[str, str], items: int) -> None:
        self.dropped[key if key in self.dropped or len(self.dropped) < COUNTED else OTHERS] += items

    async def close(self) -> None:
        tasks = [box.task for box in self._boxes.values() if box.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Box:
    """The items that wait for one tail worker."""

    __slots__ = ("bytes", "task", "waiting")

    def __init__(self) -> None:
        self.waiting: list[Invocation] = []
        self.bytes = 0
        self.task: asyncio.Task[None] | None = None

    def has_room(self) -> bool:
        return len(self.waiting) < WAITING_ITEMS and self.bytes < WAITING_BYTES

    def add(self, record: Invocation) -> None:
        self.waiting.append(record)
        self.bytes += record.weight()

    def empty(self, limit: int) -> list[Invocation]:
        batch, self.waiting = self.waiting[:limit], self.waiting[limit:]
        self.bytes -= sum(record.weight() for record in batch)
        return batch


def trace_items(records: Sequence[Invocation]) -> bytes:
    return b"[%b]" % b",".join(msgspec.json.encode(trace_item(record)) for record in records)
