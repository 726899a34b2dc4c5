"""Settings of buckets, each a small JSON document by its kind. They live in the index and go with their bucket."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

import apsw
import msgspec

from atoll.bindings.r2.store import BucketPlace, NoBucket
from atoll.db.sqlite import Database, rows
from atoll.errors import StorageFailed

FIND_BUCKET = "SELECT id FROM buckets WHERE tenant = ? AND name = ?"
READ = "SELECT value FROM buckets JOIN bucket_settings ON bucket = id AND kind = ? WHERE tenant = ? AND name = ?"
READ_NAMED = "SELECT value FROM buckets JOIN bucket_settings ON bucket = id AND kind = ? WHERE name = ?"
READ_ALL = "SELECT tenant, name, value FROM bucket_settings JOIN buckets ON id = bucket WHERE kind = ?"
OF_BUCKET = "SELECT value FROM bucket_settings WHERE bucket = ? AND kind = ?"
WRITE = "INSERT OR REPLACE INTO bucket_settings (bucket, kind, value) VALUES (?, ?, ?)"
DELETE = "DELETE FROM bucket_settings WHERE bucket = ? AND kind = ?"


class Setting(msgspec.Struct):
    """A document."""

    KIND: ClassVar[str]


S = TypeVar("S", bound=Setting)


class BucketSettings:
    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, place: BucketPlace, shape: type[S]) -> S | None:
        """The setting of a bucket. A lookup by key, in place."""
        found = self._database.read(lambda connection: rows(connection, str, READ, shape.KIND, *place))
        return _read(found[0], shape) if found else None

    def of_name(self, bucket: str, shape: type[S]) -> list[S]:
        """The settings of all buckets of this name, of any tenant."""
        found = self._database.read(lambda connection: rows(connection, str, READ_NAMED, shape.KIND, bucket))
        return [_read(value, shape) for value in found]

    def all(self, shape: type[S]) -> list[tuple[BucketPlace, S]]:
        def read(tenant: str, name: str, value: str) -> tuple[BucketPlace, S]:
            return BucketPlace(tenant, name), _read(value, shape)

        return self._database.read(lambda connection: rows(connection, read, READ_ALL, shape.KIND))

    async def change(self, place: BucketPlace, shape: type[S], change: Callable[[S | None], S | None]) -> S | None:
        """Replace a setting by what `change` makes of it; None removes it. NoBucket if there is no bucket."""

        def act(connection: apsw.Connection) -> S | None:
            number = bucket_id(connection, place)
            changed = change(setting_of(connection, number, shape))
            if changed is None:
                connection.execute(DELETE, (number, shape.KIND))
            else:
                connection.execute(WRITE, (number, shape.KIND, msgspec.json.encode(changed).decode()))
            return changed

        return await self._database.write(act)


def bucket_id(connection: apsw.Connection, place: BucketPlace) -> int:
    found = rows(connection, int, FIND_BUCKET, *place)
    if not found:
        raise NoBucket
    return found[0]


def setting_of(connection: apsw.Connection, bucket: int, shape: type[S]) -> S | None:
    found = rows(connection, str, OF_BUCKET, bucket, shape.KIND)
    return _read(found[0], shape) if found else None


def _read(value: str, shape: type[S]) -> S:
    try:
        return msgspec.json.decode(value, type=shape)
    except (msgspec.DecodeError, RecursionError):
        raise StorageFailed("the storage of this node is damaged") from None
