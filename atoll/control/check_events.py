"""What a deploy says besides its code: events it wants, flags, words about itself. Pure, as check.py is.

Whether a cron can be understood and a queue exists is seen where crons and queues are; here are shapes and bounds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from atoll.control.check import MAX_PATH, NAME, bad_body
from atoll.control.refusals import ApiCode, Refused
from atoll.workers import Module, QueueConsumer, TailConsumer

MAX_FLAGS = 100
MAX_CRONS = 100
MAX_CONSUMERS = 100
MAX_TAILS = 10
MAX_MESSAGE = 1_000
MAX_TAG = 100
MAX_CRON = 200

FLAG = re.compile(r"[a-z0-9_]{1,100}")
QUEUE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
CRON = re.compile(r"[ -~]+")
CONTROLS = re.compile(r"[\x00-\x1f\x7f]")

# (lowest, highest) of each number in a queue consumer
CONSUMER_BOUNDS: dict[str, tuple[int, int]] = {
    "max_batch_size": (1, 100),
    "max_batch_timeout": (0, 60),
    "max_retries": (0, 100),
    "retry_delay": (0, 86_400),
    "max_concurrency": (1, 250),
}


def checked_flags(flags: Sequence[str]) -> tuple[str, ...]:
    _refuse_many("compatibility_flags", flags, MAX_FLAGS)
    for flag in flags:
        if not FLAG.fullmatch(flag):
            raise bad_body(f"`compatibility_flags` has {flag[:80]!r}", "flags look like nodejs_compat")
    return tuple(dict.fromkeys(flags))


def checked_crons(crons: Sequence[str]) -> tuple[str, ...]:
    _refuse_many("crons", crons, MAX_CRONS)
    for cron in crons:
        if len(cron) > MAX_CRON or not CRON.fullmatch(cron) or len(cron.split()) != 5:
            raise bad_body(
                f"`crons` has {cron[:80]!r}", "write minute, hour, day, month and weekday, like `*/5 * * * *`"
            )
    return tuple(dict.fromkeys(" ".join(cron.split()) for cron in crons))


def checked_consumers(consumers: Sequence[QueueConsumer]) -> tuple[QueueConsumer, ...]:
    _refuse_many("queue_consumers", consumers, MAX_CONSUMERS)
    seen: set[str] = set()
    for consumer in consumers:
        for queue in (consumer.queue, consumer.dead_letter_queue):
            if queue is not None and not QUEUE.fullmatch(queue):
                raise bad_body(
                    f"`queue_consumers` names the queue {queue[:80]!r}",
                    "use 1 to 63 lower-case letters, digits and dashes",
                )
        if consumer.queue == consumer.dead_letter_queue:
            raise bad_body(
                f"`{consumer.queue}` is its own dead-letter queue", "what fails would come for ever: name another one"
            )
        if consumer.queue in seen:
            raise bad_body(f"`queue_consumers` has `{consumer.queue}` twice", "a worker takes a queue once")
        seen.add(consumer.queue)
        for name, (low, high) in CONSUMER_BOUNDS.items():
            value = getattr(consumer, name)
            if value is not None and not low <= value <= high:
                raise bad_body(f"`queue_consumers.{name}` is {value}, but must be from {low} to {high}")
    return tuple(consumers)


def checked_tails(tails: Sequence[TailConsumer]) -> tuple[TailConsumer, ...]:
    _refuse_many("tail_consumers", tails, MAX_TAILS)
    for tail in tails:
        if not NAME.fullmatch(tail.service):
            raise bad_body(f"`tail_consumers` names the worker {tail.service[:80]!r}", "use the name of a worker")
    return tuple(dict.fromkeys(tails))


def checked_maps(maps: Mapping[str, str], modules: Sequence[Module], max_bytes: int) -> dict[str, bytes]:
    """Source maps by the path of their module. They are for stacks that people read, never for the engine."""
    paths = {module.path for module in modules}
    for path in maps:
        if path not in paths:
            raise bad_body(f"`source_maps` has {path[:MAX_PATH]!r}, which is not one of `modules`")
    found = {path: text.encode() for path, text in maps.items()}
    size = sum(map(len, found.values()))
    if size > max_bytes:
        raise Refused(
            ApiCode.TOO_LARGE,
            f"the source maps have {size:,} bytes, more than the {max_bytes:,} this node allows",
            "leave out sourcesContent",
        )
    return found


def checked_words(field: str, text: str, limit: int) -> str:
    if len(text) > limit or CONTROLS.search(text.replace("\n", " ")):
        raise bad_body(f"`{field}` is longer than {limit} characters or has control characters")
    return text


def _refuse_many(field: str, entries: Sequence[object], limit: int) -> None:
    if len(entries) > limit:
        raise bad_body(f"`{field}` has {len(entries)} entries, more than {limit}")
