"""analytics_engine: data points of a worker, stored for queries."""

from __future__ import annotations

import re
import struct
import time
from typing import Any

import msgspec

from atoll.bindings.analytics_engine.limits import MAX_BLOB_BYTES, MAX_BLOBS, MAX_DOUBLES, MAX_INDEX_BYTES
from atoll.bindings.analytics_engine.points import DataPoint, DataPoints
from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.services import Services
from atoll.errors import InvalidArgument

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
NAME_HINT = "use up to 100 letters, digits, dashes and _, and begin with a letter or _"
DONE = Reply()


class DatasetEntry(msgspec.Struct, forbid_unknown_fields=True):
    dataset: str


class AnalyticsEngine(Binding):
    kind = "analytics_engine"
    Entry = DatasetEntry

    def __init__(self, services: Services) -> None:
        settings = services.settings
        self.points = DataPoints(
            settings.data / "analytics.db", settings.value("analytics_bytes"), settings.value("analytics_days")
        )

    def claim(self, tenant: str, entry: DatasetEntry) -> str:
        if not NAME.fullmatch(entry.dataset):
            raise InvalidArgument(f"the dataset is named {entry.dataset!r:.80}: {NAME_HINT}")
        return entry.dataset

    async def prepare(self, tenant: str, resource: str) -> None:
        await self.points.make(tenant, resource)

    async def holdings(self, tenant: str) -> list[str]:
        return [each.name for each in self.points.of_tenant(tenant)]

    async def forget(self, tenant: str) -> None:
        for each in self.points.of_tenant(tenant):
            await self.points.delete(each)

    async def close(self) -> None:
        await self.points.close()

    @op("analytics_engine.write")
    def write(self, call: OpCall) -> Reply:
        """Store a data point soon: the reply does not wait for the disk."""
        doubles, index, blobs = _point_of(call.meta, call.body)
        point = DataPoint(int(time.time()), index, blobs, doubles)
        self.points.add(call.scope.version.tenant, call.grant.resource, point, len(call.body))
        return DONE


def _point_of(meta: dict[str, Any], body: bytes) -> tuple[list[float], str, list[str | None]]:
    """The point in an op of the worker: a number of doubles, and the sizes of the index and of each blob."""
    count, index_size, sizes = meta.get("doubles"), meta.get("index"), meta.get("blobs")
    if type(count) is not int or not 0 <= count <= MAX_DOUBLES or not isinstance(sizes, list) or len(sizes) > MAX_BLOBS:
        raise InvalidArgument("the data point has no valid form")
    known = [8 * count]
    for size in (index_size, *sizes):
        if size is not None:
            if type(size) is not int or not 0 <= size <= MAX_BLOB_BYTES:
                raise InvalidArgument("the data point has no valid form")
            known.append(size)
    text_bytes = sum(known) - 8 * count
    if sum(known) != len(body) or (index_size or 0) > MAX_INDEX_BYTES or text_bytes > MAX_BLOB_BYTES + MAX_INDEX_BYTES:
        raise InvalidArgument("the data point has no valid form")
    doubles = list(struct.unpack_from(f"<{count}d", body))
    at, texts = 8 * count, list[str | None]()
    for size in (index_size, *sizes):
        texts.append(None if size is None else body[at : at + size].decode("utf-8", "replace"))
        at += size or 0
    return doubles, texts[0] or "", texts[1:]
