"""Moves messages to another queue: dead letters go back to where they came from, to be tried again.

A message is stored in the other queue before it is deleted here, so a node that dies in between leaves it in both.
"""

from __future__ import annotations

import msgspec

from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.bindings.queue.store import NewMessage, Queue, QueueStore

MOST = 10_000  # messages of one request
BATCH = 500
BATCH_BYTES = 4 << 20
HIDDEN_MS = 60_000  # a node that dies leaves the messages it was moving hidden for so long


class WantedMove(msgspec.Struct, forbid_unknown_fields=True):
    to: str


class Moved(msgspec.Struct):
    moved: int


async def target_of(store: QueueStore, queue: Queue, name: str) -> Queue:
    if name == queue.name:
        raise bad_body(f"`to` is `{name[:80]}` itself", "name another queue")
    found = await store.find(queue.tenant, name)
    if found is None:
        raise Refused(ApiCode.NOT_FOUND, f"there is no queue `{name[:80]}`", "GET /api/queues lists the queues")
    return found


async def move(store: QueueStore, queue: Queue, target: Queue) -> int:
    """Move the messages that are due and that no consumer has, oldest first; returns how many."""
    moved = 0
    while moved < MOST and (found := await store.pull(queue.id, BATCH, BATCH_BYTES, HIDDEN_MS)):
        try:
            await store.send(target.id, [NewMessage(each.type, each.body, 0) for each in found])
        except BaseException:
            now = store.now()
            await store.settle_pulled(queue.id, (), [(each.seq, each.attempts, now) for each in found])
            raise
        await store.settle_pulled(queue.id, [(each.seq, each.attempts) for each in found], ())
        moved += len(found)
    return moved
