"""Delivers messages of queues to the workers that consume them, in batches.

Each queue with a consumer has one task. A batch is sent when it is full or when its first message has waited long
enough; several batches may be in progress. One write settles all messages of a batch: acknowledged ones are deleted,
others are retried, and those that failed too often go to the dead-letter queue, or are dropped and counted. If a batch
fails as a whole (the handler threw, the engine died, the node stops), all its messages are retried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from atoll.bindings.events import EventFailed, EventKind, Events
from atoll.bindings.queue.bounds import MAX_DELAY
from atoll.bindings.queue.entries import QueueConsumer
from atoll.bindings.queue.limits import refuse_one_more
from atoll.bindings.queue.store import Message, QueueStore, Settlement
from atoll.bindings.triggers import BadTrigger, Trigger
from atoll.errors import StorageFailed
from atoll.workers import Version

log = logging.getLogger("atoll.queues")

BATCH = EventKind("queue", is_background=True)
BACK_OFF = 10  # seconds before a second attempt, doubled for each further one
MAX_BACK_OFF = 600
SWEEP_SECONDS = 60.0
DOUBT_SECONDS = 3_600.0  # seconds before the first sweep after a clock jump: a wrong clock is corrected by then
REST_SECONDS = 0.002  # seconds between two checks of a queue that had no batch ready
AGAIN_SECONDS = 2.0  # seconds until the next try if the store fails


class MessageVerdict(msgspec.Struct):
    """The handler's decision on a message, or on all messages that it did not name."""

    ack: bool = True
    delay: float | None = None


class BatchAnswer(msgspec.Struct):
    all: MessageVerdict | None = None
    messages: dict[str, MessageVerdict] = {}


class Key(NamedTuple):
    tenant: str
    queue: str


class QueueTriggers(Trigger):
    def __init__(self, events: Events, store: QueueStore) -> None:
        self._events = events
        self.store = store
        self._lines: dict[Key, _Line] = {}
        self._ending: dict[asyncio.Task[None], _Line] = {}  # lines that only finish their batches in progress
        self._of_worker: dict[str, list[Key]] = {}
        store.on_change(self._on_change)
        self._sweeper = asyncio.ensure_future(self._sweep())

    def consumer_of(self, tenant: str, queue: str) -> str | None:
        """The name of the worker that consumes a queue."""
        line = self._lines.get(Key(tenant, queue))
        return line.version.worker_name if line else None

    def dead_letters_of(self, tenant: str, queue: str) -> str | None:
        """Where messages go that the worker which consumes a queue fails too often."""
        line = self._lines.get(Key(tenant, queue))
        return line.consumer.dead_letter_queue if line else None

    def check(self, version: Version, consumers: Sequence[QueueConsumer]) -> None:
        for consumer in consumers:
            owner = self.consumer_of(version.tenant, consumer.queue)
            if owner not in (None, version.worker_name):
                raise BadTrigger(
                    f"the queue `{consumer.queue}` is consumed by the worker `{owner}`",
                    "a queue has one consumer: remove it there first",
                    is_taken=True,
                )

    async def prepare(self, version: Version, consumers: Sequence[QueueConsumer]) -> None:
        """Create the missing queues that consumers name."""
        tenant = version.tenant
        for consumer in consumers:
            found = await self.store.find(tenant, consumer.queue)
            if found is not None and found.pull:
                raise BadTrigger(
                    f"the queue `{consumer.queue}` has a consumer that pulls over HTTP",
                    f"a queue has one consumer: atoll queues allow-pull {consumer.queue} --off",
                    is_taken=True,
                )
            for name in filter(None, (consumer.queue, consumer.dead_letter_queue)):
                if await self.store.find(tenant, name) is None:
                    await refuse_one_more(self.store, tenant)
                    await self.store.ensure(tenant, name)

    def put(self, version: Version, consumers: Sequence[QueueConsumer]) -> None:
        """Make a version the active one of its worker, consuming these queues."""
        wanted = {Key(version.tenant, consumer.queue): consumer for consumer in consumers}
        for key in self._of_worker.pop(version.worker_id, []):
            if key not in wanted:
                self._retire(key, version.worker_id)
        for key, consumer in wanted.items():
            line = self._lines.get(key)
            if line is None:
                self._lines[key] = _Line(self._events, self.store, version, consumer)
            else:
                line.change(version, consumer)
        if wanted:
            self._of_worker[version.worker_id] = list(wanted)

    async def drop(self, worker_id: str) -> None:
        for key in self._of_worker.pop(worker_id, []):
            self._retire(key, worker_id)

    def _retire(self, key: Key, worker_id: str) -> None:
        """Stop a worker's consumer of a queue; another worker may consume the queue by now."""
        line = self._lines.get(key)
        if line is not None and line.version.worker_id == worker_id:
            del self._lines[key]
            line.stop()
            task = asyncio.ensure_future(line.ended())
            self._ending[task] = line
            task.add_done_callback(self._ending.pop)

    def stop(self) -> None:
        """Start no new batch; those in progress continue."""
        for line in self._lines.values():
            line.stop()

    async def close(self) -> None:
        """Wait for batches in progress: once the engines are gone, that does not take long."""
        self._sweeper.cancel()
        lines = [*self._lines.values(), *self._ending.values()]
        self._lines.clear()
        for line in lines:
            line.give_up()
        await asyncio.gather(*(line.ended() for line in lines))

    def _on_change(self, queue_id: int) -> None:
        for line in self._lines.values():
            if line.queue_id in (queue_id, 0):
                line.wake()

    async def _sweep(self) -> None:
        try:
            in_doubt = not await self.store.trusts_clock()
        except StorageFailed:
            in_doubt = True
        await asyncio.sleep(DOUBT_SECONDS if in_doubt else SWEEP_SECONDS)
        while True:
            try:
                await self.store.sweep()
            except StorageFailed as error:
                log.error("old messages could not be deleted: %s", error)
            except Exception:
                log.exception("old messages could not be deleted")
            await asyncio.sleep(SWEEP_SECONDS)


