"""The logs of every worker: recorded on the hot path, stored by a thread, read through the API.

`record` runs once per call on the event loop, so it only appends to a bounded list; twice a second the list goes to
the writer of logs.db. Records that do not fit are dropped and counted; the next kept record has their number, so that
every call is either a record or counted in one. There are four limits: records per second of one worker (twice as many
for calls with console lines or errors), records per second of quiet calls on the whole node, which tenants share
equally, bytes that wait, and bytes on disk, where the largest tenant loses records first. Only records of opened
workers are kept, so that a call that ends after its worker was deleted leaves no record.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import apsw
from msgspec.structs import replace

from atoll.clock import SteadyClock
from atoll.config import Settings
from atoll.db.sqlite import Database
from atoll.errors import StorageFailed
from atoll.logs import Invocation, Said
from atoll.observe import table
from atoll.observe.live import Listener
from atoll.observe.table import Found, Question

log = logging.getLogger("atoll.logs")

LOGS_FILE = "logs.db"
FLUSH_SECONDS = 0.5
TRIM_SECONDS = 5.0
HOUSE_SECONDS = 3_600.0
TRIM_STEPS = 20  # of one trim; the next one continues
WAITING_BYTES = 32 << 20  # of records that are not stored yet
RECORD_BYTES = 400  # of a record without its texts


class Book:
    """The state of one worker's records while the node runs."""

    __slots__ = ("dropped", "listeners", "quiet_share", "skipped", "taken")

    def __init__(self, quiet_share: int) -> None:
        self.taken = 0  # records since the last flush
        self.quiet_share = quiet_share  # with so many records, quiet calls get none until the next flush
        self.dropped = 0  # records dropped since the node started
        self.skipped = 0  # records dropped since the last kept record; stored with the next one
        self.listeners: tuple[Listener, ...] = ()


