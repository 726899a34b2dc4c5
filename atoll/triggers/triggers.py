"""All triggers of a node behind one door: a deploy asks whether they can be, a switch tells them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from atoll.triggers.cron import CronTriggers
from atoll.triggers.expression import BadCron, parse_cron
from atoll.triggers.queues import QueueTriggers
from atoll.triggers.tail import TailTriggers
from atoll.workers import Version


class BadTrigger(ValueError):
    """A version wants what cannot be; `hint` says what to do."""

    def __init__(self, message: str, hint: str, *, is_taken: bool = False) -> None:
        super().__init__(message)
        self.hint = hint
        self.is_taken = is_taken  # another worker has it


class Triggers(Struct, frozen=True):
    crons: CronTriggers
    queues: QueueTriggers
    tails: TailTriggers

    def check(self, version: Version, handlers: Sequence[str]) -> None:
        """BadTrigger if a version cannot have the triggers it asks for."""
        for cron in version.crons:
            try:
                parse_cron(cron)
            except BadCron as error:
                raise BadTrigger(f"`crons`: {error}", "fields are minute hour day month weekday, in UTC") from None
        _require(version.crons, "crons", "scheduled", handlers)
        _require(version.queue_consumers, "queue_consumers", "queue", handlers)
        for consumer in version.queue_consumers:
            owner = self.queues.consumer_of(version.tenant, consumer.queue)
            if owner not in (None, version.worker_name):
                raise BadTrigger(
                    f"the queue `{consumer.queue}` is consumed by the worker `{owner}`",
                    "a queue has one consumer: remove it there first",
                    is_taken=True,
                )

    async def prepare(self, version: Version) -> None:
        """It is about to be deployed: make what it names and is not there yet."""
        await self.queues.prepare(version.tenant, version.queue_consumers)

    def put(self, version: Version) -> None:
        """This is the active version of its worker now."""
        self.crons.put(version, version.crons)
        self.queues.put(version, version.queue_consumers)

    async def drop(self, worker_id: str) -> None:
        """The worker is gone."""
        self.queues.drop(worker_id)
        await self.crons.drop(worker_id)

    def stop(self) -> None:
        """Begin nothing more."""
        self.crons.stop()
        self.queues.stop()

    async def close(self) -> None:
        await asyncio.gather(self.crons.close(), self.queues.close(), self.tails.close())


def _require(wanted: Sequence[object], field: str, handler: str, handlers: Sequence[str]) -> None:
    if wanted and handler not in handlers:
        raise BadTrigger(
            f"`{field}` is set, but the worker has no {handler}() handler", f"export one, or leave out `{field}`"
        )
