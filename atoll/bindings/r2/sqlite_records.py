"""Settings, public hosts, notifications and access keys in the index of one node. Access keys are in memory too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import apsw

from atoll.bindings.r2.records import NOTIFICATIONS, Credential, Destination, Noting
from atoll.bindings.r2.store import BucketPlace, Change, NoBucket
from atoll.db.sqlite import Database, rows

FIND_BUCKET = "SELECT id FROM buckets WHERE tenant = ? AND name = ?"
READ = "SELECT value FROM buckets JOIN bucket_settings ON bucket = id AND kind = ? WHERE tenant = ? AND name = ?"
READ_NAMED = "SELECT value FROM buckets JOIN bucket_settings ON bucket = id AND kind = ? WHERE name = ?"
READ_ALL = "SELECT tenant, name, value FROM bucket_settings JOIN buckets ON id = bucket WHERE kind = ?"
OF_BUCKET = "SELECT value FROM bucket_settings WHERE bucket = ? AND kind = ?"
WRITE = "INSERT OR REPLACE INTO bucket_settings (bucket, kind, value) VALUES (?, ?, ?)"
DELETE = "DELETE FROM bucket_settings WHERE bucket = ? AND kind = ?"

LABEL = "SELECT label FROM public_buckets JOIN buckets ON id = bucket WHERE tenant = ? AND name = ?"
PLACE = "SELECT tenant, name FROM public_buckets JOIN buckets ON id = bucket WHERE label = ?"

WAITING = "SELECT coalesce(sum(events), 0) FROM waiting_events WHERE tenant = ?"
ADD_EVENT = "INSERT INTO events (tenant, queue, body) VALUES (?, ?, ?)"
QUEUES = "SELECT tenant, queue FROM waiting_events"
OLDEST = "SELECT id, body FROM events WHERE tenant = ? AND queue = ? ORDER BY id LIMIT ?"

CREDENTIALS = "SELECT access_key, tenant, name, bucket, can_write, sealed, created_at FROM credentials"
ADD_CREDENTIAL = (
    "INSERT INTO credentials (access_key, tenant, name, bucket, can_write, sealed, created_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)


class WaitingEvent(NamedTuple):
    id: int
    body: bytes


class SqliteRecords:
    def __init__(self, database: Database) -> None:
        self._database = database
        found = database.read(lambda connection: rows(connection, Credential, CREDENTIALS))
        self._credentials = {each.access_key: each for each in found}

    # Settings

    async def setting(self, place: BucketPlace, kind: str) -> str | None:
        found = self._database.read(lambda connection: rows(connection, str, READ, kind, *place))
        return found[0] if found else None

    async def settings_named(self, bucket: str, kind: str) -> list[str]:
        return self._database.read(lambda connection: rows(connection, str, READ_NAMED, kind, bucket))

    async def settings_of(self, kind: str) -> list[tuple[BucketPlace, str]]:
        def read(tenant: str, name: str, value: str) -> tuple[BucketPlace, str]:
            return BucketPlace(tenant, name), value

        return self._database.read(lambda connection: rows(connection, read, READ_ALL, kind))

    async def change_setting(self, place: BucketPlace, kind: str, change: Callable[[str | None], str | None]) -> None:
        def act(connection: apsw.Connection) -> None:
            number = bucket_id(connection, place)
            found = rows(connection, str, OF_BUCKET, number, kind)
            changed = change(found[0] if found else None)
            if changed is None:
                connection.execute(DELETE, (number, kind))
            else:
                connection.execute(WRITE, (number, kind, changed))

        await self._database.write(act)

    # Public buckets

    async def label_of(self, place: BucketPlace) -> str:
        found = self._database.read(lambda connection: rows(connection, str, LABEL, *place))
        return found[0] if found else ""

    async def place_of(self, label: str) -> BucketPlace | None:
        found = self._database.read(lambda connection: rows(connection, BucketPlace, PLACE, label))
        return found[0] if found else None

    async def show(self, place: BucketPlace, label: str) -> None:
        def act(connection: apsw.Connection) -> None:
            sql = "INSERT INTO public_buckets (label, bucket) VALUES (?, ?) ON CONFLICT (bucket) DO NOTHING"
            connection.execute(sql, (label, bucket_id(connection, place)))

        await self._database.write(act)

    async def hide(self, place: BucketPlace) -> None:
        def act(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM public_buckets WHERE bucket = ?", (bucket_id(connection, place),))

        await self._database.write(act)

    # Notifications

    async def destinations(self) -> list[Destination]:
        return self._database.read(lambda connection: rows(connection, Destination, QUEUES))

    async def hand_over(self, to: Destination, most: int, send: Callable[[Sequence[bytes]], Awaitable[None]]) -> bool:
        events = self._database.read(lambda connection: rows(connection, WaitingEvent, OLDEST, *to, most))
        await send([event.body for event in events])

        def forget(connection: apsw.Connection) -> None:
            connection.executemany("DELETE FROM events WHERE id = ?", [(event.id,) for event in events])

        await self._database.write(forget)
        return True

    async def forget_events(self, tenant: str) -> None:
        def act(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM events WHERE tenant = ?", (tenant,))

        await self._database.write(act)

    # Access keys

    async def credential(self, access_key: str) -> Credential | None:
        return self._credentials.get(access_key)

    async def credentials(self, tenant: str | None = None) -> list[Credential]:
        return sorted(each for each in self._credentials.values() if tenant in (None, each.tenant))

    async def add_credential(self, made: Credential) -> None:
        def act(connection: apsw.Connection) -> None:
            connection.execute(ADD_CREDENTIAL, made)

        await self._database.write(act)
        self._credentials[made.access_key] = made

    async def delete_credential(self, access_key: str) -> None:
        await self._forget("access_key = ?", access_key)
        self._credentials.pop(access_key, None)

    async def forget_credentials(self, tenant: str) -> None:
        await self._forget("tenant = ?", tenant)
        self._credentials = {name: each for name, each in self._credentials.items() if each.tenant != tenant}

    async def _forget(self, which: str, value: str) -> None:
        def act(connection: apsw.Connection) -> None:
            connection.execute(f"DELETE FROM credentials WHERE {which}", (value,))

        await self._database.write(act)

    async def seal_credentials(self, fresh: Sequence[Credential]) -> None:
        def act(connection: apsw.Connection) -> None:
            values = [(each.sealed, each.access_key) for each in fresh]
            connection.executemany("UPDATE credentials SET sealed = ? WHERE access_key = ?", values)

        await self._database.write(act)
        self._credentials |= {each.access_key: each for each in fresh}


def bucket_id(connection: apsw.Connection, place: BucketPlace) -> int:
    found = rows(connection, int, FIND_BUCKET, *place)
    if not found:
        raise NoBucket
    return found[0]


def note(connection: apsw.Connection, place: BucketPlace, bucket: int, change: Change, noting: Noting) -> None:
    """Store the messages about a change, in its transaction; R2Refused undoes the change."""
    found = rows(connection, str, OF_BUCKET, bucket, NOTIFICATIONS)
    messages = noting.messages(found[0], place, change) if found else []
    if not messages:
        return
    [waiting] = rows(connection, int, WAITING, place.tenant)
    noting.check(waiting + len(messages))
    for queue, body in messages:
        connection.execute(ADD_EVENT, (place.tenant, queue, body))
