"""Consumers that pull: a queue's messages are taken, acknowledged and retried over HTTP, by any program.

The settings belong to the queue, unlike those of a worker that consumes it, which belong to a version of the worker.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Struct

from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.bindings.queue.bounds import MAX_DELAY
from atoll.bindings.queue.consumer import QueueTriggers
from atoll.bindings.queue.limits import checked_queue_name, refuse_one_more
from atoll.bindings.queue.store import Message, Queue, QueueStore
from atoll.errors import InvalidArgument

MAX_PULLED = 100
MAX_PULLED_BYTES = 1 << 20  # bodies of one answer; one larger message still fits
MAX_SETTLED = 1_000
MAX_VISIBILITY_MS = 12 * 3_600_000
BURIED = 500  # messages that one pull moves to the dead-letter queue


class PullSettings(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """How a consumer that pulls is served. Times are seconds unless named otherwise."""

    batch_size: int = 5
    max_retries: int = 3
    retry_delay: int = 0
    visibility_timeout_ms: int = 30_000  # for how long a pulled message is hidden
    dead_letter_queue: str = ""


BOUNDS: dict[str, tuple[int, int]] = {
    "batch_size": (1, MAX_PULLED),
    "max_retries": (0, 100),
    "retry_delay": (0, MAX_DELAY),
    "visibility_timeout_ms": (1_000, MAX_VISIBILITY_MS),
}


class WantedPull(Struct):
    batch_size: int | None = None
    visibility_timeout_ms: int | None = None


class LeaseOf(Struct):
    lease_id: str
    delay_seconds: int | None = None


class WantedAck(Struct):
    acks: list[LeaseOf] = []
    retries: list[LeaseOf] = []


class Settled(NamedTuple):
    acks: int
    retries: int
    warnings: list[str]


def settings_of(queue: Queue) -> PullSettings:
    """The settings of a queue's consumer that pulls. Refused if it has none."""
    if not queue.pull:
        hint = f"add one: wrangler queues consumer http add {queue.name}, or atoll queues allow-pull {queue.name}"
        raise Refused(ApiCode.BAD_TRIGGER, f"the queue `{queue.name}` has no consumer that pulls", hint)
    return msgspec.json.decode(queue.pull, type=PullSettings)


def pulled_dead_letters(queue: Queue) -> str | None:
    """The dead-letter queue of a consumer that pulls."""
    return msgspec.json.decode(queue.pull, type=PullSettings).dead_letter_queue or None if queue.pull else None


class Pulling:
    def __init__(self, store: QueueStore, triggers: QueueTriggers) -> None:
        self._store = store
        self._triggers = triggers

    async def allow(self, queue: Queue, settings: PullSettings) -> None:
        """Give a queue a consumer that pulls, or change it."""
        for name, (low, high) in BOUNDS.items():
            value = getattr(settings, name)
            if not low <= value <= high:
                raise bad_body(f"`{name}` is {value}, but must be from {low} to {high}")
        worker = self._triggers.consumer_of(queue.tenant, queue.name)
        if worker is not None:
            raise Refused(
                ApiCode.TRIGGER_TAKEN, f"the worker `{worker}` consumes the queue `{queue.name}`",
                "a queue has one consumer: deploy the worker without it first",
            )  # fmt: skip
        dead = settings.dead_letter_queue
        if dead:
            try:
                checked_queue_name(dead)
            except InvalidArgument as error:
                raise bad_body(str(error)) from None
            if dead == queue.name:
                raise bad_body(f"`{dead}` is its own dead-letter queue", "name another queue")
            await self._dead_letters(queue.tenant, dead)
        await self._store.set_pull(queue.id, msgspec.json.encode(settings).decode() or "{}")

    async def _dead_letters(self, tenant: str, name: str) -> int:
        found = await self._store.find(tenant, name)
        if found is None:
            await refuse_one_more(self._store, tenant)
            found = await self._store.ensure(tenant, name)
        return found.id

    async def forbid(self, queue: Queue) -> None:
        await self._store.set_pull(queue.id, "")

    async def pull(self, queue: Queue, wanted: WantedPull) -> list[Message]:
        settings = settings_of(queue)
        size = wanted.batch_size if wanted.batch_size is not None else settings.batch_size
        hidden = (
            wanted.visibility_timeout_ms if wanted.visibility_timeout_ms is not None else settings.visibility_timeout_ms
        )
        for name, value in (("batch_size", size), ("visibility_timeout_ms", hidden)):
            low, high = BOUNDS[name]
            if not low <= value <= high:
                raise bad_body(f"`{name}` is {value}, but must be from {low} to {high}")
        if queue.paused:
            return []
        dead = settings.dead_letter_queue
        letters = await self._dead_letters(queue.tenant, dead) if dead else None
        await self._store.bury(queue.id, settings.max_retries + 1, BURIED, letters)
        return await self._store.pull(queue.id, size, MAX_PULLED_BYTES, hidden)

    async def settle(self, queue: Queue, wanted: WantedAck) -> Settled:
        settings, now = settings_of(queue), self._store.now()
        if len(wanted.acks) + len(wanted.retries) > MAX_SETTLED:
            raise bad_body(f"more than {MAX_SETTLED} leases at once", "send them in parts")
        done = [lease_of(each.lease_id) for each in wanted.acks]
        again = []
        for each in wanted.retries:
            delay = settings.retry_delay if each.delay_seconds is None else each.delay_seconds
            if not 0 <= delay <= MAX_DELAY:
                raise bad_body(f"`delay_seconds` is {delay}, but must be from 0 to {MAX_DELAY}")
            again.append((*lease_of(each.lease_id), now + 1000 * delay))
        acks = await self._store.settle_pulled(queue.id, done, ())
        retries = await self._store.settle_pulled(queue.id, (), again)
        lost = len(done) + len(again) - acks - retries
        text = f"{lost} leases have ended: the messages were settled before, or became due again"
        return Settled(acks, retries, [text] if lost else [])


def lease_id(message: Message) -> str:
    return f"{message.seq:x}-{message.attempts:x}"


def lease_of(text: str) -> tuple[int, int]:
    seq, _, attempts = text.partition("-")
    try:
        if len(text) > 24 or not text.isascii():
            raise ValueError
        found = int(seq, 16), int(attempts, 16)
        if not all(0 <= each < 1 << 62 for each in found):
            raise ValueError
    except ValueError:
        raise bad_body(f"`lease_id` is {text[:80]!r}, which no pull has given") from None
    return found