class LogStore:
    """Made on the event loop. `close` stores the waiting records."""

    def __init__(
        self,
        folder: Path,
        *,
        rate: int = 1_000,
        quiet_rate: int = 2_000,
        max_bytes: int = 512 << 20,
        days: float = 7.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        migrations = resources.files("atoll.observe") / "migrations"
        self._database = Database(folder / LOGS_FILE, migrations=migrations, synchronous="NORMAL")
        self._loop = asyncio.get_running_loop()
        self._share = max(int(rate * FLUSH_SECONDS), 1)
        self._quiet_room = max(int(quiet_rate * FLUSH_SECONDS), 1)  # of the node between two flushes
        self._max_bytes = max_bytes
        self._max_age_ms = days * 86_400_000
        self._clock = clock or SteadyClock()  # a wall clock that is wrong for a while must not expire records
        # While it runs
        self._books: dict[str, Book] = {}  # by worker id
        self._sharing: list[Book] = []  # have less than the full share, because many workers are busy
        self._next_trim = 0.0
        self._hung_up = False
        self.want_lines: Callable[[bool], None] = lambda wanted: None  # called for the first and the last listener
        self._dropped_before = 0  # records of deleted workers
        # Until the next flush
        self._waiting: list[Invocation] = []
        self._weight = 0
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._housekeeping = self._loop.call_soon(self._keep_house)

    @classmethod
    def of(cls, settings: Settings) -> LogStore:
        return cls(
            settings.data,
            rate=settings.log_rate,
            quiet_rate=settings.log_quiet_rate,
            max_bytes=settings.log_bytes,
            days=settings.log_days,
        )

    # The workers

    def open(self, worker_id: str) -> None:
        """Start to keep the records of a worker."""
        self._books.setdefault(worker_id, Book(self._share))

    def drop(self, worker_id: str) -> None:
        """Forget a worker and all its records."""
        book = self._books.pop(worker_id, None)
        if book is None:
            return
        self._dropped_before += book.dropped
        for listener in book.listeners:
            listener.close()
        self._waiting = [record for record in self._waiting if record.version.worker_id != worker_id]
        self._erase(worker_id)

    def forget_strangers(self) -> None:
        """Erase leftover records of workers that were deleted before a restart. Called once every worker is open."""
        known = set(self._books)
        for worker_id in self._database.read(lambda connection: table.strangers(connection, known)):
            self._erase(worker_id)

    def _erase(self, worker_id: str) -> None:
        """In steps, between which records of others are stored."""

        def step(connection: apsw.Connection) -> None:
            if table.erase(connection, worker_id):
                self._loop.call_soon_threadsafe(self._erase, worker_id)

        self._database.post(step)

    # Recording

    def wants(self, worker_id: str) -> bool:
        """Whether a call without console lines would get a record. If not, it is counted as dropped."""
        book = self._books.get(worker_id)
        if book is None:
            return False
        if book.taken < book.quiet_share and self._weight <= WAITING_BYTES:
            return True
        for listener in book.listeners:
            if listener.has_room:
                return True
        for listener in book.listeners:
            listener.dropped += 1
        book.dropped += 1
        book.skipped += 1
        return False

    def record(self, record: Invocation) -> None:
        book = self._books.get(record.version.worker_id)
        if book is None:
            return
        for listener in book.listeners:
            listener.put(record)
        spoke = record.logs or record.failure is not None
        if book.taken >= (2 * self._share if spoke else book.quiet_share) or self._weight > WAITING_BYTES:
            book.dropped += 1
            book.skipped += 1
            return
        book.taken += 1
        if book.skipped:
            record, book.skipped = record._replace(skipped=book.skipped), 0
        self._weight += RECORD_BYTES + (record.weight() if spoke else len(record.head))
        waiting = self._waiting
        waiting.append(record)
        if self._timer is None:
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush)

    def hear(self, said: Said) -> None:
        """Send a console line to live listeners. It is stored later, with the record of its call."""
        book = self._books.get(said.version.worker_id)
        for listener in book.listeners if book is not None else ():
            if listener.wants_lines:
                listener.put(said)

    def dropped(self, worker_id: str) -> int:
        """The number of a worker's records that were dropped since the node started."""
        book = self._books.get(worker_id)
        return 0 if book is None else book.dropped

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is not None:  # a slow disk: the waiting records go with the next flush, within their limit
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush)
            return
        batch, self._waiting, self._weight = self._waiting, [], 0
        if batch:
            self._share_out(batch)
            self._writing = self._loop.create_task(self._write(batch))

    def _share_out(self, batch: list[Invocation]) -> None:
        """Begin a new interval: divide the room for quiet calls among the tenants of the last one and their workers."""
        for book in self._sharing:
            book.quiet_share = self._share
        tenants: dict[str, dict[str, Book]] = {}
        for record in batch:
            version = record.version
            tenants.setdefault(version.tenant, {})[version.worker_id] = self._books[version.worker_id]
        room = self._quiet_room // len(tenants)
        self._sharing = []
        for books in tenants.values():
            share = max(room // len(books), 1)  # a worker in use always shows some of its calls
            for book in books.values():
                book.taken = 0
                if share < self._share:
                    book.quiet_share = share
                    self._sharing.append(book)

    async def _write(self, batch: list[Invocation]) -> None:
        try:
            await self._database.write(lambda connection: table.insert(connection, batch))
            await self._trim()
        except Exception as error:
            details = None if isinstance(error, StorageFailed) else error  # any other error is a bug in Atoll
            log.error("%d log records could not be stored: %s", len(batch), error, exc_info=details)
            for record in batch:
                book = self._books.get(record.version.worker_id)
                if book is not None:
                    book.dropped += 1
                    book.skipped += 1 + record.skipped
        finally:
            self._writing = None

    async def _trim(self) -> None:
        """Delete records that are too old or exceed the size limit, in steps."""
        now = self._clock()
        if now < self._next_trim:
            return
        oldest = self._oldest()
        for _ in range(TRIM_STEPS):
            if not await self._database.write(lambda connection: table.trim(connection, oldest, self._max_bytes)):
                self._next_trim = now + TRIM_SECONDS
                return

    def _oldest(self) -> int:
        return int(self._clock() * 1000 - self._max_age_ms)

    def _keep_house(self) -> None:
        """Trim at the start and at intervals: records expire also on a node without calls."""
        oldest = self._oldest()

        def step(connection: apsw.Connection) -> None:
            if table.trim(connection, oldest, self._max_bytes):
                self._loop.call_soon_threadsafe(self._keep_house)

        self._database.post(step)
        self._housekeeping.cancel()
        self._housekeeping = self._loop.call_later(HOUSE_SECONDS, self._keep_house)

    # Reading

    async def find(self, question: Question) -> Found:
        """Stored records that are not too old, including everything recorded before this call."""
        await self.settle()
        question = replace(question, since=max(question.since, self._oldest()))
        return await self._database.search(lambda connection: table.find(connection, question))

    async def settle(self) -> None:
        """Wait until everything recorded so far is stored."""
        for _ in range(2):  # first a running write, then the one with the records that wait now
            if self._writing is None:
                self._flush()
            if self._writing is not None:
                await asyncio.shield(self._writing)

    def listen(self, worker_id: str, *, lines: bool = False) -> Listener:
        """Listen to the calls and console lines of a worker, until `unlisten`."""
        listener = Listener(wants_lines=lines)
        book = self._books.get(worker_id)
        if book is None or self._hung_up:
            listener.close()
        else:
            book.listeners += (listener,)
            if lines:
                self.want_lines(True)
        return listener

    def unlisten(self, worker_id: str, listener: Listener) -> None:
        book = self._books.get(worker_id)
        if book is not None:
            book.listeners = tuple(other for other in book.listeners if other is not listener)
        if listener.wants_lines and not any(o.wants_lines for book in self._books.values() for o in book.listeners):
            self.want_lines(False)

    def counts(self) -> tuple[int, int]:
        """The number of dropped records of all workers, and the number of listeners."""
        books = self._books.values()
        return self._dropped_before + sum(book.dropped for book in books), sum(len(book.listeners) for book in books)

    def hang_up(self) -> None:
        """End every listener and refuse new ones: the node stops."""
        self._hung_up = True
        for book in self._books.values():
            for listener in book.listeners:
                listener.close()

    async def close(self) -> None:
        await self.settle()
        if self._timer is not None:
            self._timer.cancel()
        self._housekeeping.cancel()
        await self._database.close()
