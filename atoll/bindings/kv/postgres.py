"""KV in PostgreSQL, for any number of nodes.

Nothing is in memory: every read asks the database, so it sees each write that was confirmed, by whichever node. Writes
that wait are made in one transaction and one message; those that follow one another in a namespace become one
statement, unless the quota refuses that one: then each is tried by itself.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple

from atoll.bindings.kv.store import (
    ANY,
    MAX_NAMESPACES,
    Batch,
    Bound,
    KVOverQuota,
    Listed,
    Namespace,
    NoNamespace,
    Page,
    Size,
    Space,
    StoredValue,
    TooManyNamespaces,
    TooMuch,
    after_prefix,
)
from atoll.errors import StorageAway
from atoll.postgres.groups import Groups
from atoll.postgres.pool import Postgres

SWEPT = 500
SCANNED = 4  # a list reads at most this many times its limit of rows, then returns what it has
PIECE = 500  # entries of a large batch in one statement
LAST = b"\xff"  # after every key

PUT = "SELECT status, keys, bytes FROM kv_put($1, $2, $3, $4, $5, $6, $7, $8)"
DELETE = "SELECT status, keys, bytes FROM kv_delete($1, $2, $3)"
GET = (
    "SELECT e.key, e.metadata, e.expires_at, sum(octet_length(e.value)) OVER () AS total,"
    " CASE WHEN sum(octet_length(e.value)) OVER () <= $5 THEN e.value END AS value"
    " FROM kv_namespaces n LEFT JOIN kv_entries e ON e.namespace = n.id AND e.key = ANY ($3)"
    " AND (e.expires_at IS NULL OR e.expires_at > $4) WHERE n.tenant = $1 AND n.name = $2"
)
LIST = (
    "SELECT e.key, e.metadata, e.expires_at FROM kv_namespaces n LEFT JOIN LATERAL"
    " (SELECT * FROM kv_entries WHERE namespace = n.id AND key {} $3 AND key < $4 ORDER BY key LIMIT $5) e ON true"
    " WHERE n.tenant = $1 AND n.name = $2 ORDER BY e.key"
)


class Put(NamedTuple):
    space: Space
    entries: dict[bytes, StoredValue]
    bound: Bound | None


class Delete(NamedTuple):
    space: Space
    keys: Sequence[bytes]


class PostgresKV:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._bounds: dict[str, Bound] = {}
        self._writes = Groups(self._write_all, weigh=_weight)

    def bound(self, tenant: str, bound: Bound) -> None:
        if bound == Bound():
            self._bounds.pop(tenant, None)
        else:
            self._bounds[tenant] = bound

    async def namespaces(self, tenant: str) -> list[Namespace]:
        sql = 'SELECT name, created_at FROM kv_namespaces WHERE tenant = $1 ORDER BY name COLLATE "C"'
        return [Namespace(row["name"], row["created_at"]) for row in await self._postgres.fetch(sql, tenant)]

    async def exists(self, space: Space) -> bool:
        sql = "SELECT EXISTS (SELECT FROM kv_namespaces WHERE tenant = $1 AND name = $2)"
        return bool(await self._postgres.value(sql, *space))

    async def create(self, space: Space, now: float) -> bool:
        async with self._postgres.transaction() as connection:
            await connection.execute("INSERT INTO kv_tenants VALUES ($1) ON CONFLICT DO NOTHING", space.tenant)
            await connection.execute("SELECT FROM kv_tenants WHERE tenant = $1 FOR UPDATE", space.tenant)
            sql = "SELECT count(*) AS count, bool_or(name = $2) AS has FROM kv_namespaces WHERE tenant = $1"
            found = await connection.fetchrow(sql, *space)
            assert found is not None
            if found["has"]:
                return False
            if found["count"] >= MAX_NAMESPACES:
                raise TooManyNamespaces
            sql = "INSERT INTO kv_namespaces (tenant, name, created_at) VALUES ($1, $2, $3)"
            await connection.execute(sql, *space, int(now))
            return True

    async def drop(self, space: Space) -> bool:
        async with self._postgres.transaction() as connection:
            await connection.execute("SELECT FROM kv_tenants WHERE tenant = $1 FOR UPDATE", space.tenant)
            sql = "DELETE FROM kv_namespaces WHERE tenant = $1 AND name = $2 RETURNING id, keys, bytes"
            gone = await connection.fetchrow(sql, *space)
            if gone is None:
                return False
            await connection.execute("INSERT INTO kv_dropped VALUES ($1)", gone["id"])
            sql = "UPDATE kv_tenants SET keys = keys - $2, bytes = bytes - $3 WHERE tenant = $1"
            await connection.execute(sql, space.tenant, gone["keys"], gone["bytes"])
            return True

    async def measure(self, space: Space) -> Size:
        row = await self._postgres.row("SELECT keys, bytes FROM kv_namespaces WHERE tenant = $1 AND name = $2", *space)
        if row is None:
            raise NoNamespace(space.namespace)
        return Size(row["keys"], row["bytes"])

    async def total(self, tenant: str) -> Size:
        row = await self._postgres.row("SELECT keys, bytes FROM kv_tenants WHERE tenant = $1", tenant)
        return Size(row["keys"], row["bytes"]) if row is not None else Size(0, 0)

    async def get(self, space: Space, keys: Sequence[bytes], now: float, most: int = ANY) -> list[StoredValue | None]:
        rows = await self._postgres.fetch(GET, *space, list(keys), int(now), most)
        if not rows:
            raise NoNamespace(space.namespace)
        if (rows[0]["total"] or 0) > most:
            raise TooMuch
        found = {
            row["key"]: StoredValue(row["value"], row["metadata"], row["expires_at"])
            for row in rows
            if row["key"] is not None
        }
        if most != ANY and sum(len(found[key].value) for key in keys if key in found) > most:
            raise TooMuch  # some keys were named twice
        return [found.get(key) for key in keys]

    async def list(self, space: Space, prefix: bytes, after: bytes, limit: int, now: float) -> Page:
        end = after_prefix(prefix) or LAST
        comparison, start = (">", after) if after >= prefix and after else (">=", prefix)
        found: builtins.list[Listed] = []
        for _ in range(SCANNED):
            wanted = limit + 1 - len(found)
            rows = await self._postgres.fetch(LIST.format(comparison), *space, start, end, wanted)
            if not rows:
                raise NoNamespace(space.namespace)
            batch = [Listed(*row.values()) for row in rows if row["key"] is not None]
            found += [listed for listed in batch if listed.expires_at is None or listed.expires_at > now]
            if len(found) > limit:
                return Page(found[:limit], found[limit - 1].key)
            if len(batch) < wanted:
                return Page(found, None)
            comparison, start = ">", batch[-1].key
        return Page(found, start)

    # Writing

    async def put(self, space: Space, entries: Sequence[tuple[bytes, StoredValue]] | Batch) -> None:
        bound = self._bounds.get(space.tenant)
        if isinstance(entries, Sequence):
            await self._writes.add(Put(space, dict(entries), bound))
        else:
            await self._put_large(space, entries, bound)

    async def _put_large(self, space: Space, entries: Batch, bound: Bound | None) -> None:
        """Entries that are made as they are stored, in pieces of one transaction."""
        pieces = iter(entries)
        async with self._postgres.transaction() as connection:
            while piece := await asyncio.to_thread(_next, pieces):
                row = await connection.fetchrow(PUT, *_put_values(Put(space, piece, bound)))
                _check(row, Put(space, piece, bound))

    async def delete(self, space: Space, keys: Sequence[bytes]) -> None:
        await self._writes.add(Delete(space, keys))

    async def _write_all(self, writes: builtins.list[Put | Delete]) -> builtins.list[BaseException | None]:
        """Make waiting writes, in the order of their tenants: two nodes lock them in the same order."""
        order = sorted(range(len(writes)), key=lambda i: writes[i].space)
        parts: builtins.list[tuple[Put | Delete, builtins.list[int]]] = []  # a statement, and the writes that it makes
        for i in order:
            write = writes[i]
            last = parts[-1][0] if parts else None
            if isinstance(write, Put) and isinstance(last, Put) and last.space == write.space:
                parts[-1] = (last._replace(entries={**last.entries, **write.entries}), [*parts[-1][1], i])
            else:
                parts.append((write, [i]))
        outcomes: builtins.list[BaseException | None] = [None] * len(writes)
        async with self._postgres.transaction() as connection:
            for part, made in parts:
                row = await _run(connection, part)
                if row["status"] == 2 and len(made) > 1:  # none of it was stored
                    for i in made:
                        outcomes[i] = _outcome(await _run(connection, writes[i]), writes[i])
                else:
                    for i in made:
                        outcomes[i] = _outcome(row, writes[i])
        return outcomes

    async def sweep(self, before: float) -> int:
        return int(await self._postgres.value("SELECT kv_sweep($1, $2)", int(before), SWEPT))

    async def close(self) -> None:
        await self._writes.close()


def _put_values(put: Put) -> list[Any]:
    values = put.entries.values()
    bound = put.bound or Bound()
    return [
        *put.space,
        list(put.entries),
        [entry.value for entry in values],
        [entry.metadata for entry in values],
        [entry.expires_at for entry in values],
        bound.keys,
        bound.bytes,
    ]


async def _run(connection: Any, write: Put | Delete) -> Any:
    if isinstance(write, Put):
        return await connection.fetchrow(PUT, *_put_values(write))
    return await connection.fetchrow(DELETE, *write.space, list(write.keys))


def _outcome(row: Any, write: Put | Delete) -> BaseException | None:
    try:
        _check(row, write)
    except (NoNamespace, KVOverQuota) as error:
        return error
    return None


def _check(row: Any, write: Put | Delete) -> None:
    if row is None:
        raise StorageAway("the database did not answer")
    if row["status"] == 1:
        raise NoNamespace(write.space.namespace)
    if row["status"] == 2 and isinstance(write, Put):
        raise KVOverQuota(Size(row["keys"], row["bytes"]), write.bound or Bound())


def _next(entries: Any) -> dict[bytes, StoredValue]:
    piece: dict[bytes, StoredValue] = {}
    for key, entry in entries:
        piece[key] = entry
        if len(piece) >= PIECE:
            break
    return piece


def _weight(write: Put | Delete) -> int:
    return sum(len(entry.value) for entry in write.entries.values()) if isinstance(write, Put) else 0
