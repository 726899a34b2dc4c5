"""The SQL of logs.db: put records in, find them, let the oldest go. Functions of a connection, nothing else.

A question is answered newest first in steps of STEP rows, so that one which matches little ends after a while with a
cursor from which the next call goes on, instead of holding a thread until it has read everything.
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
from atoll.observe.records import LogEntry, Row, encode_json, entry_of, row_of, says

STEP = 20_000  # rows looked at in one go
QUERY_SECONDS = 2.0  # a step may be the last one after so long
ERASE_ROWS = 2_000  # rows deleted in one transaction
FOREVER = 2**62
BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
ROWS_AT_ONCE = 50  # in one statement: while SQLite runs it the event loop has Python to itself
# Between two statements, lest calls wait while all rows of a batch are made; less of it when there are very many.
PAUSE_SECONDS = 0.004
PAUSES_SECONDS = 0.2
MARKS = f"({','.join('?' * len(Row._fields))})"


class Place(NamedTuple):
    """Where a record stands among those of its worker."""

    at: int
    id: int


class Question(Struct, frozen=True):
    """Which records are wanted. Times are ms since 1970; `until` does not count itself."""

    worker: str
    limit: int = 100
    before: Place | None = None  # the cursor of the last answer
    since: int = 0
    until: int = FOREVER
    outcome: int | None = None
    level: int | None = None  # at least this bad
    version: str = ""
    text: str = ""

    @property
    def sieves(self) -> bool:
        """Whether records of the worker and time are left out, so that many may have to be looked at."""
        return self.outcome is not None or self.level is not None or bool(self.version or self.text)


class Found(NamedTuple):
    entries: list[LogEntry]
    rest: Place | None  # where to go on; None at the end


def insert(connection: apsw.Connection, records: Sequence[Invocation]) -> None:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()

    def rows() -> Iterator[Row]:  # made one by one: the event loop gets its turn between two of them
        for record in records:
            row = row_of(record)
            counts[row.worker] += 1
            sizes[row.worker] += row.bytes
            yield row

    made = rows()
    pause = min(PAUSE_SECONDS, PAUSES_SECONDS * ROWS_AT_ONCE / max(len(records), 1))
    while some := list(itertools.islice(made, ROWS_AT_ONCE)):
        values = ",".join([MARKS] * len(some))
        connection.execute(f"INSERT INTO records VALUES {values}", list(itertools.chain.from_iterable(some)))
        if len(some) == ROWS_AT_ONCE:
            time.sleep(pause)
    tenants = {record.version.worker_id: record.version.tenant for record in records}
    connection.executemany(
        "INSERT INTO totals VALUES (?1, ?2, ?3, ?4) "
        "ON CONFLICT (worker) DO UPDATE SET records = records + ?3, bytes = bytes + ?4",
        [(worker, tenants[worker], count, sizes[worker]) for worker, count in counts.items()],
    )


def find(connection: apsw.Connection, question: Question) -> Found:
    """A page of what is asked for. It has a cursor when it is full, or when time was up before the end."""
    deadline = time.monotonic() + QUERY_SECONDS
    entries: list[LogEntry] = []
    before = question.before or Place(question.until, 0)
    while True:
        stop = _step_end(connection, question, before) if question.sieves else None
        for row in _matches(connection, question, before, stop):
            entry = entry_of(row)
            if not question.text or says(entry, question.text):
                entries.append(entry)
                if len(entries) == question.limit:
                    return Found(entries, Place(row.at, row.id or 0))
        if stop is None:
            return Found(entries, None)
        before = stop
        if time.monotonic() > deadline:
            return Found(entries, before)


def _step_end(connection: apsw.Connection, question: Question, before: Place) -> Place | None:
    """The last place of the next step; None when it is the last step."""
    row = connection.execute(
        "SELECT at, id FROM records WHERE worker = ? AND (at, id) < (?, ?) AND at >= ? "
        "ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?",
        (question.worker, *before, question.since, STEP - 1),
    ).fetchone()
    return None if row is None else Place(*row)


def _matches(connection: apsw.Connection, question: Question, before: Place, stop: Place | None) -> Iterable[Row]:
    where = ["worker = ?", "(at, id) < (?, ?)", "(at, id) >= (?, ?)"]
    values: list[str | int] = [question.worker, *before, *(stop or Place(question.since, 0))]
    if question.outcome is not None:
        where.append("outcome = ?")
        values.append(question.outcome)
    if question.level is not None:
        where.append("level >= ?")
        values.append(question.level)
    if question.version:
        where.append("version = ?")
        values.append(question.version)
    if question.text:  # a rough sieve: `says` has the last word
        where.append("(url LIKE ? ESCAPE '\\' OR rest LIKE ? ESCAPE '\\')")
        values += [_pattern(question.text), _pattern(encode_json(question.text).decode()[1:-1])]
    sql = f"SELECT * FROM records WHERE {' AND '.join(where)} ORDER BY at DESC, id DESC LIMIT ?"
    limit = -1 if question.text else question.limit
    return (Row(*row) for row in connection.execute(sql, (*values, limit)))


def _pattern(text: str) -> str:
    for letter in "\\%_":
        text = text.replace(letter, "\\" + letter)
    # SQLite knows upper and lower case of ASCII only: every other letter may be any, and any number of them.
    return f"%{BEYOND_ASCII.sub('%', text)}%"


# Letting go


def erase(connection: apsw.Connection, worker: str) -> bool:
    """Delete the oldest records of a worker, some of them; whether there are more."""
    erased = _erase_oldest(connection, worker, ERASE_ROWS)
    if erased == ERASE_ROWS:
        return True
    connection.execute("DELETE FROM totals WHERE worker = ?", (worker,))
    return False


def strangers(connection: apsw.Connection, known: set[str]) -> list[str]:
    """Workers that have records and do not exist any more: their erasure was cut short."""
    return [worker for (worker,) in connection.execute("SELECT worker FROM totals") if worker not in known]


def trim(connection: apsw.Connection, oldest: int, max_bytes: int) -> bool:
    """Let go of what is older than `oldest` and of what is too much, some of it; whether there is more to do."""
    rows = connection.execute(
        "DELETE FROM records WHERE id IN (SELECT id FROM records ORDER BY id LIMIT ?) AND at < ? "
        "RETURNING worker, bytes",
        (ERASE_ROWS, oldest),
    ).fetchall()
    _subtract(connection, rows)
    more = len(rows) == ERASE_ROWS
    if used_bytes(connection) > max_bytes:
        worker = _who_pays(connection)
        more = worker is not None and _erase_oldest(connection, worker, ERASE_ROWS) > 0
    return more


def used_bytes(connection: apsw.Connection) -> int:
    """What the records take on disk. Pages that were freed are used again and do not count."""
    pages, free, size = (connection.pragma(name) for name in ("page_count", "freelist_count", "page_size"))
    assert isinstance(pages, int) and isinstance(free, int) and isinstance(size, int)
    return (pages - free) * size


def _who_pays(connection: apsw.Connection) -> str | None:
    """The largest worker of the largest tenant: nobody's noise costs another tenant its logs."""
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
