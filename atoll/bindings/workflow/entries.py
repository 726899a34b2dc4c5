"""`workflows` of a deploy: the workflows whose code the worker has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from atoll.api.refusals import bad_body, refuse_many
from atoll.bindings.durable_object.entries import CLASS_NAME
from atoll.manifests.trigger_fields import TriggerField

MAX_WORKFLOWS = 100  # of a worker
MAX_STEPS = 25_000
DAY_MS = 86_400_000
MAX_KEPT_MS = 30 * DAY_MS
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
NAME_HINT = "use up to 64 letters, digits, dashes and _"
UNITS = {"second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": DAY_MS, "week": 7 * DAY_MS, "month": 30 * DAY_MS}
DURATION = re.compile(r"(\d{1,9}) *(second|minute|hour|day|week|month)s?")


class Workflow(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    name: str
    class_name: str
    steps: int | None = None  # the most that an instance may have
    success_retention: str | int | None = None  # how long an instance that has ended is kept
    error_retention: str | int | None = None


def ms_of(duration: str | int) -> int:
    """ValueError if it is not a duration."""
    if isinstance(duration, int) and not isinstance(duration, bool) and duration >= 0:
        return duration
    found = DURATION.fullmatch(duration.strip()) if isinstance(duration, str) else None
    if found is None:
        raise ValueError
    return int(found[1]) * UNITS[found[2]]


def checked(workflows: Sequence[Workflow]) -> tuple[Workflow, ...]:
    refuse_many("workflows", workflows, MAX_WORKFLOWS)
    seen: set[str] = set()
    for each in workflows:
        if not NAME.fullmatch(each.name):
            raise bad_body(f"a workflow is named {each.name[:80]!r}", NAME_HINT)
        if each.name in seen:
            raise bad_body(f"two workflows are named `{each.name}`", "give each a name of its own")
        seen.add(each.name)
        if not CLASS_NAME.fullmatch(each.class_name):
            raise bad_body(
                f"the workflow `{each.name}` names the class {each.class_name[:80]!r}", "use an exported class"
            )
        if each.steps is not None and not 1 <= each.steps <= MAX_STEPS:
            raise bad_body(f"the workflow `{each.name}` may have {each.steps} steps", f"use 1 to {MAX_STEPS}")
        for kept in (each.success_retention, each.error_retention):
            _check_kept(each.name, kept)
    return tuple(workflows)


def _check_kept(name: str, kept: Any) -> None:
    try:
        if kept is None or ms_of(kept) <= MAX_KEPT_MS:
            return
    except ValueError:
        pass
    raise bad_body(f"the workflow `{name}` keeps its instances for {kept!r:.80}", 'use at most "30 days"')


TRIGGER = TriggerField(name="workflows", entry=Workflow, handler="", checked=checked)
