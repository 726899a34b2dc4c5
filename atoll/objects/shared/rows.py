"""The tables of objects in PostgreSQL: who has an object, its commits, and its database in chunks.

Every statement here that writes names the epoch, and those of commits the number before as well. What it does not find
so is not changed: the writer is not the owner any more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from atoll.errors import StorageAway
from atoll.objects.store import NO_ALARM, Alarm, Elsewhere, ListedObject, NamespaceSize, ObjectKey
from atoll.postgres.ownership import Owner, Written, may_take
from atoll.postgres.pool import Connection, Postgres

STEP: Final = 500  # objects deleted, or released, in one transaction
READ: Final = 64  # rows of chunks or commits at once

LIVE: Final = "EXISTS (SELECT FROM nodes n WHERE n.session = {} AND n.expires > clock_timestamp())"
TAKEN: Final = "born, epoch, seq, pages, at_ms, alarm_at, alarm_seq, folded"
# One that this node has already, as long as the database says that its lease holds.
TAKE_OWN: Final = (
    "UPDATE objects SET epoch = nextval('object_epochs') WHERE namespace = $1 AND id = $2 AND session = $3"
    f" AND {LIVE.format('$3')} RETURNING {TAKEN}"
)
TAKE: Final = (
    "UPDATE objects SET epoch = nextval('object_epochs'), session = $3 WHERE namespace = $1 AND id = $2"
    f" AND {LIVE.format('$3')} RETURNING {TAKEN}"
)
SEEN: Final = "SELECT session FROM objects WHERE namespace = $1 AND id = $2 FOR UPDATE"
NEW: Final = (
    "INSERT INTO objects (namespace, id, born, epoch, session) SELECT $1, $2, e, e, $3 FROM nextval('object_epochs') e"
    f" WHERE {LIVE.format('$3')} ON CONFLICT (namespace, id) DO NOTHING RETURNING {TAKEN}"
)
# Locked, so that a renewal that is being committed counts.
OWNER: Final = "SELECT expires > clock_timestamp() FROM nodes WHERE session = $1 FOR SHARE"
APPEND: Final = (
    "WITH wanted AS (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],"
    " $6::bigint[], $7::bigint[], $8::bigint[]) AS w (born, epoch, before, after, pages, at_ms, alarm_seq, alarm_at)),"
    " done AS (UPDATE objects o SET seq = w.after, pages = w.pages, at_ms = w.at_ms,"
    " alarm_at = CASE w.alarm_seq WHEN 0 THEN o.alarm_at ELSE w.alarm_at END,"
    " alarm_seq = CASE w.alarm_seq WHEN 0 THEN o.alarm_seq ELSE w.alarm_seq END"
    " FROM wanted w WHERE o.born = w.born AND o.epoch = w.epoch AND o.seq = w.before RETURNING o.born),"
    " logged AS (INSERT INTO object_log (object, seq, pages, body) SELECT l.* FROM"
    " unnest($9::bigint[], $10::bigint[], $11::bigint[], $12::bytea[]) AS l (object, seq, pages, body)"
    " JOIN done ON done.born = l.object)"
    " SELECT born FROM done"
)
LOOK: Final = "SELECT born, epoch, seq FROM objects WHERE born = ANY ($1::bigint[])"
CLEAR: Final = "UPDATE objects SET alarm_at = NULL WHERE namespace = $1 AND id = $2 AND alarm_seq = $3 AND session = $4"
RELEASE: Final = (
    "UPDATE objects SET session = '' WHERE session = $3 AND (born, epoch) IN"
    " (SELECT * FROM unnest($1::bigint[], $2::bigint[]))"
)
RELEASE_SOME: Final = (
    "UPDATE objects SET session = '' WHERE born IN (SELECT born FROM objects WHERE session = $1 LIMIT $2)"
)
FORGET_EMPTY: Final = "DELETE FROM objects WHERE born = $1 AND epoch = $2 AND seq = 0 AND alarm_at IS NULL"
DELETE: Final = "DELETE FROM objects WHERE born = $1 AND epoch = $2"
DELETE_SOME: Final = (
    "DELETE FROM objects WHERE (namespace, id) IN (SELECT namespace, id FROM objects WHERE namespace = $1 LIMIT $2)"
    " RETURNING born"
)
CLEAN: Final = (
    "WITH logged AS (DELETE FROM object_log WHERE object = ANY ($1::bigint[]))"
    " DELETE FROM object_chunks WHERE object = ANY ($1::bigint[])"
)
ALARMS: Final = (
    "UPDATE objects o SET epoch = nextval('object_epochs'), session = $1 FROM (SELECT born FROM objects f"
    " WHERE f.alarm_at <= $2 AND f.session <> $1 AND NOT EXISTS (SELECT FROM nodes n WHERE n.session = f.session"
    f" AND n.expires > clock_timestamp()) AND {LIVE.format('$1')}"
    " ORDER BY f.alarm_at LIMIT $3 FOR UPDATE SKIP LOCKED) AS due WHERE o.born = due.born"
    f" RETURNING o.namespace, o.id, {', '.join('o.' + name for name in TAKEN.split(', '))}"
)
DUE: Final = "SELECT alarm_at, namespace, id, alarm_seq FROM objects WHERE session = $1 AND alarm_at <= $2 LIMIT $3"
CHUNKS: Final = "SELECT chunk, body FROM object_chunks WHERE object = $1 AND chunk >= $2 ORDER BY chunk LIMIT $3"
COMMITS: Final = "SELECT seq, pages, body FROM object_log WHERE object = $1 AND seq > $2 ORDER BY seq LIMIT $3"
STORE_CHUNK: Final = (
    "INSERT INTO object_chunks (object, chunk, body) VALUES ($1, $2, $3)"
    " ON CONFLICT (object, chunk) DO UPDATE SET body = excluded.body"
)
SHORTEN: Final = "DELETE FROM object_chunks WHERE object = $1 AND chunk >= $2"
FOLDED: Final = "UPDATE objects SET folded = $3 WHERE born = $1 AND epoch = $2 AND folded < $3 AND seq >= $3"
LIST: Final = (
    "SELECT id, pages FROM objects WHERE namespace = $1 AND id > $2 AND pages > 0 ORDER BY namespace, id LIMIT $3"
)
SIZES: Final = "SELECT namespace, count(*), sum(pages)::bigint FROM objects WHERE pages > 0 GROUP BY namespace"


class Taken(NamedTuple):
    """An object that this node has from now on."""

    born: int
    epoch: int
    seq: int
    pages: int
    at_ms: int
    alarm_at: int | None
    alarm_seq: int
    folded: int

    @property
    def alarm_ms(self) -> int:
        return self.alarm_at if self.alarm_at is not None else NO_ALARM


class Appended(NamedTuple):
    """What one object adds in a group: its commits from `before` to `after`."""

    born: int
    epoch: int
    before: int
    after: int
    pages: int
    at_ms: int
    alarm_seq: int  # 0: the alarm stays
    alarm_at: int | None
    commits: list[tuple[int, int, bytes]]  # seq, pages, body


class ObjectRows:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def take(self, key: ObjectKey, me: str) -> Taken:
        """Become the owner of an object, or stay it, with a new epoch. Elsewhere if another node that runs has it."""
        row = await self._postgres.row(TAKE_OWN, *key, me)  # twice does no harm: the last epoch counts
        if row is not None:
            return Taken(*row)
        for _ in range(2):
            async with self._postgres.transaction() as connection:
                found = await connection.fetchrow(SEEN, *key)
                if found is None:
                    row = await connection.fetchrow(NEW, *key, me)
                else:
                    await self._refuse_of_other(connection, found["session"], me)
                    row = await connection.fetchrow(TAKE, *key, me)
            if row is not None:
                return Taken(*row)
            # Another node has just made the object, or the lease of this one has ended
        raise StorageAway("this node cannot have Durable Objects at this moment")

    async def _refuse_of_other(self, connection: Connection, session: str, me: str) -> None:
        is_live = session != "" and session != me and await connection.fetchval(OWNER, session) is True
        if not may_take(Owner(session, is_live), me):
            raise Elsewhere(session)

    async def append(self, wanted: Sequence[Appended]) -> set[int]:
        """Add commits of many objects in one statement. Returns which were added, by `born`.

        It may not say what became of it: then `look`.
        """
        facts = list(zip(*(each[:8] for each in wanted), strict=True))
        commits = [(each.born, *commit) for each in wanted for commit in each.commits]
        columns = [list(column) for column in (*facts, *zip(*commits, strict=True))]
        async with self._postgres.transaction() as connection:
            return {row["born"] for row in await connection.fetch(APPEND, *columns)}

    async def look(self, born: Sequence[int]) -> dict[int, Written]:
        return {row["born"]: Written(row["epoch"], row["seq"]) for row in await self._postgres.fetch(LOOK, list(born))}

    # Alarms

    async def clear_alarm(self, alarm: Alarm, me: str) -> None:
        await self._postgres.run(CLEAR, *alarm.key, alarm.sequence, me)

    async def take_due(self, me: str, until_ms: int, limit: int) -> list[tuple[ObjectKey, Taken]]:
        """Take objects of nobody, or of lost nodes, whose alarms are due."""
        rows = await self._postgres.fetch(ALARMS, me, until_ms, limit)
        return [(ObjectKey(row[0], row[1]), Taken(*tuple(row)[2:])) for row in rows]

    async def due(self, me: str, until_ms: int, limit: int) -> list[Alarm]:
        """Due alarms of objects that this node has."""
        rows = await self._postgres.fetch(DUE, me, until_ms, limit)
        return [Alarm(row[0], ObjectKey(row[1], row[2]), row[3]) for row in rows]

    # Ends

    async def release(self, some: Sequence[Taken], me: str) -> None:
        """Let others have objects, unless they were opened again since."""
        for start in range(0, len(some), STEP):
            step = some[start : start + STEP]
            await self._postgres.run(RELEASE, [each.born for each in step], [each.epoch for each in step], me)

    async def release_all(self, me: str) -> None:
        while await self._postgres.run(RELEASE_SOME, me, STEP):
            pass

    async def forget_empty(self, taken: Taken) -> None:
        """An object that was opened and stored nothing needs no row."""
        await self._postgres.run(FORGET_EMPTY, taken.born, taken.epoch)

    async def delete(self, born: int, epoch: int) -> bool:
        """False if this node is not the owner any more."""
        async with self._postgres.transaction() as connection:
            done: str = await connection.execute(DELETE, born, epoch)
            if not done.endswith(" 1"):
                return False
            await connection.execute(CLEAN, [born])
        return True

    async def delete_namespace(self, namespace: str) -> None:
        while True:
            async with self._postgres.transaction() as connection:
                born = [row["born"] for row in await connection.fetch(DELETE_SOME, namespace, STEP)]
                await connection.execute(CLEAN, born)
            if not born:
                return

    # ObjectContents

    @asynccontextmanager
    async def reading(self, born: int) -> AsyncIterator[ObjectContents]:
        """What is stored of an object, as it is at one moment."""
        async with self._postgres.transaction() as connection:
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield ObjectContents(connection, born)

    @asynccontextmanager
    async def folding(self, born: int, epoch: int, seq: int, chunks: int) -> AsyncIterator[Fold]:
        """Replace chunks by what they are after the commit `seq`. All of it counts, or nothing."""
        async with self._postgres.transaction() as connection:
            yield Fold(connection, born)
            await connection.execute(SHORTEN, born, chunks)
            done: str = await connection.execute(FOLDED, born, epoch, seq)  # last: it holds up appends of the object
            if not done.endswith(" 1"):
                raise NotOwner
        await self._postgres.run("DELETE FROM object_log WHERE object = $1 AND seq <= $2", born, seq)

    async def list_objects(self, namespace: str, cursor: str, limit: int) -> list[ListedObject]:
        rows = await self._postgres.fetch(LIST, namespace, cursor, limit)
        return [ListedObject(row["id"], row["pages"]) for row in rows]

    async def sizes(self) -> dict[str, NamespaceSize]:
        """Of all namespaces, in pages. It looks at every object."""
        return {row[0]: NamespaceSize(row[1], row[2]) for row in await self._postgres.fetch(SIZES)}


class NotOwner(Exception):
    """The object is of another node, or was opened again."""


class ObjectContents:
    def __init__(self, connection: Connection, born: int) -> None:
        self._connection = connection
        self._born = born

    async def facts(self) -> Taken | None:
        row = await self._connection.fetchrow(f"SELECT {TAKEN} FROM objects WHERE born = $1", self._born)
        return Taken(*row) if row is not None else None

    async def chunks(self) -> AsyncIterator[tuple[int, bytes]]:
        first = 0
        while rows := await self._connection.fetch(CHUNKS, self._born, first, READ):
            for row in rows:
                yield row["chunk"], row["body"]
            first = rows[-1]["chunk"] + 1

    async def commits(self, after: int) -> AsyncIterator[tuple[int, int, bytes]]:
        """Number, pages and body of each commit after a number."""
        while rows := await self._connection.fetch(COMMITS, self._born, after, READ):
            for row in rows:
                yield row["seq"], row["pages"], row["body"]
            after = rows[-1]["seq"]


class Fold:
    def __init__(self, connection: Connection, born: int) -> None:
        self._connection = connection
        self._born = born

    async def store(self, chunks: Sequence[tuple[int, bytes]]) -> None:
        values: list[tuple[Any, ...]] = [(self._born, number, body) for number, body in chunks]
        await self._connection.executemany(STORE_CHUNK, values)
