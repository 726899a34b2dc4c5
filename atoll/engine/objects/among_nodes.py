"""The objects of a node that shares them with others: what the end of its lease means for those that live here.

A node answers for its objects as long as its lease holds. After that another node may have them. So the lease is looked
at wherever something of an object leaves an engine (output_gate.py), and when it has ended, all objects are reset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.engine.objects import failures
from atoll.engine.objects.live_object import OPENING

if TYPE_CHECKING:
    from atoll.engine.objects.runtime import ObjectRuntime
    from atoll.objects.store import SharedStorage


class AmongNodes:
    def __init__(self, runtime: ObjectRuntime, store: SharedStorage) -> None:
        self._runtime = runtime
        self._store = store
        self.losses = 0  # what was opened before the last one may not be used
        store.on_lost = self._lose_all
        store.is_wanted = lambda key: key in runtime.live or runtime.sockets(*key) > 0

    def check_lease(self) -> None:
        if not self._store.holds():
            self._lose_all()

    def _lose_all(self) -> None:
        """Reset every object. Clients of hibernatable WebSockets connect again, and reach the node that has it."""
        self.losses += 1
        for live in list(self._runtime.live.values()):
            if live.state != OPENING:
                self._runtime.end(live, failures.LOST)
        self._runtime.hibernation.leave()
