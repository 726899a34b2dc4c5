"""The SQL of logs.db: insert records, find them, delete the oldest. Only functions of a connection.

A search goes from new to old in steps of STEP rows. A search with few matches ends after a time limit with a cursor,
where the next call continues, instead of holding a thread until it has read everything.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw
from msgspec import Struct

from atoll.logs import Invocation
from atoll.observe.error_groups import count_errors
from atoll.observe.records import LogEntry, Row, encode_json, entry_of, row_of, says

STEP = 20_000  # rows read in one step
PAGE_BYTES = 1 << 20  # of the records of one answer
QUERY_SECONDS = 2.0  # seconds after which no further step begins
ERASE_ROWS = 2_000  # rows deleted in one transaction
FOREVER = 2**62
BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
ROWS_AT_ONCE = 50  # in one statement: while SQLite runs it, the event loop has the GIL
# Pause between two statements, so that calls do not wait while the rows of a batch are made; shorter for large batches.
PAUSE_SECONDS = 0.004
PAUSES_SECONDS = 0.2
MARKS = f"({','.join('?' * len(Row._fields))})"


class TablePlace(NamedTuple):
    """The position of a record among those of its worker."""

    at: int
    id: int


class Question(Struct, frozen=True):
    """A filter for records. Times are ms since 1970; `until` is exclusive."""

    worker: str
    limit: int = 100
    before: TablePlace | None = None  # the cursor of the last page
    since: int = 0
    until: int = FOREVER
    outcome: int | None = None
    level: int | None = None  # this level or a more serious one
    version: str = ""
    text: str = ""

    @property
    def sieves(self) -> bool:
        """Whether it filters by more than worker and time, so that a page may need many rows."""
        return self.outcome is not None or self.level is not None or bool(self.version or self.text)


class Found(NamedTuple):
    entries: list[LogEntry]
    rest: TablePlace | None  # where the next page begins; None at the end


def insert(connection: apsw.Connection, records: Sequence[Invocation]) -> None:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()

    def rows() -> Iterator[Row]:  # made one by one: the event loop can run in between
        for record in records:
            row = row_of(record)
            counts[row.worker] += 1
            sizes[row.worker] += row.bytes
            yield row

    last = last_id(connection)
    made = rows()
    pause = min(PAUSE_SECONDS, PAUSES_SECONDS * ROWS_AT_ONCE / max(len(records), 1))
    while some := list(itertools.islice(made, ROWS_AT_ONCE)):
        values = ",".join([MARKS] * len(some))
        connection.execute(f"INSERT INTO records VALUES {values}", list(itertools.chain.from_iterable(some)))
        if len(some) == ROWS_AT_ONCE:
            time.sleep(pause)
    if any(record.failure is not None for record in records):
        count_errors(connection, records, last + 1)
    tenants = {record.version.worker_id: record.version.tenant for record in records}
    connection.executemany(
        "INSERT INTO totals VALUES (?1, ?2, ?3, ?4) "
        "ON CONFLICT (worker) DO UPDATE SET records = records + ?3, bytes = bytes + ?4",
        [(worker, tenants[worker], count, sizes[worker]) for worker, count in counts.items()],
    )


def last_id(connection: apsw.Connection) -> int:
    [(last,)] = connection.execute("SELECT coalesce(max(id), 0) FROM records").fetchall()
    assert isinstance(last, int)
    return last


def find(connection: apsw.Connection, question: Question) -> Found:
    """A page of a search. It has a cursor if it is full, or if the time was up before the end.

    A page is full with `limit` records, or once its records exceed PAGE_BYTES.
    """
    deadline = time.monotonic() + QUERY_SECONDS
    entries: list[LogEntry] = []
    size = 0
    before = question.before or TablePlace(question.until, 0)
    while True:
        stop = _step_end(connection, question, before) if question.sieves else None
        for row in _matches(connection, question, before, stop):
            entry = entry_of(row)
            if not question.text or says(entry, question.text):
                entries.append(entry)
                size += row.bytes
                if len(entries) == question.limit or size >= PAGE_BYTES:
                    return Found(entries, TablePlace(row.at, row.id or 0))
        if stop is None:
            return Found(entries, None)
        before = stop
        if time.monotonic() > deadline:
            return Found(entries, before)


def _step_end(connection: apsw.Connection, question: Question, before: TablePlace) -> TablePlace | None:
    """The last place of the next step; None when it is the last step."""
    row = connection.execute(
        "SELECT at, id FROM records WHERE worker = ? AND (at, id) < (?, ?) AND at >= ? "
        "ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?",
        (question.worker, *before, question.since, STEP - 1),
    ).fetchone()
    return None if row is None else TablePlace(*row)


def _matches(
    connection: apsw.Connection, question: Question, before: TablePlace, stop: TablePlace | None
) -> Iterable[Row]:
    where = ["worker = ?", "(at, id) < (?, ?)", "(at, id) >= (?, ?)"]
    values: list[str | int] = [question.worker, *before, *(stop or TablePlace(question.since, 0))]
    if question.outcome is not None:
        where.append("outcome = ?")
        values.append(question.outcome)
    if question.level is not None:
        where.append("level >= ?")
        values.append(question.level)
    if question.version:
        where.append("version = ?")
        values.append(question.version)
    if question.text:  # a rough filter: `says` makes the exact check
        where.append("(url LIKE ? ESCAPE '\\' OR rest LIKE ? ESCAPE '\\')")
        values += [_pattern(question.text), _pattern(encode_json(question.text).decode()[1:-1])]
    sql = f"SELECT * FROM records WHERE {' AND '.join(where)} ORDER BY at DESC, id DESC LIMIT ?"
    limit = -1 if question.text else question.limit
    return (Row(*row) for row in connection.execute(sql, (*values, limit)))


def _pattern(text: str) -> str:
    for letter in "\\%_":
        text = text.replace(letter, "\\" + letter)
    # SQLite ignores case for ASCII only, so every other run of characters becomes a wildcard.
    return f"%{BEYOND_ASCII.sub('%', text)}%"


# Deleting


def erase(connection: apsw.Connection, worker: str) -> bool:
    """Delete some of the oldest records of a worker. Returns whether there are more."""
    erased = _erase_oldest(connection, worker, ERASE_ROWS)
    if erased == ERASE_ROWS:
        return True
    connection.execute("DELETE FROM totals WHERE worker = ?", (worker,))
    connection.execute("DELETE FROM errors WHERE worker = ?", (worker,))
    return False


def strangers(connection: apsw.Connection, known: set[str]) -> list[str]:
    """Deleted workers that still have records, because their erasure was interrupted."""
    return [worker for (worker,) in connection.execute("SELECT worker FROM totals") if worker not in known]


def trim(connection: apsw.Connection, oldest: int, max_bytes: int) -> bool:
    """Delete some of the records older than `oldest` or above the size limit. Returns whether there is more to do."""
    rows = connection.execute(
        "DELETE FROM records WHERE id IN (SELECT id FROM records ORDER BY id LIMIT ?) AND at < ? "
        "RETURNING worker, bytes",
        (ERASE_ROWS, oldest),
    ).fetchall()
    _subtract(connection, rows)
    connection.execute("DELETE FROM errors WHERE last_seen < ?", (oldest,))
    more = len(rows) == ERASE_ROWS
    if used_bytes(connection) > max_bytes:
        worker = _who_pays(connection)
        more = worker is not None and _erase_oldest(connection, worker, ERASE_ROWS) > 0
    return more


def used_bytes(connection: apsw.Connection) -> int:
    """The size of the records on disk. Free pages are reused and do not count."""
    pages, free, size = (connection.pragma(name) for name in ("page_count", "freelist_count", "page_size"))
    assert isinstance(pages, int) and isinstance(free, int) and isinstance(size, int)
    return (pages - free) * size


def _who_pays(connection: apsw.Connection) -> str | None:
    """The largest worker of the largest tenant, so that no tenant loses logs because of another."""
    row = connection.execute(
        "SELECT worker FROM totals WHERE tenant = "
        "(SELECT tenant FROM totals GROUP BY tenant ORDER BY sum(bytes) DESC LIMIT 1) ORDER BY bytes DESC LIMIT 1"
    ).fetchone()
    return None if row is None else row[0]


def _erase_oldest(connection: apsw.Connection, worker: str, count: int) -> int:
    rows = connection.execute(
        "DELETE FROM records WHERE id IN (SELECT id FROM records WHERE worker = ? ORDER BY at, id LIMIT ?) "
        "RETURNING worker, bytes",
        (worker, count),
    ).fetchall()
    _subtract(connection, rows)
    return len(rows)


def _subtract(connection: apsw.Connection, gone: Iterable[tuple[Any, ...]]) -> None:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for worker, size in gone:
        counts[worker] += 1
        sizes[worker] += size
    connection.executemany(
        "UPDATE totals SET records = records - ?, bytes = bytes - ? WHERE worker = ?",
        [(count, sizes[worker], worker) for worker, count in counts.items()],
    )
