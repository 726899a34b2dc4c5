"""Settings of buckets, each a small JSON document by its kind. They live in the index and go with their bucket."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

import msgspec

from atoll.bindings.r2.records import BucketRecords
from atoll.bindings.r2.store import BucketPlace
from atoll.errors import StorageFailed


class Setting(msgspec.Struct):
    """A document."""

    KIND: ClassVar[str]


S = TypeVar("S", bound=Setting)


class BucketSettings:
    def __init__(self, records: BucketRecords) -> None:
        self._records = records

    async def find(self, place: BucketPlace, shape: type[S]) -> S | None:
        found = await self._records.setting(place, shape.KIND)
        return None if found is None else read_setting(found, shape)

    async def of_name(self, bucket: str, shape: type[S]) -> list[S]:
        """The settings of all buckets of this name, of any tenant."""
        return [read_setting(value, shape) for value in await self._records.settings_named(bucket, shape.KIND)]

    async def all(self, shape: type[S]) -> list[tuple[BucketPlace, S]]:
        found = await self._records.settings_of(shape.KIND)
        return [(place, read_setting(value, shape)) for place, value in found]

    async def change(self, place: BucketPlace, shape: type[S], change: Callable[[S | None], S | None]) -> S | None:
        """Replace a setting by what `change` makes of it; None removes it. NoBucket if there is no bucket."""
        changed: S | None = None

        def act(old: str | None) -> str | None:
            nonlocal changed
            changed = change(None if old is None else read_setting(old, shape))
            return None if changed is None else msgspec.json.encode(changed).decode()

        await self._records.change_setting(place, shape.KIND, act)
        return changed


def read_setting(value: str, shape: type[S]) -> S:
    try:
        return msgspec.json.decode(value, type=shape)
    except (msgspec.DecodeError, RecursionError):
        raise StorageFailed("the storage of this node is damaged") from None