class _Line:
    """One queue and its consumer."""

    def __init__(self, events: Events, store: QueueStore, version: Version, consumer: QueueConsumer) -> None:
        self._events = events
        self._store = store
        self.version = version
        self.consumer = consumer
        self.queue_id = 0  # until it is known
        self._stopped = False
        self._gives_up = False
        self._changed = asyncio.Event()
        self._batches: set[asyncio.Task[None]] = set()
        self._task = asyncio.ensure_future(self._run())

    def change(self, version: Version, consumer: QueueConsumer) -> None:
        self.version, self.consumer = version, consumer
        self.wake()

    def wake(self) -> None:
        self._changed.set()

    def stop(self) -> None:
        """Start no new batch; those in progress finish. Not by cancelling: leased messages must be delivered."""
        self._stopped = True
        self.wake()

    def give_up(self) -> None:
        """The node stops: do not retry writes that fail now."""
        self._gives_up = True
        self.stop()

    async def ended(self) -> None:
        await self._task
        await asyncio.gather(*self._batches, return_exceptions=True)

    async def _run(self) -> None:
        while not self._stopped:
            self._changed.clear()
            try:
                seconds = await self._step()
            except StorageFailed as error:
                log.error("the queue %s cannot be delivered: %s", self.consumer.queue, error)
                seconds = AGAIN_SECONDS
            except Exception:
                log.exception("the queue %s cannot be delivered", self.consumer.queue)
                seconds = AGAIN_SECONDS
            if seconds:
                await _wait(self._changed, seconds)
                await asyncio.sleep(REST_SECONDS)  # many messages arrive at once: one check for all of them

    async def _step(self) -> float:
        """Start a batch if one is due; returns the seconds until the next check, 0 for at once."""
        queue = await self._store.find(self.version.tenant, self.consumer.queue)
        if queue is None:
            queue = await self._store.ensure(self.version.tenant, self.consumer.queue)
        self.queue_id = queue.id
        concurrency = self.consumer.max_concurrency or 4
        if queue.paused or len(self._batches) >= concurrency:
            return 3600.0  # resuming, and the end of a batch, wake the line
        size = self.consumer.max_batch_size
        due = await self._store.due(queue.id, size)
        if not due:
            return 3600.0
        now = self._store.now()
        ready = sum(at <= now for at in due)
        waited = now - due[0]
        patience = self.consumer.max_batch_timeout * 1000
        if ready < size and waited < patience:
            # Until the first message has waited long enough; further messages may fill the batch earlier.
            later = [at - now for at in due if at > now]
            return max(min([due[0] + patience - now, *later]) / 1000, 0.001)
        messages = await self._store.lease(queue.id, size)
        if messages:
            task = asyncio.ensure_future(self._deliver(self.version, self.consumer, queue.id, messages))
            self._batches.add(task)
            task.add_done_callback(self._batch_over)
        return 0

    def _batch_over(self, task: asyncio.Task[None]) -> None:
        self._batches.discard(task)
        self.wake()

    async def _deliver(self, version: Version, consumer: QueueConsumer, queue_id: int, messages: list[Message]) -> None:
        try:
            settlement = await self._ask(version, consumer, messages)
        except Exception:  # a bug of ours, perhaps caused by these messages: count an attempt and retry them
            log.exception("a batch of %s failed", consumer.queue)
            settlement = settle(consumer, messages, BatchAnswer(), True, self._store.now())
        while True:  # the handler ran: its decisions must survive a disk that is full for a while
            try:
                if settlement.dead and consumer.dead_letter_queue:
                    letters = await self._store.ensure(version.tenant, consumer.dead_letter_queue)
                    settlement = settlement._replace(dead_letters=letters.id)
                await self._store.settle(queue_id, settlement)
                return
            except StorageFailed as error:
                log.error("the result of a batch of %s cannot be stored: %s", consumer.queue, error)
            except Exception:
                log.exception("the result of a batch of %s cannot be stored", consumer.queue)
            if self._gives_up:
                return  # the next start delivers it again: at least once
            await asyncio.sleep(AGAIN_SECONDS)

    async def _ask(self, version: Version, consumer: QueueConsumer, messages: list[Message]) -> Settlement:
        """Run the handler with the messages; returns how to settle them."""
        meta = {
            "queue": consumer.queue,
            "messages": [
                {
                    "id": message.id,
                    "timestamp": message.sent_at,
                    "attempts": message.attempts,
                    "type": message.type,
                    "size": len(message.body),
                }
                for message in messages
            ],
        }
        body = b"".join(message.body for message in messages)
        label = f"QUEUE {consumer.queue}"
        said, failed = BatchAnswer(), True
        try:
            answer = await self._events.run(version, BATCH, label, meta, body)
            said, failed = read_said(answer), False
        except BadAnswer as error:
            log.warning(
                "the result of %s for a batch of %s is not valid: %s", version.worker_name, consumer.queue, error
            )
        except EventFailed as error:
            log.warning("a batch of %s failed in %s: %s", consumer.queue, version.worker_name, error)
            if error.was_refused:  # not the messages' fault: an overloaded or stopping node must not count an attempt
                visible_at = self._store.now() + int(1000 * max(error.failure.retry_after, AGAIN_SECONDS))
                return Settlement([], [], [], untried=[(message.seq, visible_at) for message in messages])
            said = error.said(BatchAnswer)
        return settle(consumer, messages, said, failed, self._store.now())


