"""Counts in memory, by tenant and name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from atoll.bindings.tally.watches import TallyTriggers

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.errors import BindingRefused, InvalidArgument

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class TallyEntry(msgspec.Struct, forbid_unknown_fields=True):
    tally: str


class TallyBinding(Binding):
    kind = "tally"
    Entry = TallyEntry

    def __init__(self, step: int, trigger: TallyTriggers) -> None:
        self._step = step
        self.trigger: TallyTriggers = trigger
        self._most: dict[str, int | None] = {}
        self.counts: dict[str, Counter[str]] = {}  # by tenant

    def claim(self, tenant: str, entry: TallyEntry) -> str:
        if not entry.tally:
            raise InvalidArgument("`tally` is empty")
        return entry.tally

    async def usage(self, tenant: str) -> dict[str, int]:
        return {"tallies": len(self.counts.get(tenant, ()))}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        self._most[tenant] = most["tallies"]

    @op("tally.add")
    def add(self, call: OpCall) -> Reply:
        """Add once; returns the new count."""
        tenant, name = call.scope.version.tenant, call.grant.resource
        counts = self.counts.setdefault(tenant, Counter())
        most = self._most.get(tenant)
        if name not in counts and most is not None and len(counts) >= most:
            raise BindingRefused(f"403 tally quota reached ({most} of {most})")
        counts[name] += self._step
        self.trigger.changed(tenant, name, counts[name])
        return Reply({"count": counts[name]})

    async def metrics(self) -> Sequence[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        return [GaugeMetricFamily("atoll_tallies", "Tallies.", sum(map(len, self.counts.values())))]
