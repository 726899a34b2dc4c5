"""Queue as ops: checks and stores the messages of producers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.queue.bounds import MAX_DELAY
from atoll.bindings.queue.consumer import QueueTriggers
from atoll.bindings.queue.limits import (
    MAX_BATCH,
    MAX_BATCH_BYTES,
    MAX_MESSAGE,
    TYPES,
    checked_queue_name,
    refuse_one_more,
)
from atoll.bindings.queue.store import NewMessage, NoQueue, QueueOverQuota, QueueStore
from atoll.errors import BindingRefused, InvalidArgument, StorageFailed

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class QueueEntry(msgspec.Struct, forbid_unknown_fields=True):
    queue: str
    delivery_delay: int | None = None  # None: that of the queue


class QueueBinding(Binding):
    kind = "queue"
    Entry = QueueEntry

    def __init__(self, store: QueueStore, trigger: QueueTriggers) -> None:
        self.store = store
        self.trigger: QueueTriggers = trigger

    async def close(self) -> None:
        await self.store.close()

    async def metrics(self) -> Sequence[Metric]:
        from atoll.bindings.queue.metrics import queue_metrics

        return await queue_metrics(self.store)

    def claim(self, tenant: str, entry: QueueEntry) -> str:
        checked_queue_name(entry.queue)
        delay = entry.delivery_delay
        return f"{'' if delay is None else _checked_delay(delay)} {entry.queue}"

    async def exists(self, tenant: str, resource: str) -> bool:
        return await self.store.find(tenant, resource.partition(" ")[2]) is not None

    async def holdings(self, tenant: str) -> list[str]:
        return [queue.name for queue in await self.store.all(tenant)]

    async def usage(self, tenant: str) -> dict[str, int]:
        return {"queue_bytes": await self.store.total(tenant)}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        self.store.bound(tenant, most["queue_bytes"])

    async def prepare(self, tenant: str, resource: str) -> None:
        name = resource.partition(" ")[2]
        if await self.store.find(tenant, name) is None:
            await refuse_one_more(self.store, tenant)
        await self.store.ensure(tenant, name)

    # For other bindings of the node

    async def knows(self, tenant: str, queue: str) -> bool:
        return await self.store.find(tenant, queue) is not None

    async def deliver(self, tenant: str, queue: str, bodies: Sequence[bytes]) -> bool:
        """Store JSON messages; False if there is no such queue. QueueOverQuota if they have no room."""
        found = await self.store.find(tenant, queue)
        if found is None:
            return False
        try:
            await self.store.send(found.id, [NewMessage("json", body, 0) for body in bodies])
        except NoQueue:
            return False
        return True

    @op("queue.send")
    async def send(self, call: OpCall) -> Reply:
        """Store the messages whose bytes are in the body, one after the other."""
        delay, _, name = call.grant.resource.partition(" ")
        messages = _messages(call.meta, call.body, int(delay) if delay else None)
        queue = await self.store.find(call.scope.version.tenant, name)
        if queue is None:
            raise NoQueue
        try:
            await self.store.send(queue.id, messages)
        except QueueOverQuota as error:
            raise BindingRefused(f"Queue send failed: {error}") from None
        except StorageFailed as error:
            raise StorageFailed(f"Queue send failed: {error}") from None
        return Reply()


def _messages(meta: dict[str, Any], body: bytes, default_delay: int | None) -> list[NewMessage]:
    entries = meta.get("messages")
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_BATCH:
        raise InvalidArgument(f"a batch has from 1 to {MAX_BATCH} messages")
    of_batch = meta.get("delay")
    messages, at = [], 0
    for entry in entries:
        size, kind, delay = entry if isinstance(entry, list) and len(entry) == 3 else (None, None, None)
        if not isinstance(size, int) or not 0 <= size <= len(body) - at or kind not in TYPES:
            raise InvalidArgument("the message is not one that Queue.send() makes")
        if size > MAX_MESSAGE:
            raise InvalidArgument(f"message length of {size} bytes exceeds limit of {MAX_MESSAGE}")
        wanted = delay if delay is not None else of_batch if of_batch is not None else default_delay
        checked = None if wanted is None else _checked_delay(wanted)
        messages.append(NewMessage(kind, body[at : at + size], checked))
        at += size
    if at != len(body):
        raise InvalidArgument("the message is not one that Queue.send() makes")
    if len(messages) > 1 and at > MAX_BATCH_BYTES:
        raise InvalidArgument(f"batch size of {at} bytes exceeds limit of {MAX_BATCH_BYTES}")
    return messages


def _checked_delay(delay: object) -> int:
    if isinstance(delay, bool) or not isinstance(delay, int) or not 0 <= delay <= MAX_DELAY:
        raise InvalidArgument(f"delaySeconds is {delay!r:.40}, but must be a whole number from 0 to {MAX_DELAY}")
    return delay
