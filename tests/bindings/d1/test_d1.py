# ruff: noqa: E501 (workers as strings read best on one line)
"""D1 as a worker sees it, in a real engine: the whole API, its conversions and its messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.running import Atoll

RUNNER = """
const SOURCES = TESTS;
export default {
  async fetch(request, env) {
    const test = SOURCES[decodeURIComponent(new URL(request.url).pathname.slice(1))];
    try {
      return Response.json({ value: (await test(env.DB, env)) ?? null });
    } catch (error) {
      return Response.json({ value: `${error.name}: ${error.message}${error.cause ? ` < ${error.cause.message}` : ""}` });
    }
  },
};
"""
SCHEMA = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, data BLOB)"
TESTS = {
    "schema": f"return (await DB.exec('{SCHEMA}')).count;",
    "insert": """
      const { success, meta, results } = await DB.prepare("INSERT INTO t (name) VALUES (?)").bind("Ada").run();
      const more = await DB.prepare("INSERT INTO t (name) VALUES (?1), (?2)").bind("Bob", "Cid").run();
      const read = await DB.prepare("SELECT * FROM t").all();
      const each = ({ changes, last_row_id, changed_db, rows_written }) => [changes, last_row_id, changed_db, rows_written > 0];
      return [success, results, each(meta), each(more.meta), each(read.meta), Object.keys(meta).sort(), meta.size_after > 0, read.meta.rows_read];""",
    "read": """
      const one = DB.prepare("SELECT id, name FROM t WHERE id = ?");
      return [await one.bind(1).first(), await one.bind(2).first("name"), await one.bind(9).first(), await one.bind(9).first("name"),
        await one.bind(1).raw(), await one.bind(1).raw({ columnNames: true }), (await one.bind(1).all()).results,
        await DB.prepare("UPDATE t SET name = name").first()];""",
    "column": 'return DB.prepare("SELECT id FROM t").first("none");',
    "types": """
      const made = DB.prepare("SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS e, ? AS f, ? AS g");
      const bytes = new Uint8Array([9, 1, 2, 9]).subarray(1, 3);
      return made.bind(1.5, "ü", true, null, bytes, new Uint8Array([3]).buffer, [0, 255]).first();""",
    "undefined": 'DB.prepare("SELECT ?").bind(undefined);',
    "bigint": 'DB.prepare("SELECT ?").bind(1n);',
    "object": 'DB.prepare("SELECT ?").bind({});',
    "missing table": 'return DB.prepare("SELECT * FROM none").all();',
    "syntax": 'return DB.prepare("SELEC").all();',
    "nothing": 'return DB.prepare("-- a comment").run();',
    "empty batch": "return DB.batch([]);",
    "not a statement": 'return DB.batch(["SELECT 1"]);',
    "begin": 'return DB.prepare("BEGIN TRANSACTION").run();',
    "ours": 'return DB.prepare("SELECT * FROM _cf_KV").run();',
    "binds": 'return DB.prepare("SELECT ?, ?").bind(1).run();',
    "batch": """
      const insert = DB.prepare("INSERT INTO t (id, name) VALUES (?, ?)");
      const results = await DB.batch([insert.bind(10, "x"), insert.bind(11, "y"), DB.prepare("SELECT count(*) AS n FROM t WHERE id >= 10")]);
      return results.map((each) => [each.success, each.results, each.meta.changes]);""",
    "failing batch": """
      const insert = DB.prepare("INSERT INTO t (id, name) VALUES (?, ?)");
      const said = await DB.batch([insert.bind(20, "new"), insert.bind(21, "x")]).catch((error) => error.message);
      return [said, await DB.prepare("SELECT count(*) AS n FROM t WHERE id >= 20").first("n")];""",
    "same statement twice": 'const s = DB.prepare("SELECT 1 AS one"); return (await DB.batch([s, s])).map((each) => each.results);',
    "bind makes a new one": 'const s = DB.prepare("SELECT ? AS v"); const a = s.bind(1), b = s.bind(2); return [await a.first("v"), await b.first("v")];',
    "exec": 'const done = await DB.exec("INSERT INTO t (id) VALUES (30); INSERT INTO t (id) VALUES (31);\\nDELETE FROM t WHERE id = 30;"); return [done.count, typeof done.duration, (await DB.prepare("SELECT id FROM t WHERE id >= 30").raw()).flat()];',
    "failing exec": 'const said = await DB.exec("INSERT INTO t (id) VALUES (40)\\nSELECT * FROM none").catch((error) => error.message); return [said, await DB.prepare("SELECT * FROM t WHERE id = 40").first()];',
    "dump": "return DB.dump();",
    "session": """
      const session = DB.withSession("first-primary"), before = session.getBookmark();
      await session.prepare("SELECT 1").run();
      const bookmark = session.getBookmark();
      const next = DB.withSession(bookmark);
      await next.batch([next.prepare("SELECT 2")]);
      return [before, typeof bookmark, next.getBookmark() > bookmark, typeof DB.withSession().prepare];""",
    "any session": 'return [DB.withSession("yesterday").getBookmark(), DB.withSession(" ").getBookmark(), typeof (await DB.withSession("x").prepare("SELECT 1").first())];',
    "tags": "return [Object.prototype.toString.call(DB), Object.keys(DB)];",
    "large": 'return DB.prepare("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 40) SELECT hex(zeroblob(250000)) FROM n").all();',
    "nearly too large": 'return (await DB.prepare("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 33) SELECT hex(zeroblob(250000)) AS h FROM n").raw()).length;',
    "two at once": 'return Promise.all(Array.from({ length: 20 }, () => DB.prepare("INSERT INTO t (name) VALUES (NULL) RETURNING id").first("id"))).then((ids) => new Set(ids).size);',
}
EXPECTED: dict[str, Any] = {
    "insert": [
        True,
        [],
        [1, 1, True, True],
        [2, 3, True, True],
        [0, 3, False, False],
        ["changed_db", "changes", "duration", "last_row_id", "rows_read", "rows_written", "served_by", "served_by_primary", "size_after", "timings", "total_attempts"],
        True,
        3,
    ],
    "read": [
        {"id": 1, "name": "Ada"}, "Bob", None, None, [[1, "Ada"]], [["id", "name"], [1, "Ada"]], [{"id": 1, "name": "Ada"}], None,
    ],
    "column": "Error: D1_COLUMN_NOTFOUND: Column not found (none) < Column not found",
    "types": {"a": 1.5, "b": "ü", "c": 1, "d": None, "e": [1, 2], "f": [3], "g": [0, 255]},
    "undefined": "Error: D1_TYPE_ERROR: Type 'undefined' not supported for value 'undefined' < Type 'undefined' not supported for value 'undefined'",
    "bigint": "Error: D1_TYPE_ERROR: Type 'bigint' not supported for value '1' < Type 'bigint' not supported for value '1'",
    "object": "Error: D1_TYPE_ERROR: Type 'object' not supported for value '[object Object]' < Type 'object' not supported for value '[object Object]'",
    "missing table": "Error: D1_ERROR: no such table: none: SQLITE_ERROR < no such table: none: SQLITE_ERROR",
    "syntax": 'Error: D1_ERROR: near "SELEC": syntax error at offset 0: SQLITE_ERROR < near "SELEC": syntax error at offset 0: SQLITE_ERROR',
    "nothing": "Error: D1_ERROR: No SQL statements detected. < No SQL statements detected.",
    "empty batch": "Error: D1_ERROR: No SQL statements detected. < No SQL statements detected.",
    "batch": [[True, [], 1], [True, [], 1], [True, [{"n": 2}], 0]],
    "failing batch": ["D1_ERROR: UNIQUE constraint failed: t.name: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)", 0],
    "same statement twice": [[{"one": 1}], [{"one": 1}]],
    "bind makes a new one": [1, 2],
    "exec": [2, "number", [31]],
    "failing exec": ["D1_EXEC_ERROR: Error in line 1: INSERT INTO t (id) VALUES (40): no such table: none: SQLITE_ERROR", None],
    "session": [None, "string", True, "function"],
    "any session": ["yesterday", None, "object"],
    "tags": ["[object D1Database]", []],
    "nearly too large": 33,
    "two at once": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def node(atoll: Atoll) -> Atoll:
    table = ",\n".join(f"{json.dumps(key)}: async (DB, env) => {{ {code} }}" for key, code in TESTS.items())
    bindings = [{"type": "d1", "name": "DB", "database": "tested"}]
    source = RUNNER.replace("TESTS", f"{{ {table} }}", 1)
    atoll.deploy("d1", source, bindings=bindings, limits={"cpu_ms": 5000})
    assert run(atoll, "schema") == 1
    return atoll


def run(node: Atoll, test: str) -> Any:
    answer = node.get("d1", f"/{test.replace(' ', '%20')}")
    assert answer.status == 200, answer.text
    return answer.json["value"]


def test_the_whole_api(node: Atoll) -> None:
    """In order: later ones read what earlier ones wrote."""
    assert {test: run(node, test) for test in EXPECTED} == EXPECTED


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("not a statement", "TypeError: "),
        ("begin", "Error: D1_ERROR: To execute a transaction"),
        ("ours", "Error: D1_ERROR: "),
        ("binds", "Error: D1_ERROR: Wrong number of parameter bindings"),
        ("dump", "Error: D1_DUMP_ERROR: "),
        ("large", "Error: D1_ERROR: The result is larger than 16 MB: ask for fewer rows, with LIMIT."),
    ],
)
def test_errors_say_what_is_wrong(node: Atoll, test: str, words: str) -> None:
    said = run(node, test)
    assert isinstance(said, str) and said.startswith(words), said
