"""`queue_consumers` of a deploy: the queues that a worker consumes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from atoll.api.refusals import bad_body, refuse_many
from atoll.manifests.trigger_fields import TriggerField

QUEUE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

MAX_CONSUMERS = 100
# (lowest, highest) of each number in a queue consumer
CONSUMER_BOUNDS: dict[str, tuple[int, int]] = {
    "max_batch_size": (1, 100),
    "max_batch_timeout": (0, 60),
    "max_retries": (0, 100),
    "retry_delay": (0, 86_400),
    "max_concurrency": (1, 250),
}


class QueueConsumer(Struct, frozen=True):
    """A queue that a worker consumes, and how. Times are seconds."""

    queue: str
    max_batch_size: int = 10
    max_batch_timeout: float = 5
    max_retries: int = 3
    dead_letter_queue: str | None = None  # where a message goes after the last retry; None: it is deleted
    retry_delay: float | None = None  # None: exponential backoff
    max_concurrency: int | None = None  # concurrent batches; None: the node decides


def checked(consumers: Sequence[QueueConsumer]) -> tuple[QueueConsumer, ...]:
    refuse_many("queue_consumers", consumers, MAX_CONSUMERS)
    seen: set[str] = set()
    for consumer in consumers:
        for queue in (consumer.queue, consumer.dead_letter_queue):
            if queue is not None and not QUEUE_NAME.fullmatch(queue):
                raise bad_body(
                    f"`queue_consumers` names the queue {queue[:80]!r}",
                    "use 1 to 63 lower-case letters, digits and dashes",
                )
        if consumer.queue == consumer.dead_letter_queue:
            raise bad_body(
                f"`{consumer.queue}` is its own dead-letter queue",
                "name another queue: failed messages would return without end",
            )
        if consumer.queue in seen:
            raise bad_body(f"`queue_consumers` has `{consumer.queue}` twice", "a worker can consume a queue once")
        seen.add(consumer.queue)
        for name, (low, high) in CONSUMER_BOUNDS.items():
            value = getattr(consumer, name)
            if value is not None and not low <= value <= high:
                raise bad_body(f"`queue_consumers.{name}` is {value}, but must be from {low} to {high}")
    return tuple(consumers)


TRIGGER = TriggerField(name="queue_consumers", entry=QueueConsumer, handler="queue", checked=checked)
