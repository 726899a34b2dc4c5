"""Cron triggers as a binding without ops: only a trigger."""

from __future__ import annotations

from atoll.bindings.base import Binding
from atoll.bindings.cron.clock import CronTriggers


class CronBinding(Binding):
    kind = "cron"
    ambient = True

    def __init__(self, trigger: CronTriggers) -> None:
        self.trigger: CronTriggers = trigger
