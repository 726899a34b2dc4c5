"""A SQLite file that several nodes share: each has a copy, and all changes are in one log, in the same order.

A write runs on the copy, inside a transaction. What it changed is a changeset (SQLite's session extension), which is
appended to the log if the copy is at the end of the log, and only then is the transaction committed. If another node
was faster, the transaction is rolled back, the copy catches up, and the writes run again. So a write that has returned
is in the log, and reads cost what they cost with a file of one node.

A copy is never ahead of the log. If the outcome of an append is unknown, the transaction is rolled back; the change
comes with the log if it was committed.

What a caller decided from memory before its write may be outdated by then. Each write remembers up to which change
the memory of the node was current when it was made (`position`), and is refused with StaleWrite if a later change of
another node touched the same rows, or the same EXCLUSIVE table.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Callable, Coroutine
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import apsw

from atoll.db.migrate import user_version
from atoll.db.sqlite import Database, Write
from atoll.db.touched import Key, Listener, Touched
from atoll.errors import AtollError, BindingRefused, StorageAway, StorageFailed

T = TypeVar("T")

log = logging.getLogger("atoll.db")

STATE = (
    "CREATE TABLE IF NOT EXISTS shared_state (one INTEGER PRIMARY KEY, seq INTEGER NOT NULL, id TEXT NOT NULL) STRICT"
)
OWN_TABLES = frozenset(("shared_state", "code_caches"))  # of each node: V8 of another machine could not use its caches
# Whether a row may be added depends on all others: no two hosts that overlap may belong to two tenants. A new worker
# claims the host of its name.
NEW_WORKER = "workers, new"
EXCLUSIVE = frozenset(("routes", "reserved_hosts", NEW_WORKER))
WAIT_SECONDS = 40.0  # for the log, from the writer thread: more than its own time limits together
ROUNDS = 50  # at which a write that always loses against other nodes gives up
REMEMBERED = 10_000  # changes of other nodes, for the check of `position`


class StaleWrite(BindingRefused):
    """Another node changed the same thing at the same time. Nothing was written."""

    def __init__(self) -> None:
        super().__init__("409 another node changed this at the same moment: check the result, then try again")


class LoggedChange(NamedTuple):
    """An entry of the log."""

    seq: int
    id: str
    schema: int  # migrations that the file of its writer had
    body: bytes


class ChangeLog(Protocol):
    """The log of one shared database. Methods run on the event loop."""

    async def append(self, after: int, change: LoggedChange) -> int | None:
        """Add a change if `after` is the newest one; returns its number. None: another node was faster."""

    async def fetch(self, after: int) -> list[LoggedChange]:
        """Some changes after a number, oldest first; none at the end."""


class SharedDatabase(Database):
    """Open it with a copy that has caught up: see cluster/shared_files.py. `migrations`: None is the main database."""

    def __init__(self, path: Path, log: ChangeLog, *, migrations: Traversable | None = None) -> None:
        self._log = log
        self._tells_rows = migrations is not None  # those of bindings are small
        self._listeners: list[Listener] = []
        self._recent: deque[Touched] = deque(maxlen=REMEMBERED)
        self._untold: deque[Touched] = deque()  # applied to the file, but not to the node's memory yet
        self._telling: asyncio.Task[None] | None = None
        super().__init__(path, migrations=migrations)
        self._seq, self.id = self.read(read_state)  # of the file
        self._known = self._seq
        self.schema = self.read(user_version)

    @property
    def position(self) -> int:
        """The change up to which the node's memory is current."""
        return self._untold[0].seq - 1 if self._untold else self._known

    def listen(self, listener: Listener) -> None:
        """Call a listener on the event loop with each change of another node, after it was applied to the file."""
        self._listeners.append(listener)

    async def write(self, act: Callable[[apsw.Connection], T], *, anyway: bool = False) -> T:
        return await super().write(act if anyway else _Checked(act, self.position))

    async def follow(self) -> None:
        """Apply what other nodes have changed, to the file and to the node's memory."""
        if self._closing is None:
            await super().write(_catch_up)
        if self._telling is not None:
            await asyncio.shield(self._telling)

    async def close(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
        await super().close()

    # On the writer thread

    def _run_all(self, batch: list[Write[object]]) -> None:
        wants_news = [write for write in batch if write.act is _catch_up]
        writes = [write for write in batch if write.act is not _catch_up]
        try:
            if wants_news:
                self._catch_up()
            if writes:
                self._run_shared(writes)
        except Exception as error:
            self._undo()
            for write in batch:
                write.error = write.error or error
        for write in batch:
            if isinstance(write.error, apsw.Error):
                write.error = self._told(write.error)

    def _run_shared(self, writes: list[Write[object]]) -> None:
        late = [write for write in writes if self._newer(write)]
        current = [write for write in writes if write not in late]
        if current:
            self._append(current)
        for write in late:  # one at a time: it is compared with what other nodes did meanwhile
            self._append([write])

    def _append(self, writes: list[Write[object]]) -> None:
        for _ in range(ROUNDS):
            for write in writes:
                write.error = write.result = None
            body = self._try_all(writes)
            if not body:  # only tables of this node were written
                self._writer.execute("COMMIT")
                return
            change = LoggedChange(0, str(uuid.uuid4()), self.schema, body)
            try:
                seq = self._ask(self._log.append(self._seq, change))
            except StorageFailed:
                self._undo()
                if not self._find_out(change.id):
                    raise
                return
            if seq is not None:
                self._complete(seq, change.id)
                self._loop.call_soon_threadsafe(self._move, seq)
                return
            self._undo()
            if self._catch_up(change.id):
                return  # it had been appended after all
            late = [write for write in writes if self._newer(write)]
            if len(late) and len(writes) > 1:
                return self._run_shared(writes)
        raise StorageAway("other nodes change too much at this moment")

    def _try_all(self, writes: list[Write[object]]) -> bytes:
        """Run the writes in a transaction that stays open; returns what they changed."""
        with _Session(self._writer) as session:
            self._writer.execute("BEGIN IMMEDIATE")
            for write in writes:
                write.run(self._writer)
            body = session.changeset()
        assert isinstance(body, bytes)
        if len(writes) == 1 and (newer := self._newer(writes[0])) and self._is_stale(writes[0], body, newer):
            self._writer.execute("ROLLBACK; BEGIN IMMEDIATE")
            writes[0].error, body = StaleWrite(), b""
        return body

    def _is_stale(self, write: Write[object], body: bytes, newer: list[Touched]) -> bool:
        if write.error is not None:  # such as a key that is taken now; what Atoll says on purpose stays
            return not isinstance(write.error, AtollError | apsw.FullError | apsw.IOError)
        own = touched_by(LoggedChange(0, "", 0, body)).keys
        tables = {table for table, _ in own} & EXCLUSIVE
        theirs = {key for touched in newer for key in touched.keys}
        return bool(own & theirs) or any(table == "tenants" or (tables and table in EXCLUSIVE) for table, _ in theirs)

    def _newer(self, write: Write[object]) -> list[Touched]:
        """What other nodes have changed since a write was decided on."""
        act = write.act
        if not isinstance(act, _Checked) or act.position >= self._seq:
            return []
        return [touched for touched in self._recent if touched.seq > act.position]

    def _complete(self, seq: int, id: str) -> None:
        self._writer.execute("INSERT OR REPLACE INTO shared_state VALUES (1, ?, ?)", (seq, id))
        self._writer.execute("COMMIT")
        self._seq, self.id = seq, id

    def _undo(self) -> None:
        if not self._writer.get_autocommit():
            self._writer.execute("ROLLBACK")

    def _find_out(self, id: str) -> bool:
        """Whether a change is in the log although its append failed."""
        try:
            return self._catch_up(id)
        except StorageFailed:
            return False

    def _catch_up(self, own: str = "") -> bool:
        """Apply the changes of the log; returns whether `own` was among them."""
        found = False
        while changes := self._ask(self._log.fetch(self._seq)):
            for change in changes:
                touched = self._apply(change)
                self._recent.append(touched)
                if change.id == own:
                    found = True
                    self._loop.call_soon_threadsafe(self._move, change.seq)
                else:
                    self._loop.call_soon_threadsafe(self._hear, touched)
        return found

    def _apply(self, change: LoggedChange) -> Touched:
        if change.schema > self.schema:
            raise StorageFailed("a newer Atoll has changed the tables: upgrade this node", str(self.path))
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            apsw.Changeset.apply(change.body, self._writer, conflict=_on_conflict)
            self._complete(change.seq, change.id)
        except apsw.AbortError:
            self._undo()
            raise StorageFailed(
                "this copy differs from the log: stop the node and delete the file", str(self.path)
            ) from None
        except BaseException:
            self._undo()
            raise
        return touched_by(change, with_rows=self._tells_rows)

    def _ask(self, question: Coroutine[Any, Any, T]) -> T:
        """Ask the log, which lives on the event loop, and wait."""
        try:
            future = asyncio.run_coroutine_threadsafe(question, self._loop)
        except RuntimeError:  # the loop has ended
            question.close()
            raise StorageAway("the node is stopping") from None
        try:
            return future.result(WAIT_SECONDS)
        except TimeoutError:
            future.cancel()
            raise StorageAway("the database of this node does not answer") from None

    # On the event loop

    def _move(self, seq: int) -> None:
        self._known = max(self._known, seq)

    def _hear(self, touched: Touched) -> None:
        self._move(touched.seq)
        self._untold.append(touched)
        if self._telling is None:
            self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        try:
            while self._untold:
                for listener in self._listeners:
                    await self._tell_one(listener, self._untold[0])
                self._untold.popleft()
        finally:
            self._telling = None

    async def _tell_one(self, listener: Listener, touched: Touched) -> None:
        try:
            await listener(touched)
        except Exception:  # one part of the node must not keep the others from following
            log.exception("a change of another node (%d) could not be taken over", touched.seq)


class _Session:
    """Records what a transaction changes in the shared tables."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._session = apsw.Session(connection, "main")
        self._session.config(apsw.SQLITE_SESSION_OBJCONFIG_ROWID, True)  # some tables have no primary key
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        for (name,) in connection.execute(sql).fetchall():
            if name not in OWN_TABLES:
                self._session.attach(str(name))

    def __enter__(self) -> apsw.Session:
        return self._session

    def __exit__(self, *_: object) -> None:
        self._session.close()


class _Checked:
    """A write, and up to which change the node's memory was current when it was made."""

    def __init__(self, act: Callable[[apsw.Connection], Any], position: int) -> None:
        self.act = act
        self.position = position

    def __call__(self, connection: apsw.Connection) -> Any:
        return self.act(connection)


def _catch_up(connection: apsw.Connection) -> None:
    """Stands for a wish to catch up in the queue of writes."""


def touched_by(change: LoggedChange, *, with_rows: bool = False) -> Touched:
    keys: set[Key] = set()
    seconds: set[Key] = set()
    whole: set[tuple[object, ...]] = set()
    for row in apsw.Changeset.iter(change.body):
        for values in (row.old, row.new):
            if values is not None:
                first = 1 if row.column_count > len(values) else 0
                key = next((values[i] for i in sorted(row.pk_columns)), values[first])
                keys.add((row.name, key))
                if row.name == "workers" and row.old is None:
                    keys.add((NEW_WORKER, key))
                if len(values) > 1 and isinstance(values[1], str):
                    seconds.add((row.name, values[1]))
        named = row.old if row.old is not None else row.new
        if with_rows and named is not None:
            whole.add((row.name, *(named[i] for i in sorted(row.pk_columns))))
    return Touched(change.seq, frozenset(keys), frozenset(seconds), frozenset(whole))


def _on_conflict(reason: int, change: apsw.TableChange) -> int:
    """A deleted row may be gone already: the row that it belonged to was deleted first."""
    is_gone = reason == apsw.SQLITE_CHANGESET_NOTFOUND and change.opcode == apsw.SQLITE_DELETE
    return apsw.SQLITE_CHANGESET_OMIT if is_gone else apsw.SQLITE_CHANGESET_ABORT


def read_state(connection: apsw.Connection) -> tuple[int, str]:
    """The number and id of the last change in a copy."""
    found = connection.execute("SELECT seq, id FROM shared_state").fetchone()
    return (found[0], found[1]) if found else (0, "")


def opened(place: Path | Database, migrations: Traversable) -> Database:
    """A database of a binding: its own file, or one that the node shares with others."""
    return place if isinstance(place, Database) else Database(place, migrations=migrations)
