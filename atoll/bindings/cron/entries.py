"""`crons` of a deploy: when its scheduled() handler runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from atoll.api.refusals import bad_body, refuse_many
from atoll.manifests.trigger_fields import TriggerField

MAX_CRONS = 100
MAX_CRON = 200  # characters
CRON = re.compile(r"[ -~]+")


def checked(crons: Sequence[str]) -> tuple[str, ...]:
    refuse_many("crons", crons, MAX_CRONS)
    for cron in crons:
        if len(cron) > MAX_CRON or not CRON.fullmatch(cron) or len(cron.split()) != 5:
            raise bad_body(
                f"`crons` has {cron[:80]!r}", "write minute, hour, day, month and weekday, like `*/5 * * * *`"
            )
    return tuple(dict.fromkeys(" ".join(cron.split()) for cron in crons))


def run_now(worker: str, cron: str, query: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    told, time = cron or query.get("cron", ""), query.get("time", "")
    body: dict[str, Any] = {"cron": told} if told else {}
    if time:
        try:
            body["scheduled_time"] = int(float(time))
        except (ValueError, OverflowError):
            raise ValueError("`time` is milliseconds since 1970") from None
    return f"/api/workers/{worker}/crons/run", body


TRIGGER = TriggerField(name="crons", entry=str, handler="scheduled", checked=checked, run_now=run_now)
