"""Runs a translated query, in a thread, with bounds on its time and its answer."""

from __future__ import annotations

import time
from typing import Any

import apsw
import msgspec

from atoll.bindings.analytics_engine.points import COLUMNS, DataPoints
from atoll.bindings.analytics_engine.sql.expressions import QUOTED
from atoll.bindings.analytics_engine.sql.parse import MAX_ROWS, QueryReader, Translated
from atoll.bindings.analytics_engine.sql.tokens import QueryError
from atoll.errors import StorageFailed
from atoll.offload.threads import in_thread
from atoll.pauses import with_pauses

MAX_QUERY = 10_000  # characters
SECONDS = 5.0
MAX_BYTES = 8 << 20  # of an answer
STEPS = 20_000  # of SQLite, between two looks at the clock


def translate(points: DataPoints, tenant: str, query: str) -> Translated:
    """Raises QueryError."""
    if len(query) > MAX_QUERY:
        raise QueryError(f"the query has more than {MAX_QUERY:,} characters")

    def source(name: str) -> str:
        dataset = points.find(tenant, name)
        if dataset is None:
            raise QueryError(f"there is no dataset {name[:80]}")
        columns = [f"ifnull({column}, {0 if column.startswith('d') else repr('')}) AS {column}" for column in COLUMNS]
        return (
            f"SELECT '{dataset.name}' AS dataset, timestamp, 1 AS _sample_interval, {', '.join(columns)}"
            f" FROM points WHERE dataset = {dataset.id} AND timestamp >= {points.oldest}"
        )  # fmt: skip

    return QueryReader(query, source).query()


async def run(points: DataPoints, tenant: str, query: str) -> tuple[bytes, str]:
    """The answer and its media type. Raises QueryError."""
    translated = await in_thread(translate, points, tenant, query)
    if translated.shows_tables:
        return _answer(translated, [(each.name,) for each in points.of_tenant(tenant)])
    await points.flush()
    return await points.search(lambda connection: _answer(translated, _rows(connection, translated.sql)))


def _rows(connection: apsw.Connection, sql: str) -> list[tuple[Any, ...]]:
    until = time.monotonic() + SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > until, STEPS)
    found, size = list[tuple[Any, ...]](), 0
    try:
        for row in with_pauses(connection.execute(sql)):
            size += 20 * len(row) + sum(len(value) for value in row if isinstance(value, str))
            if size > MAX_BYTES:
                raise QueryError(f"the answer has more than {MAX_BYTES >> 20} MB: select less, or use LIMIT")
            found.append(row)
    except apsw.InterruptError:
        raise QueryError(f"the query took more than {SECONDS:g} seconds: select a shorter time") from None
    except StorageFailed:
        raise
    except apsw.SQLError as error:
        raise QueryError(f"the query cannot be run: {error}") from None
    finally:
        connection.set_progress_handler(None)
    if len(found) > MAX_ROWS:
        raise QueryError(f"the answer has more than {MAX_ROWS:,} rows: use LIMIT")
    return found


def _answer(translated: Translated, found: list[tuple[Any, ...]]) -> tuple[bytes, str]:
    names = [name for name, _ in translated.columns]
    kinds = [kind for _, kind in translated.columns]
    if translated.format == "TabSeparated":
        lines = ("\t".join(_tab_text(value) for value in row) for row in with_pauses(found))
        return "".join(f"{line}\n" for line in lines).encode(), "text/tab-separated-values; charset=UTF-8"
    data = [
        {
            name: str(value) if kind in QUOTED and isinstance(value, int) else value
            for name, kind, value in zip(names, kinds, row, strict=True)
        }
        for row in with_pauses(found)
    ]  # fmt: skip
    if translated.format == "JSONEachRow":
        return b"".join(msgspec.json.encode(row) + b"\n" for row in with_pauses(data)), "application/x-ndjson"
    answer = {
        "meta": [{"name": name, "type": kind} for name, kind in translated.columns],
        "data": data, "rows": len(data), "rows_before_limit_at_least": len(data),
    }  # fmt: skip
    return msgspec.json.encode(answer) + b"\n", "application/json"


def _tab_text(value: object) -> str:
    if value is None:
        return "\\N"
    return str(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")
