"""Limits of queues. They are Cloudflare's: 128 KB a message, 100 messages and 256 KB a batch."""

from __future__ import annotations

from atoll.bindings.queue.entries import QUEUE_NAME
from atoll.bindings.queue.store import QueueStore
from atoll.errors import BindingRefused, InvalidArgument

MAX_MESSAGE = 128 * 1000
MAX_BATCH = 100
MAX_BATCH_BYTES = 256 * 1000
MAX_QUEUES = 1_000  # of one tenant
TYPES = ("json", "text", "bytes", "v8")


def checked_queue_name(name: str) -> str:
    if not QUEUE_NAME.fullmatch(name):
        raise InvalidArgument(
            f"a queue cannot be named {name[:80]!r}: use 1 to 63 lower-case letters, digits and dashes"
        )
    return name


async def refuse_one_more(store: QueueStore, tenant: str) -> None:
    """Refuse a new queue if the tenant has reached the limit: all queues are in memory."""
    if len(await store.all(tenant)) >= MAX_QUEUES:
        raise BindingRefused(f"403 the tenant has reached the limit of {MAX_QUEUES:,} queues: delete some")
