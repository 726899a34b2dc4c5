"""The Durable Objects of a node, from its start to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from atoll.bindings.base import Binding
from atoll.config import Settings
from atoll.engine.loaded.load_frames import OWN
from atoll.engine.objects.alarms import AlarmClock
from atoll.engine.objects.among_nodes import linked
from atoll.engine.objects.runtime import ObjectRuntime
from atoll.engine.pool import Pool
from atoll.errors import StartError
from atoll.holdings import Holdings
from atoll.objects.history import HistoryBounds
from atoll.objects.local import LocalObjects
from atoll.objects.store import ObjectStorage
from atoll.workers import Grant, Version

if TYPE_CHECKING:
    from atoll.cluster.cluster import Cluster


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

    async def start(self, settings: Settings, undo: AsyncExitStack, cluster: Cluster | None = None) -> None:
        """Open what is stored. Alarms are delivered later, once the workers are restored.

        `cluster`: the nodes that share the objects, if this one is not by itself.
        """
        self.runtime.start(await self._open(settings, undo, cluster))
        if self.runtime.among is not None and cluster is not None:
            undo.push_async_callback((await linked(settings, cluster, self.runtime.among)).close)
        undo.push_async_callback(self.runtime.close)
        undo.push_async_callback(self.alarms.close)

    async def _open(self, settings: Settings, undo: AsyncExitStack, cluster: Cluster | None) -> ObjectStorage:
        if cluster is not None and not cluster.is_alone:
            from atoll.cluster.moving.staying import kept_objects
            from atoll.objects.shared.store import SharedObjects

            if kept := await asyncio.to_thread(kept_objects, settings.data):
                raise StartError(
                    f"the data folder {settings.data} has {' and '.join(kept)} of this node alone",
                    "start it with --only-node on to use them, or choose another folder with --data",
                )
            shared = await SharedObjects.start(cluster.postgres, cluster.members, settings.data)
            undo.push_async_callback(shared.stop)
            cluster.when_renewed(shared.begin_look)
            return shared
        bounds = HistoryBounds(
            settings.object_history_days, settings.object_history_bytes, settings.object_history_node_bytes
        )
        store = await LocalObjects.start(settings.data, bounds=bounds)
        undo.push_async_callback(store.stop)
        if cluster is not None:
            from atoll.objects.shared import kept_alone

            name = cluster.members.name
            await kept_alone.keep(cluster.postgres, name)

            async def stop_keeping() -> None:
                if store.is_empty:
                    await kept_alone.stop_keeping(cluster.postgres, name)

            undo.push_async_callback(stop_keeping)
        return store


def facts_of(bindings: Mapping[str, Binding], version: Version, grant: Grant) -> Mapping[str, Any] | None:
    """What the JavaScript half of a binding knows besides its name; of OWN, what all halves know without one."""
    if grant is not OWN:
        return bindings[grant.kind].facts(version, grant)
    found = {kind: binding.own_facts(version) for kind, binding in bindings.items()}
    return {kind: facts for kind, facts in found.items() if facts is not None} or None
