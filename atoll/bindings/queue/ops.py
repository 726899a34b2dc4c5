"""Queue: what a producer may send. Limits are Cloudflare's: 128 KB a message, 100 messages and 256 KB a batch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.queue.store import NewMessage, NoQueue, OverQuota, QueueStore
from atoll.errors import BindingRefused, InvalidArgument, StorageFailed

MAX_MESSAGE = 128 * 1000
MAX_BATCH = 100
MAX_BATCH_BYTES = 256 * 1000
MAX_DELAY = 86_400
MAX_QUEUES = 1_000  # of one tenant
TYPES = ("json", "text", "bytes", "v8")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class QueueEntry(msgspec.Struct, forbid_unknown_fields=True):
    queue: str
    delivery_delay: int = 0


def checked_queue_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise InvalidArgument(
            f"a queue cannot be named {name[:80]!r}: use 1 to 63 lower-case letters, digits and dashes"
        )
    return name


async def refuse_one_more(store: QueueStore, tenant: str) -> None:
    """Refuse another queue of a tenant that has as many as it may have: all of them are in memory."""
    if len(await store.all(tenant)) >= MAX_QUEUES:
        raise BindingRefused(f"403 the tenant has {MAX_QUEUES:,} queues, the most it may have: delete some")


class QueueBinding(Binding):
    kind = "queue"
    Entry = QueueEntry

    def __init__(self, store: QueueStore) -> None:
        self._store = store

    def claim(self, tenant: str, entry: QueueEntry) -> str:
        checked_queue_name(entry.queue)
        return f"{_checked_delay(entry.delivery_delay)} {entry.queue}"

    async def exists(self, tenant: str, resource: str) -> bool:
        return await self._store.find(tenant, resource.partition(" ")[2]) is not None

    async def holdings(self, tenant: str) -> list[str]:
        return [queue.name for queue in await self._store.all(tenant)]

    async def usage(self, tenant: str) -> dict[str, int]:
        return {"queue_bytes": await self._store.total(tenant)}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        self._store.bound(tenant, most["queue_bytes"])

    async def prepare(self, tenant: str, resource: str) -> None:
        name = resource.partition(" ")[2]
        if await self._store.find(tenant, name) is None:
            await refuse_one_more(self._store, tenant)
        await self._store.ensure(tenant, name)

    @op("queue.send")
    async def send(self, call: OpCall) -> Reply:
        """Store the messages whose bytes are in the body, one after the other."""
        delay, _, name = call.grant.resource.partition(" ")
        messages = _messages(call.meta, call.body, int(delay))
        queue = await self._store.find(call.scope.version.tenant, name)
        if queue is None:
            raise NoQueue
        try:
            await self._store.send(queue.id, messages)
        except OverQuota as error:
            raise BindingRefused(f"Queue send failed: {error}") from None
        except StorageFailed as error:
            raise StorageFailed(f"Queue send failed: {error}") from None
        return Reply()


def _messages(meta: dict[str, Any], body: bytes, default_delay: int) -> list[NewMessage]:
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
        messages.append(NewMessage(kind, body[at : at + size], _checked_delay(wanted)))
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