class BadAnswer(Exception):
    """The engine's result of a batch is malformed, so it is unknown which messages were acknowledged."""


def read_said(answer: bytes) -> BatchAnswer:
    """The engine's result of a batch; untrusted, a worker may have forged it."""
    try:
        return msgspec.json.decode(answer, type=BatchAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(error) from None


def settle(
    consumer: QueueConsumer, messages: Sequence[Message], said: BatchAnswer, failed: bool, now: int
) -> Settlement:
    """How to settle each message. A decision on the message itself comes first, then one for all, then success."""
    default = MessageVerdict(ack=not failed)
    done: list[int] = []
    again: list[tuple[int, int]] = []
    dead: list[int] = []
    for message in messages:
        verdict = said.messages.get(message.id) or said.all or default
        if verdict.ack:
            done.append(message.seq)
        elif message.attempts > consumer.max_retries:
            dead.append(message.seq)
        else:
            again.append((message.seq, now + int(1000 * _delay(consumer, verdict, message.attempts))))
    return Settlement(done, again, dead)


def _delay(consumer: QueueConsumer, verdict: MessageVerdict, attempts: int) -> float:
    """Seconds until the next attempt: from the handler, from the consumer's entry, or with exponential backoff."""
    if verdict.delay is not None:
        return min(max(verdict.delay, 0.0), MAX_DELAY)
    if consumer.retry_delay is not None:
        return consumer.retry_delay
    return float(min(BACK_OFF << min(attempts - 1, 20), MAX_BACK_OFF))


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
