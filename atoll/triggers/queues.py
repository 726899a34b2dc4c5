"""Delivers messages of queues to the workers that consume them, in batches.

One task per queue that has a consumer. A batch goes when it is full or when its first message has waited long enough;
several batches may be under way. What the handler said of each message is settled in one write: taken ones are gone,
others wait again, and those that failed too often go to the dead-letter queue or are dropped and counted. Whatever
goes wrong with a batch as a whole (the handler threw, the engine died, the node stops) makes its messages wait again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from atoll.bindings.queue.ops import MAX_DELAY, refuse_one_more
from atoll.bindings.queue.store import Message, QueueStore, Settlement
from atoll.engine.events import Calls, EventFailed, run_event
from atoll.errors import StorageFailed
from atoll.wire.generated import Event
from atoll.workers import QueueConsumer, Version

log = logging.getLogger("atoll.queues")

BACK_OFF = 10  # seconds before a second attempt, doubled for each further one
MAX_BACK_OFF = 600
SWEEP_SECONDS = 60.0
DOUBT_SECONDS = 3_600.0  # before the first sweep by a clock that leapt: if it is wrong, it has been set by then
REST_SECONDS = 0.002  # between two looks at a queue that had no batch ready
AGAIN_SECONDS = 2.0  # until the next try when the store fails


class Verdict(msgspec.Struct):
    """What a handler said of a message, or of all that it did not name."""

    ack: bool = True
    delay: float | None = None


class Said(msgspec.Struct):
    all: Verdict | None = None
    messages: dict[str, Verdict] = {}


class Key(NamedTuple):
    tenant: str
    queue: str


class QueueTriggers:
    def __init__(self, calls: Calls, store: QueueStore) -> None:
        self._calls = calls
        self.store = store
        self._lines: dict[Key, _Line] = {}
        self._ending: dict[asyncio.Task[None], _Line] = {}  # lines of which only batches under way are left
        self._of_worker: dict[str, list[Key]] = {}
        store.on_change(self._on_change)
        self._sweeper = asyncio.ensure_future(self._sweep())

    def consumer_of(self, tenant: str, queue: str) -> str | None:
        """The name of the worker that consumes a queue."""
        line = self._lines.get(Key(tenant, queue))
        return line.version.worker_name if line else None

    async def prepare(self, tenant: str, consumers: Sequence[QueueConsumer]) -> None:
        """Make the queues that consumers name and that are not there yet."""
        for consumer in consumers:
            for name in filter(None, (consumer.queue, consumer.dead_letter_queue)):
                if await self.store.find(tenant, name) is None:
                    await refuse_one_more(self.store, tenant)
                    await self.store.ensure(tenant, name)

    def put(self, version: Version, consumers: Sequence[QueueConsumer]) -> None:
        """This is the active version of its worker now, which consumes these queues."""
        wanted = {Key(version.tenant, consumer.queue): consumer for consumer in consumers}
        for key in self._of_worker.pop(version.worker_id, []):
            if key not in wanted:
                self._retire(key, version.worker_id)
        for key, consumer in wanted.items():
            line = self._lines.get(key)
            if line is None:
                self._lines[key] = _Line(self._calls, self.store, version, consumer)
            else:
                line.change(version, consumer)
        if wanted:
            self._of_worker[version.worker_id] = list(wanted)

    def drop(self, worker_id: str) -> None:
        for key in self._of_worker.pop(worker_id, []):
            self._retire(key, worker_id)

    def _retire(self, key: Key, worker_id: str) -> None:
        """A worker consumes a queue no more; another one may by now."""
        line = self._lines.get(key)
        if line is not None and line.version.worker_id == worker_id:
            del self._lines[key]
            line.stop()
            task = asyncio.ensure_future(line.ended())
            self._ending[task] = line
            task.add_done_callback(self._ending.pop)

    def stop(self) -> None:
        """Begin nothing more; batches under way go on."""
        for line in self._lines.values():
            line.stop()

    async def close(self) -> None:
        """Wait for what is under way: once the engines are gone, that is not long."""
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

    def __init__(self, calls: Calls, store: QueueStore, version: Version, consumer: QueueConsumer) -> None:
        self._calls = calls
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
        """Begin nothing more; batches under way finish. Not by cancelling: what is being leased must be delivered."""
        self._stopped = True
        self.wake()

    def give_up(self) -> None:
        """The node stops: what cannot be stored now never will be."""
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
                await asyncio.sleep(REST_SECONDS)  # many messages come at once: one look for all of them

    async def _step(self) -> float:
        """Start a batch if one is due; returns how long nothing will be, 0 for look again."""
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
            # Until the first has waited long enough; a message that comes or falls due may fill the batch before.
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
        except Exception:  # a bug of ours, perhaps with just these: they count an attempt, and nobody keeps them
            log.exception("a batch of %s failed", consumer.queue)
            settlement = settle(consumer, messages, Said(), True, self._store.now())
        while True:  # a consumer was told: what it said must not be lost to a disk that is full for a while
            try:
                if settlement.dead and consumer.dead_letter_queue:
                    letters = await self._store.ensure(version.tenant, consumer.dead_letter_queue)
                    settlement = settlement._replace(dead_letters=letters.id)
                await self._store.settle(queue_id, settlement)
                return
            except StorageFailed as error:
                log.error("what became of a batch of %s cannot be stored: %s", consumer.queue, error)
            except Exception:
                log.exception("what became of a batch of %s cannot be stored", consumer.queue)
            if self._gives_up:
                return  # the next start delivers it again: at least once
            await asyncio.sleep(AGAIN_SECONDS)

    async def _ask(self, version: Version, consumer: QueueConsumer, messages: list[Message]) -> Settlement:
        """Show the messages to the handler; what is to become of them by what it says."""
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
        said, failed = Said(), True
        try:
            answer = await run_event(self._calls, version, Event.QUEUE, label, meta, body)
            said, failed = read_said(answer), False
        except BadAnswer as error:
            log.warning("what %s says of a batch of %s makes no sense: %s", version.worker_name, consumer.queue, error)
        except EventFailed as error:
            log.warning("a batch of %s failed in %s: %s", consumer.queue, version.worker_name, error)
            if error.was_refused:  # no fault of the messages: a node that is full, or stops, must not use them up
                visible_at = self._store.now() + int(1000 * max(error.failure.retry_after, AGAIN_SECONDS))
                return Settlement([], [], [], untried=[(message.seq, visible_at) for message in messages])
            said = error.said(Said)
        return settle(consumer, messages, said, failed, self._store.now())


class BadAnswer(Exception):
    """What an engine tells of a batch cannot be read: nobody knows which messages were taken."""


def read_said(answer: bytes) -> Said:
    """What an engine tells; a worker may have made it up."""
    try:
        return msgspec.json.decode(answer, type=Said)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswer(error) from None


def settle(consumer: QueueConsumer, messages: Sequence[Message], said: Said, failed: bool, now: int) -> Settlement:
    """What is to become of each message. A word for the message itself counts most, then one for all, then success."""
    default = Verdict(ack=not failed)
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


def _delay(consumer: QueueConsumer, verdict: Verdict, attempts: int) -> float:
    """Seconds until the next attempt: what the handler said, what the consumer was deployed with, or growing ones."""
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
