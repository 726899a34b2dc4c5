"""Settings, public hosts, notifications and access keys in PostgreSQL. Every read asks it: a key that one node deletes
opens nothing at the next request to any of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from atoll.bindings.r2.records import Credential, Destination
from atoll.bindings.r2.store import BucketPlace, NoBucket
from atoll.postgres.pool import Connection, Postgres

ENTER = "SELECT id FROM r2_enter($1, $2)"
READ = (
    "SELECT s.value FROM r2_buckets b JOIN r2_settings s ON s.bucket = b.id AND s.kind = $3"
    " WHERE b.tenant = $1 AND b.name = $2"
)
READ_NAMED = "SELECT s.value FROM r2_buckets b JOIN r2_settings s ON s.bucket = b.id AND s.kind = $2 WHERE b.name = $1"
READ_ALL = (
    "SELECT b.tenant, b.name, s.value FROM r2_settings s JOIN r2_buckets b ON b.id = s.bucket WHERE s.kind = $1"
    " ORDER BY b.id"
)
OF_BUCKET = "SELECT value FROM r2_settings WHERE bucket = $1 AND kind = $2"
WRITE = (
    "INSERT INTO r2_settings (bucket, kind, value) VALUES ($1, $2, $3)"
    " ON CONFLICT (bucket, kind) DO UPDATE SET value = excluded.value"
)
DELETE = "DELETE FROM r2_settings WHERE bucket = $1 AND kind = $2"

LABEL = "SELECT p.label FROM r2_public p JOIN r2_buckets b ON b.id = p.bucket WHERE b.tenant = $1 AND b.name = $2"
PLACE = "SELECT b.tenant, b.name FROM r2_public p JOIN r2_buckets b ON b.id = p.bucket WHERE p.label = $1"

LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended('r2 ' || $1 || ' ' || $2, 0))"
OLDEST = "SELECT id, body FROM r2_events WHERE tenant = $1 AND queue = $2 ORDER BY id LIMIT $3"

CREDENTIALS = "SELECT access_key, tenant, name, bucket, can_write, sealed, created_at FROM r2_credentials"
ADD = (
    "INSERT INTO r2_credentials (access_key, tenant, name, bucket, can_write, sealed, created_at)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"
)


class PostgresRecords:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    # Settings

    async def setting(self, place: BucketPlace, kind: str) -> str | None:
        found: str | None = await self._postgres.value(READ, *place, kind)
        return found

    async def settings_named(self, bucket: str, kind: str) -> list[str]:
        if not is_text(bucket):
            return []
        return [row["value"] for row in await self._postgres.fetch(READ_NAMED, bucket, kind)]

    async def settings_of(self, kind: str) -> list[tuple[BucketPlace, str]]:
        rows = await self._postgres.fetch(READ_ALL, kind)
        return [(BucketPlace(row["tenant"], row["name"]), row["value"]) for row in rows]

    async def change_setting(self, place: BucketPlace, kind: str, change: Callable[[str | None], str | None]) -> None:
        async with self._postgres.transaction() as connection:
            bucket = await _entered(connection, place)
            changed = change(await connection.fetchval(OF_BUCKET, bucket, kind))
            if changed is None:
                await connection.execute(DELETE, bucket, kind)
            else:
                await connection.execute(WRITE, bucket, kind, changed)

    # Public buckets

    async def label_of(self, place: BucketPlace) -> str:
        return str(await self._postgres.value(LABEL, *place) or "")

    async def place_of(self, label: str) -> BucketPlace | None:
        row = await self._postgres.row(PLACE, label) if is_text(label) else None
        return None if row is None else BucketPlace(*row.values())

    async def show(self, place: BucketPlace, label: str) -> None:
        async with self._postgres.transaction() as connection:
            sql = "INSERT INTO r2_public (label, bucket) VALUES ($1, $2) ON CONFLICT (bucket) DO NOTHING"
            await connection.execute(sql, label, await _entered(connection, place))

    async def hide(self, place: BucketPlace) -> None:
        async with self._postgres.transaction() as connection:
            await connection.execute("DELETE FROM r2_public WHERE bucket = $1", await _entered(connection, place))

    # Notifications

    async def destinations(self) -> list[Destination]:
        rows = await self._postgres.fetch("SELECT DISTINCT tenant, queue FROM r2_events")
        return [Destination(*row.values()) for row in rows]

    async def hand_over(self, to: Destination, most: int, send: Callable[[Sequence[bytes]], Awaitable[None]]) -> bool:
        async with self._postgres.transaction() as connection:
            if not await connection.fetchval(LOCK, *to):
                return False
            rows = await connection.fetch(OLDEST, *to, most)
            if rows:
                await send([row["body"] for row in rows])
                await connection.execute("DELETE FROM r2_events WHERE id = ANY ($1)", [row["id"] for row in rows])
            return True

    async def forget_events(self, tenant: str) -> None:
        await self._postgres.run("DELETE FROM r2_events WHERE tenant = $1", tenant)

    # Access keys

    async def credential(self, access_key: str) -> Credential | None:
        if not is_text(access_key):
            return None
        row = await self._postgres.row(f"{CREDENTIALS} WHERE access_key = $1", access_key)
        return None if row is None else Credential(*row.values())

    async def credentials(self, tenant: str | None = None) -> list[Credential]:
        sql = f'{CREDENTIALS} WHERE $1::text IS NULL OR tenant = $1 ORDER BY access_key COLLATE "C"'
        return [Credential(*row.values()) for row in await self._postgres.fetch(sql, tenant)]

    async def add_credential(self, made: Credential) -> None:
        await self._postgres.run(ADD, *made)

    async def delete_credential(self, access_key: str) -> None:
        await self._postgres.run("DELETE FROM r2_credentials WHERE access_key = $1", access_key)

    async def forget_credentials(self, tenant: str) -> None:
        await self._postgres.run("DELETE FROM r2_credentials WHERE tenant = $1", tenant)

    async def seal_credentials(self, fresh: Sequence[Credential]) -> None:
        values = [(each.sealed, each.access_key) for each in fresh]
        async with self._postgres.transaction() as connection:
            await connection.executemany("UPDATE r2_credentials SET sealed = $1 WHERE access_key = $2", values)


async def _entered(connection: Connection, place: BucketPlace) -> int:
    """Lock the tenant, so that changes of one setting follow one another; returns the id of the bucket."""
    found: int | None = await connection.fetchval(ENTER, *place)
    if found is None:
        raise NoBucket
    return found


def is_text(value: str) -> bool:
    """Whether PostgreSQL can have it: what clients send may contain anything."""
    return "\0" not in value and value.isprintable()
