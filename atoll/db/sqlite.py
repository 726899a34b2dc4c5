"""SQLite without blocking the event loop: one writer thread with group commit, and reads in place.

A write is a function of the connection. All waiting writes run in one transaction, so there is one sync to disk per
batch and not one per write. Each write has its own savepoint: one that raises is rolled back alone. The event loop is
woken once per batch.

Reads are short lookups by key on a connection of their own, run where they are called: in WAL mode they neither wait
for the writer nor hold it up, and a hop to a thread would cost several times the read. They see what is committed.
A search may take long, so it has a thread and one more connection.

`synchronous` is FULL: an answer of 201 to a deploy is a promise that a power cut must not break. NORMAL may lose the
last commits, and group commit already spreads the cost of the sync over all waiting writes.

A disk may be unmounted for repair, which needs all its files closed: `let_go` closes the file, and `take_up` opens it
again. In between everything fails with StorageFailed. The data folder (folder.py) detects when to call them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.resources.abc import Traversable
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, TypeVar

import apsw

from atoll.db.migrate import migrate
from atoll.db.touched import Listener
from atoll.errors import StartError, StorageFailed
from atoll.pauses import with_pauses

T = TypeVar("T")

log = logging.getLogger("atoll.db")

MAX_BATCH = 256  # writes in one transaction: bounds the delay of one commit
BUSY_MS = 5_000  # how long to wait for another program that has the file open, such as a backup


# Messages for SQLite's errors of the disk, for tenants who cannot see this machine.
FAULTS: list[tuple[type[apsw.Error], str]] = [
    (apsw.FullError, "the disk of this node is full"),
    (apsw.CorruptError, "the storage of this node is damaged"),
    (apsw.NotADBError, "the storage of this node is damaged"),
    (apsw.ReadOnlyError, "the storage of this node cannot be written to"),
    (apsw.CantOpenError, "the storage of this node cannot be opened"),
    (apsw.IOError, "the storage of this node cannot be read or written"),
    (apsw.BusyError, "the storage of this node is held by another program"),
]
SAID_AGAIN = 60.0  # seconds after which the same fault is logged again
AWAY = "the storage of this node is not available"

databases: weakref.WeakSet[Database] = weakref.WeakSet()  # open databases, for the watcher of the data folder


class DatabaseClosed(Exception):
    """A write came after close()."""


class Write(Generic[T]):
    """One waiting write, and later its result on the way back to the event loop."""

    __slots__ = ("act", "error", "future", "result")

    def __init__(self, act: Callable[[apsw.Connection], T], future: asyncio.Future[T]) -> None:
        self.act = act
        self.future = future
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self, connection: apsw.Connection) -> None:
        """Run in a savepoint. An error is kept for the caller; it is raised only if it ended the transaction."""
        connection.execute("SAVEPOINT one_write")
        try:
            self.result = self.act(connection)
            connection.execute("RELEASE one_write")
        except Exception as error:
            self.error = error
            if connection.get_autocommit():  # such as a full disk: SQLite rolled back everything
                raise
            connection.execute("ROLLBACK TO one_write; RELEASE one_write")

    def settle(self) -> None:
        if self.future.done():  # the caller was cancelled; the write itself is done
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]  # no error means that `run` set it


class Database:
    """One SQLite file. Made on the event loop that uses it; its migrations run first."""

    def __init__(self, path: Path, *, migrations: Traversable | None = None, synchronous: str = "FULL") -> None:
        self._loop = asyncio.get_running_loop()
        self._synchronous = synchronous
        _make_private(path)
        self._writer = _open(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        try:
            self._writer.execute(f"PRAGMA synchronous = {synchronous}")
            migrate(self._writer, path, migrations)
            self._reader = _open(path, apsw.SQLITE_OPEN_READONLY)
            self._searcher = _open(path, apsw.SQLITE_OPEN_READONLY)
        except apsw.Error as error:
            self._writer.close()
            raise _start_error(path, error) from None
        except BaseException:
            self._writer.close()
            raise
        self.path = path
        self._inode = path.stat().st_ino
        self._is_away = False
        self.faults = 0  # operations that failed because of the disk
        self._said: dict[str, float] = {}  # faults that were logged, and when
        self._writing = threading.Lock()  # held during a transaction
        self._searching = threading.Lock()
        self._search_turn = asyncio.Lock()
        self._queue: SimpleQueue[Write[object] | None] = SimpleQueue()
        self._closing: asyncio.Future[None] | None = None
        self._thread = threading.Thread(target=self._work, name=f"writer of {path.name}", daemon=True)
        self._thread.start()
        databases.add(self)

    async def write(self, act: Callable[[apsw.Connection], T], *, anyway: bool = False) -> T:
        """Run `act` on the writer thread and return its result once it is safely on disk.

        `anyway`: it is right whatever another node changed meanwhile (shared.py).

        `act` may be one of many in a transaction: it must neither begin nor commit one, nor keep the connection.
        """
        if self._closing is not None:
            raise DatabaseClosed("the database is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(Write(act, future))  # type: ignore[arg-type]  # the queue holds writes of every result type
        return await future

    async def follow(self) -> None:
        """Take over what other nodes have changed: nothing, unless the database is shared (shared.py)."""

    def listen(self, listener: Listener) -> None:
        """Call a listener with each change of another node: never, unless the database is shared (shared.py)."""

    def post(self, act: Callable[[apsw.Connection], None]) -> None:
        """Run `act` on the writer thread without waiting for it: for data that may be lost."""
        if self._closing is None:
            future: asyncio.Future[None] = self._loop.create_future()
            future.add_done_callback(_log_failure)
            self._queue.put(Write(act, future))  # type: ignore[arg-type]

    def read(self, act: Callable[[apsw.Connection], T]) -> T:
        """Run a quick lookup in place. `act` must fetch all its rows before it returns."""
        if self._is_away:
            raise self._away()
        try:
            return act(self._reader)
        except apsw.Error as error:
            raise self._told(error) from None

    async def search(self, act: Callable[[apsw.Connection], T]) -> T:
        """Run a long read in a thread of its own, one at a time. `act` must fetch all its rows before it returns."""
        if self._closing is not None:
            raise DatabaseClosed("the database is closed")

        def run() -> T:
            with self._searching:  # the caller may be cancelled
                if self._is_away:
                    raise self._away()
                try:
                    return act(self._searcher)
                except apsw.Error as error:
                    raise self._told(error) from None

        async with self._search_turn:  # in place: threads are few, and others need them
            return await asyncio.to_thread(run)

    async def close(self) -> None:
        """Finish every waiting write, then close the file. A second call waits for the first."""
        if self._closing is None:
            self._queue.put(None)
            self._closing = self._loop.run_in_executor(None, self._finish)
        await asyncio.shield(self._closing)

    def _finish(self) -> None:
        self._thread.join()
        self._close_files()

    def _close_files(self) -> None:
        self._reader.close()
        with self._searching:
            self._searcher.close()
        with self._writing, suppress(apsw.Error):
            self._writer.close(True)  # last, so that it merges the write-ahead log into the file, if the disk works

    # While the disk is not available

    async def let_go(self) -> None:
        """Close every file on the disk, until `take_up`."""
        if self._closing is None and not self._is_away:
            self._is_away = True  # from here on nothing begins; running work ends first
            await asyncio.to_thread(self._close_files)

    async def take_up(self) -> None:
        """Open the file again. Raises StorageFailed while it is missing."""
        if self._closing is None and self._is_away:
            self._writer, self._reader, self._searcher = await asyncio.to_thread(self._reopen)
            self._is_away = False

    def _reopen(self) -> tuple[apsw.Connection, apsw.Connection, apsw.Connection]:
        opened: list[apsw.Connection] = []
        try:
            if self.path.stat().st_ino != self._inode:  # this process has state in memory of another file
                raise StorageFailed("it is not the file it was: start the node again", str(self.path))
            opened.append(_open(self.path, apsw.SQLITE_OPEN_READWRITE))
            opened[0].execute(f"PRAGMA synchronous = {self._synchronous}")
            opened[0].execute("BEGIN IMMEDIATE; ROLLBACK")  # checks that it is writable
            opened += [_open(self.path, apsw.SQLITE_OPEN_READONLY) for _ in range(2)]
            return opened[0], opened[1], opened[2]
        except (OSError, StartError, apsw.Error, StorageFailed) as error:
            for connection in opened:
                connection.close(True)
            raise StorageFailed(str(error), str(self.path)) from None

    # On the writer thread

    def _work(self) -> None:
        while self._work_once():
            pass

    def _work_once(self) -> bool:
        """One transaction. A method of its own, so that no write stays referenced while the thread waits."""
        batch, more = self._take()
        if batch:
            self._commit(batch)
            self._deliver(batch)
        return more

    def _take(self) -> tuple[list[Write[object]], bool]:
        """All waiting writes, at least one, and whether more may come."""
        batch: list[Write[object]] = []
        while (write := self._queue.get()) is not None:
            batch.append(write)
            if len(batch) == MAX_BATCH or self._queue.empty():  # no other thread takes: get() does not block
                return batch, True
        return batch, False

    def _commit(self, batch: list[Write[object]]) -> None:
        with self._writing:
            if self._is_away:
                for write in batch:
                    write.error = self._away()
            else:
                self._run_all(batch)

    def _run_all(self, batch: list[Write[object]]) -> None:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for write in batch:
                write.run(self._writer)
            self._writer.execute("COMMIT")
        except Exception as error:  # the whole transaction is rolled back, including writes that had succeeded
            if not self._writer.get_autocommit():
                self._writer.execute("ROLLBACK")
            for write in batch:
                write.error = write.error or error
        for write in batch:
            if isinstance(write.error, apsw.Error):
                write.error = self._told(write.error)

    def _away(self) -> StorageFailed:
        self.faults += 1
        return StorageFailed(AWAY, str(self.path))

    def _told(self, error: apsw.Error) -> Exception:
        """A disk fault as an error that a worker may see; the log gets the details. Other errors are bugs in Atoll."""
        for kind, words in FAULTS:
            if isinstance(error, kind):
                self.faults += 1
                now = time.monotonic()
                if now - self._said.get(words, -SAID_AGAIN) >= SAID_AGAIN:
                    self._said[words] = now
                    log.error("%s: %s (%s: %s)", self.path, words, type(error).__name__, error)
                return StorageFailed(words, str(self.path))
        return error

    def _deliver(self, batch: list[Write[object]]) -> None:
        try:
            self._loop.call_soon_threadsafe(_settle, batch)
        except RuntimeError:
            pass  # the loop ended without close(): there are no callers any more


def rows(connection: apsw.Connection, shape: Callable[..., T], sql: str, *values: str | int | bytes) -> list[T]:
    """All rows of a query, each as a `shape` of its columns. The tables are STRICT, so types are as declared."""
    return [shape(*row) for row in connection.execute(sql, values).fetchall()]


def each_row(connection: apsw.Connection, shape: Callable[..., T], sql: str, *values: str | int | bytes) -> Iterable[T]:
    """The same one by one, for many rows in a thread: the event loop gets the interpreter in between."""
    return with_pauses(shape(*row) for row in connection.execute(sql, values))


def _log_failure(future: asyncio.Future[None]) -> None:
    error = None if future.cancelled() else future.exception()
    if error is not None and not isinstance(error, StorageFailed):  # already logged
        log.error("a background write failed", exc_info=error)


def _settle(batch: list[Write[object]]) -> None:
    for write in batch:
        write.settle()


def _make_private(path: Path) -> None:
    """Make a new file readable by its owner only. SQLite's files beside it get the same mode."""
    with suppress(OSError):  # SQLite reports why it cannot be opened
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _open(path: Path, flags: int) -> apsw.Connection:
    try:
        connection = apsw.Connection(str(path), flags=flags)
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON").fetchall()
        return connection
    except apsw.Error as error:
        raise _start_error(path, error) from None


def _start_error(path: Path, error: apsw.Error) -> StartError:
    """The error for a database that cannot be used at the start, with a hint."""
    if isinstance(error, apsw.NotADBError):
        return damaged(f"{path} is not a database")
    if isinstance(error, apsw.CorruptError):
        return damaged(f"{path} is damaged: {error}")
    return StartError(
        f"{path} cannot be opened: {error}", "check that the disk has free space and the folder is writable"
    )


def damaged(message: str) -> StartError:
    return StartError(
        message,
        "restore the data folder from a backup (docs/guides/backup.md), or move the file away to start with a new one",
    )


def database_folder(connection: apsw.Connection) -> Path:
    """The folder of a connection's file."""
    return Path(connection.filename).parent
