"""Queries over data points: what they may use, their types, and their bounds."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from atoll.bindings.analytics_engine.points import DataPoint, DataPoints
from atoll.bindings.analytics_engine.sql import run as running
from atoll.bindings.analytics_engine.sql.run import run
from atoll.bindings.analytics_engine.sql.tokens import QueryError

BEGAN = 1_700_000_000 // 86_400 * 86_400


@pytest.fixture
async def points(tmp_path: Path) -> AsyncIterator[DataPoints]:
    points = DataPoints(tmp_path / "analytics.db", 1 << 20, 36_500)
    await points.make("t", "visits")
    for n in range(100):
        blobs: list[str | None] = [f"/p{n % 4}", None, "it's"]
        points.add("t", "visits", DataPoint(BEGAN + 60 * n, f"i{n % 3}", blobs, [float(n)]), 30)
    yield points
    await points.close()


async def rows(points: DataPoints, sql: str) -> list[dict[str, Any]]:
    content, _ = await run(points, "t", sql)
    found: list[dict[str, Any]] = msgspec.json.decode(content)["data"]
    return found


GIVES: dict[str, Any] = {
    "'it''s \\'so' || '!'": "it's 'so!",
    "count()": "100",
    "count(DISTINCT blob1)": "4",
    "uniq(index1)": "3",
    "countIf(double1 >= 50)": "50",
    "sumIf(double1, blob1 = '/p1')": 1225.0,
    "avgIf(double1, blob1 = '/p1')": 49.0,
    "quantile(0.25)(double1)": 24.75,
    "quantileExactWeighted(0.5)(double1, _sample_interval)": 49.0,
    "median(double1)": 49.5,
    "sum(_sample_interval * double1) / sum(_sample_interval)": 49.5,
    "max(timestamp)": "2023-11-14 01:39:00",
    "min(timestamp) - INTERVAL '2' MONTH": "2023-09-14 00:00:00",
    "toStartOfInterval(max(timestamp), INTERVAL '30' MINUTE)": "2023-11-14 01:30:00",
    "toStartOfWeek(max(timestamp))": "2023-11-13 00:00:00",
    "toStartOfMonth(max(timestamp))": "2023-11-01 00:00:00",
    "toUnixTimestamp(toDateTime('2023-11-14 00:00:00'))": BEGAN,
    "formatDateTime(min(timestamp), '%Y/%m')": "2023/11",
    "toHour(max(timestamp))": 1,
    "intDiv(7, 2)": "3",
    "7 / 2": 3.5,
    "-2 * -3": "6",
    "if(1 > 2, 'a', 'b')": "b",
    "CASE WHEN 1 IN (2, 3) THEN 'a' ELSE 'b' END": "b",
    "'abc' LIKE 'a%'": 1,
    "'ABC' LIKE 'a%'": 0,
    "'ABC' ILIKE 'a%'": 1,
    "2 BETWEEN 1 AND 3 AND NOT 4 BETWEEN 1 AND 3": 1,
    "startsWith('abc', 'ab') AND endsWith('abc', 'bc')": 1,
    "length('ä')": "2",
}


@pytest.mark.parametrize("expression", GIVES)
async def test_expressions(points: DataPoints, expression: str) -> None:
    assert await rows(points, f"SELECT {expression} AS it FROM visits LIMIT 1") == [{"it": GIVES[expression]}]


async def test_queries(points: DataPoints) -> None:
    grouped = "SELECT blob1 AS path, count() AS n FROM visits WHERE double1 < 50 GROUP BY path HAVING n > 12"
    assert await rows(points, f"{grouped} ORDER BY path DESC") == [
        {"path": "/p1", "n": "13"},
        {"path": "/p0", "n": "13"},
    ]
    assert await rows(points, "SELECT max(n) AS most FROM (SELECT count() AS n FROM visits GROUP BY blob1)") == [
        {"most": "25"}
    ]
    by_time = "SELECT toStartOfHour(timestamp) AS t, count() AS n FROM visits WHERE timestamp >= '2023-11-14 00:30:00' GROUP BY t ORDER BY t"
    assert await rows(points, by_time) == [
        {"t": "2023-11-14 00:00:00", "n": "30"},
        {"t": "2023-11-14 01:00:00", "n": "40"},
    ]
    assert (
        await run(
            points, "t", "SELECT double1, blob2, blob3 FROM visits ORDER BY 1 LIMIT 1 OFFSET 2 FORMAT TabSeparated"
        )
    )[0] == b"2.0\t\tit's\n"
    assert (await run(points, "t", "SHOW TABLES FORMAT JSONEachRow"))[0] == b'{"dataset":"visits"}\n'


REFUSED = [
    "", "SELECT", "SELECT 1; DROP TABLE points", "DELETE FROM visits", "SELECT * FROM points", "SELECT x FROM visits", "SELECT id FROM visits",
    "SELECT load_extension('x')", "SELECT readfile('/etc/passwd')", "SELECT 1 FROM visits UNION SELECT 1", "SELECT sum(sum(double1)) FROM visits",
    "SELECT blob1 FROM visits WHERE count() > 1", "SELECT 1 LIMIT 99999999999999999999", "SELECT '\\0", "SELECT (SELECT 1)", "SELECT blob1 AS a, blob2 AS a FROM visits",
    "SELECT " + "(" * 200 + "1" + ")" * 200, "SELECT " + "NOT " * 2_000 + "1", "SELECT " + "-" * 500 + "1", "SELECT 1 FORMAT CSV", "SELECT \x00",
    "SELECT double1 a0, " + ", ".join(f"a{n} + a{n} AS a{n + 1}" for n in range(40)) + " FROM visits", "SELECT 1 -- " + "x" * 20_000,
    "SELECT quantileWeighted(0.5)(double1, double1) FROM visits", "SELECT sum(blob1) FROM visits", "SELECT INTERVAL '1' DAY + 1", "SELECT 1 GROUP BY 7",
]  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
async def test_what_is_not_known_is_refused(points: DataPoints, sql: str) -> None:
    with pytest.raises(QueryError):
        await run(points, "t", sql)


async def test_a_query_that_takes_long_is_ended(points: DataPoints, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SECONDS", 0.0)
    monkeypatch.setattr(running, "STEPS", 10)
    with pytest.raises(QueryError, match="seconds"):
        await run(points, "t", "SELECT count() FROM visits WHERE blob1 LIKE '%x%'")
    monkeypatch.undo()
    assert await rows(points, "SELECT count() AS n FROM visits") == [{"n": "100"}]


async def test_an_answer_is_bounded(points: DataPoints, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MAX_BYTES", 1_000)
    with pytest.raises(QueryError, match="LIMIT"):
        await run(points, "t", "SELECT * FROM visits")


async def test_the_oldest_points_make_room_and_old_ones_are_deleted(tmp_path: Path) -> None:
    points = DataPoints(tmp_path / "analytics.db", 1 << 20, 10)
    await points.make("t", "visits")
    now = int(time.time())
    for n in range(3_000):
        points.add("t", "visits", DataPoint(now - 3_000 + n, "", ["x" * 900], [float(n)]), 908)
    await points.flush()
    found = await rows(points, "SELECT min(double1) AS first, max(double1) AS last FROM visits")
    assert found[0]["first"] > 1_000 and found[0]["last"] == 2_999.0
    dataset = points.find("t", "visits")
    assert dataset is not None and 0 < dataset.bytes <= 1 << 20
    points.add("t", "visits", DataPoint(now - 11 * 86_400, "old", [], []), 0)
    await points.flush()
    assert await rows(points, "SELECT count() AS n FROM visits WHERE index1 = 'old'") == [{"n": "0"}]
    before = dataset.points
    await points.close()
    again = DataPoints(tmp_path / "analytics.db", 1 << 20, 10)
    found_again = again.find("t", "visits")
    assert found_again is not None and found_again.points == before
    await again.search(lambda connection: None)
    while found_again.points == before:  # the sweep at the start deletes the old one
        await again.search(lambda connection: None)
    assert found_again.points == before - 1
    await again.close()


def of_names(text: str) -> str:
    """A query of few characters: `b` stands for 18,000."""
    return f"SELECT '{'a' * 3_000}' a, concat(a, a, a, a, a, a) b{text}"


@pytest.mark.parametrize(
    "sql",
    [
        of_names("".join(f", b c{number}" for number in range(600))),
        "SELECT*FROM(" * 50 + of_names("".join(f", b c{number}" for number in range(9))) + ")" * 50,
        of_names(" GROUP BY " + ",".join(["b"] * 3_000)),
        of_names(" ORDER BY " + ",".join(["b"] * 3_000)),
        of_names(", CASE " + "WHEN b THEN b " * 400 + "END"),
        of_names(", b IN (" + ",".join(["b"] * 3_000) + ")"),
    ],
    ids=["items", "levels", "groups", "orders", "cases", "lists"],
)
async def test_a_query_whose_names_stand_for_megabytes_is_refused(points: DataPoints, sql: str) -> None:
    began = time.process_time()
    with pytest.raises(QueryError, match=r"too much SQL|too long"):
        await run(points, "t", sql)
    assert time.process_time() - began < 0.5
