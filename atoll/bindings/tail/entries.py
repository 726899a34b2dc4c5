"""`tail_consumers` of a deploy: the workers that receive a record of every call of this one."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from atoll.api.refusals import bad_body, refuse_many
from atoll.manifests.trigger_fields import TriggerField
from atoll.workers import WORKER_NAME

MAX_TAILS = 10


class TailConsumer(Struct, frozen=True):
    """A worker that receives a record of every call of this one."""

    service: str


def checked(tails: Sequence[TailConsumer]) -> tuple[TailConsumer, ...]:
    refuse_many("tail_consumers", tails, MAX_TAILS)
    for tail in tails:
        if not WORKER_NAME.fullmatch(tail.service):
            raise bad_body(f"`tail_consumers` names the worker {tail.service[:80]!r}", "use the name of a worker")
    return tuple(dict.fromkeys(tails))


TRIGGER = TriggerField(
    name="tail_consumers",
    entry=TailConsumer,
    handler="tail",
    checked=checked,
    names_worker=lambda entry: entry["service"],
)
