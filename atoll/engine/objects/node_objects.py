"""The Durable Objects of a node, from its start to its end."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from atoll.bindings.base import Binding
from atoll.config import Settings
from atoll.engine.loaded.load_frames import OWN
from atoll.engine.objects.alarms import AlarmClock
from atoll.engine.objects.runtime import ObjectRuntime
from atoll.engine.pool import Pool
from atoll.holdings import Holdings
from atoll.objects.history import HistoryBounds
from atoll.objects.local import LocalObjects
from atoll.workers import Grant, Version


class NodeObjects:
    def __init__(self, holdings: Holdings | None = None) -> None:
        self.runtime = ObjectRuntime(holdings=holdings)
        self.alarms = AlarmClock(self.runtime)

    def join(self, pool: Pool, bindings: Mapping[str, Binding]) -> None:
        """The pool exists. Each binding tells its JavaScript half what it must know, such as the keys of ids."""
        self.runtime.pool = pool
        self.runtime.stop_alarms = self._stop
        pool.loader.use_facts(lambda version, grant: facts_of(bindings, version, grant))

    def _stop(self) -> None:
        """The node drains: it begins no alarms, and does not wait for timers."""
        self.alarms.stop()
        self.runtime.stop_timers()

    async def start(self, settings: Settings, undo: AsyncExitStack) -> None:
        """Open what is stored. Alarms are delivered later, once the workers are restored."""
        bounds = HistoryBounds(
            settings.object_history_days, settings.object_history_bytes, settings.object_history_node_bytes
        )
        store = await LocalObjects.start(settings.data, bounds=bounds)
        undo.push_async_callback(store.stop)
        self.runtime.start(store)
        undo.push_async_callback(self.runtime.close)
        undo.push_async_callback(self.alarms.close)


def facts_of(bindings: Mapping[str, Binding], version: Version, grant: Grant) -> Mapping[str, Any] | None:
    """What the JavaScript half of a binding knows besides its name; of OWN, what all halves know without one."""
    if grant is not OWN:
        return bindings[grant.kind].facts(version, grant)
    found = {kind: binding.own_facts(version) for kind, binding in bindings.items()}
    return {kind: facts for kind, facts in found.items() if facts is not None} or None
