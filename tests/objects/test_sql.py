"""storage.sql: statements, cursors, values, errors, and what SQL may not do."""

from __future__ import annotations

import json
import random
from pathlib import Path

import apsw
import pytest

from tests.objects.raw_engine import RawEngine


def test_rows_of_a_statement(shared_engine: RawEngine, slot: int) -> None:
    engine = shared_engine
    engine.value(slot, 'sql.exec("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c BLOB, d REAL)")')
    engine.value(slot, 'sql.exec("INSERT INTO t VALUES (?, ?, ?, ?)", 1, "é€😀", new Uint8Array([1, 2]), 1.5)')
    assert engine.value(slot, 'return sql.exec("SELECT * FROM t").one()') == {
        "a": 1,
        "b": "é€😀",
        "c": {"buffer": [1, 2]},
        "d": 1.5,
    }
    code = 'const c = sql.exec("SELECT a, a + 1 AS b FROM t"); return [c.columnNames, [...c.raw()], c.rowsRead]'
    assert engine.value(slot, code) == [["a", "b"], [[1, 2]], 1]
    assert engine.value(slot, 'return sql.exec("SELECT 1 AS a, 2 AS a").toArray()') == [{"a": 2}]
    assert engine.value(slot, 'return Object.keys(sql.exec("SELECT 1 AS __proto__").one())') == ["__proto__"]
    assert engine.value(slot, 'return [...sql.exec("SELECT 1 AS a, 2 AS a").raw()]') == [[1, 2]]


def test_values_become_what_sqlite_knows(shared_engine: RawEngine, slot: int) -> None:
    code = (
        'return sql.exec("SELECT typeof(?1) a, ?1 v, typeof(?2) b, ?2 w, typeof(?3) c, typeof(?4) d, typeof(?5) e", '
        "true, 1n, 1, null, new ArrayBuffer(0)).one()"
    )
    found = shared_engine.value(slot, code)
    assert found == {"a": "text", "v": "true", "b": "text", "w": "1", "c": "real", "d": "null", "e": "blob"}
    huge = shared_engine.value(slot, 'return sql.exec("SELECT 9007199254740993 AS n").one().n')
    assert huge == 9007199254740992, "integers are numbers, never BigInt"


def test_a_cursor_reads_rows_as_they_are_wanted(shared_engine: RawEngine, slot: int) -> None:
    code = """
        sql.exec("CREATE TABLE t (a)");
        for (let i = 1; i <= 1000; i++) sql.exec("INSERT INTO t VALUES (?)", i);
        const cursor = sql.exec("SELECT a FROM t");
        const first = [cursor.next().value.a, cursor.next().value.a, cursor.rowsRead];
        const twice = sql.exec("SELECT a FROM t");
        twice.next();
        return [...first, cursor.toArray().length, cursor.rowsRead, twice.next().value.a, cursor.next().done];
    """
    assert shared_engine.value(slot, code) == [1, 2, 3, 998, 1000, 2, True]


def test_rows_are_counted_as_workerd_counts_them(shared_engine: RawEngine, slot: int) -> None:
    code = """
        const counts = (text, ...binds) => { const c = sql.exec(text, ...binds); c.toArray(); return [c.rowsRead, c.rowsWritten]; };
        sql.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v); CREATE INDEX by_v ON t (v)");
        for (let i = 1; i <= 10; i++) sql.exec("INSERT INTO t VALUES (?, ?)", i, `v${i}`);
        const cursor = sql.exec("SELECT * FROM t");
        const grown = [cursor.rowsRead, ...[...cursor].map(() => cursor.rowsRead)];
        const lazy = sql.exec("SELECT * FROM t");
        const seen = [];
        for (const _ of lazy) seen.push(lazy.rowsRead);
        return [
          grown[0], seen,
          counts("SELECT * FROM t WHERE id = 5"), counts("SELECT * FROM t WHERE id = 99"),
          counts("SELECT id FROM t WHERE v = 'v3'"), counts("SELECT count(*) FROM t"),
          counts("SELECT * FROM t WHERE id IN (1,2,3)"), counts("SELECT 1"),
          counts("INSERT INTO t VALUES (11, 'x')")[1], counts("UPDATE t SET v = 'y' WHERE id = 11")[1],
          counts("UPDATE t SET id = id WHERE id = 99")[1], counts("DELETE FROM t WHERE id = 11")[1], counts("DELETE FROM t")[1],
        ];
    """
    assert shared_engine.value(slot, code) == [
        1, [2, 3, 4, 5, 6, 7, 8, 9, 10, 10],
        [1, 0], [1, 0],
        [2, 0], [10, 0],  # the next row of an index is read to see that it is another
        [6, 0], [0, 0],  # the list is a table of its own
        2, 2,
        0, 1, 10,
    ]  # fmt: skip


def test_rows_written_count_indexes(shared_engine: RawEngine, slot: int) -> None:
    code = """
        sql.exec("CREATE TABLE t (a, b); CREATE INDEX i ON t (b)");
        return [sql.exec("INSERT INTO t VALUES (1, 2), (3, 4)").rowsWritten, sql.exec("SELECT * FROM t").rowsWritten];
    """
    assert shared_engine.value(slot, code) == [4, 0]


def test_returning_is_run_to_its_end(shared_engine: RawEngine, slot: int) -> None:
    shared_engine.value(slot, 'sql.exec("CREATE TABLE t (a)")')
    got = shared_engine.value(slot, 'return sql.exec("INSERT INTO t VALUES (1), (2) RETURNING a").next().value')
    assert got == {"a": 1}
    assert shared_engine.value(slot, 'return sql.exec("SELECT count(*) n FROM t").one().n') == 2


def test_statements_survive_a_change_of_the_schema(shared_engine: RawEngine, slot: int) -> None:
    code = """
        sql.exec("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
        const before = sql.exec("SELECT * FROM t").one();
        sql.exec("ALTER TABLE t ADD COLUMN b DEFAULT 2");
        return [before, sql.exec("SELECT * FROM t").one()];
    """
    assert shared_engine.value(slot, code) == [{"a": 1}, {"a": 1, "b": 2}]


def test_a_cursor_does_not_outlive_what_it_reads(shared_engine: RawEngine, slot: int) -> None:
    code = """
        sql.exec("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)");
        const cursor = sql.exec("SELECT a FROM t");
        cursor.next();
        await storage.deleteAll();
        cursor.toArray();
    """
    assert "SQL cursor was closed because deleteAll() was called." in shared_engine.error(slot, code)


def test_the_size_of_the_database(shared_engine: RawEngine, slot: int) -> None:
    code = """
        const sizes = [];
        sql.exec("CREATE TABLE t (a)"); sizes.push(sql.databaseSize);
        sql.exec("INSERT INTO t VALUES (zeroblob(100000))"); sizes.push(sql.databaseSize > 100000);
        sql.exec("DELETE FROM t"); sizes.push(sql.databaseSize);
        return sizes;
    """
    assert shared_engine.value(slot, code) == [8192, True, 8192]


ERRORS = {
    "": "SQL code did not contain a statement.",
    ";": "SQL code did not contain a statement.",
    "SELECT 1; -- end": "SQL code did not contain a statement.",
    "SELEC 1": 'near "SELEC": syntax error at offset 0: SQLITE_ERROR',
    "SELECT * FROM absent": "no such table: absent",
    "SELECT ?": "Wrong number of parameter bindings for SQL query.",
    "SELECT ?; SELECT 1": "When executing multiple SQL statements in a single call, only the last statement can have",
    "CREATE TABLE u (a UNIQUE); INSERT INTO u VALUES (1); INSERT INTO u VALUES (1)": (
        "UNIQUE constraint failed: u.a: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)"
    ),
    "BEGIN": "To execute a transaction, please use the state.storage.transaction()",
    "COMMIT": "To execute a transaction, please use the state.storage.transaction()",
    "SAVEPOINT a": "To execute a transaction, please use the state.storage.transaction()",
    "ATTACH ':memory:' AS x": "not authorized: SQLITE_AUTH",
    "CREATE TEMP TABLE x (a)": "not authorized: SQLITE_AUTH",
    "CREATE TEMP VIEW x AS SELECT 1": "not authorized: SQLITE_AUTH",
    "CREATE TABLE _CF_x (a)": "not authorized: SQLITE_AUTH",
    "CREATE TABLE y (a); ALTER TABLE y RENAME TO _cf_y": "not authorized: SQLITE_AUTH",
    "SELECT key FROM _cf_KV": "access to _cf_KV.key is prohibited",
    "DELETE FROM _cf_KV": "not authorized: SQLITE_AUTH",
    "DROP TABLE _cf_KV": "not authorized: SQLITE_AUTH",
    "CREATE INDEX z ON _cf_KV (value)": "not authorized: SQLITE_AUTH",
    "CREATE VIRTUAL TABLE z USING csv(filename='/etc/passwd')": "not authorized",
    "SELECT sqlite_version()": "not authorized to use function: sqlite_version",
    "SELECT load_extension('x')": "no such function: load_extension",
    "SELECT fts5(1)": "not authorized to use function: fts5",
    "PRAGMA writable_schema=ON": "not authorized: SQLITE_AUTH",
    "PRAGMA journal_mode=WAL": "not authorized: SQLITE_AUTH",
    "PRAGMA page_size=512": "not authorized: SQLITE_AUTH",
    "PRAGMA max_page_count=1": "not authorized: SQLITE_AUTH",
    "PRAGMA cache_size=1000000": "not authorized: SQLITE_AUTH",
    "PRAGMA foreign_keys=maybe": "not authorized: SQLITE_AUTH",
    "SELECT * FROM pragma_journal_mode": "not authorized",
    "INSERT INTO sqlite_schema VALUES (1, 2, 3, 4, 5)": "table sqlite_master may not be modified",
    "VACUUM": "SQLITE_",
    "VACUUM INTO '/tmp/x'": "SQLITE_",
    "SELECT " + "abs(" * 200 + "1" + ")" * 200: "Expression tree is too large (maximum depth 100)",
    "SELECT 1" + "+1" * 200: "Expression tree is too large (maximum depth 100)",
    "SELECT " + ",".join("1" * 101): "too many columns in result set",
    "SELECT 1" + " UNION ALL SELECT 1" * 9: "too many terms in compound SELECT",
    "SELECT '" + "x" * 200_000 + "'": "statement too long: SQLITE_TOOBIG",
    "SELECT 'a' LIKE '" + "%a" * 40 + "'": "LIKE or GLOB pattern too complex",
    "SELECT zeroblob(100000000)": "string or blob too big: SQLITE_TOOBIG",
    "SELECT printf('%.*c', 100000000, 'x')": "string or blob too big: SQLITE_TOOBIG",
    "SELECT hex(zeroblob(4000000))": "string or blob too big: SQLITE_TOOBIG",
    "SELECT group_concat(hex(zeroblob(1000000))) FROM (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3)": (
        "string or blob too big: SQLITE_TOOBIG"
    ),
    "CREATE VIRTUAL TABLE f USING fts5(a); DROP TABLE f_data": "SQLITE_",
    "CREATE VIRTUAL TABLE f USING fts5(a); UPDATE f_data SET block = x'00'": "may not be modified",
    "CREATE VIRTUAL TABLE r USING rtree(a, b, c); INSERT INTO r_node VALUES (1, x'00')": "may not be modified",
}


@pytest.mark.parametrize("query", ERRORS, ids=lambda query: query[:40])
def test_refused_sql(shared_engine: RawEngine, slot: int, query: str) -> None:
    shared_engine.value(slot, 'await storage.put("a", 1)')
    said = shared_engine.error(slot, f"sql.exec({query!r}).toArray()")
    assert said.startswith("Error: ") and ERRORS[query] in said
    assert shared_engine.value(slot, 'return storage.get("a")') == 1, "the object goes on"


def test_allowed_sql(shared_engine: RawEngine, slot: int) -> None:
    code = """
        sql.exec("CREATE VIRTUAL TABLE f USING fts5(a); INSERT INTO f VALUES ('green parrots'), ('blue whales')");
        sql.exec("CREATE VIRTUAL TABLE r USING rtree(id, x1, x2); INSERT INTO r VALUES (1, 0, 10), (2, 20, 30)");
        return [
          sql.exec("SELECT highlight(f, 0, '<', '>') h FROM f WHERE f MATCH 'whales' ORDER BY rank").one().h,
          sql.exec("SELECT id FROM r WHERE x1 > 15").one().id,
          sql.exec("SELECT json_extract('{\\"a\\":[1,2]}', '$.a[1]') j, '{\\"b\\":3}' ->> 'b' k").one(),
          sql.exec("SELECT sqrt(16) s, round(2.5) r, upper('x') u, iif(1, 2, 3) i").one(),
          sql.exec("SELECT value FROM json_each('[5]')").one().value,
          sql.exec("SELECT name FROM pragma_table_info('f')").one().name,
          sql.exec("PRAGMA foreign_keys").one().foreign_keys,
          sql.exec("PRAGMA quick_check").one().quick_check,
          sql.exec("SELECT a, rank() OVER (ORDER BY a) n FROM (SELECT 3 a UNION SELECT 1)").toArray(),
          sql.exec("PRAGMA optimize").toArray(),
        ];
    """
    assert shared_engine.value(slot, code) == [
        "blue <whales>",
        2,
        {"j": 2, "k": 3},
        {"s": 4, "r": 3, "u": "X", "i": 2},
        5,
        "a",
        1,
        "ok",
        [{"a": 1, "n": 1}, {"a": 3, "n": 2}],
        [],
    ]


def test_functions_of_our_own_agree_with_those_of_sqlite(shared_engine: RawEngine, slot: int) -> None:
    """instr, replace and trim are ours, in linear time: another SQLite says what they must return."""
    choose, letters = random.Random(3), ["a", "b", "é", "😀", " ", ""]
    texts = ["".join(choose.choices(letters, k=choose.randint(0, 6))) for _ in range(60)]
    queries = []
    for one, two, three in zip(texts, texts[1:], texts[2:], strict=False):
        a, b, c = (f"'{text}'" for text in (one, two[:2], three))
        queries.append(f"instr({a},{b}), instr(CAST({a} AS BLOB), CAST({b} AS BLOB)), replace({a},{b},{c})")
        queries.append(f"trim({a}), ltrim({a},{b}), rtrim({a},{b}), trim({a},{b}), instr({a},NULL), replace(12,1,{c})")
        queries.append(f"hex(unhex({a},{b})), hex(unhex('0aF' || {a} || 'f', {a})), unhex('', {b}) IS NULL")
    ours = shared_engine.value(
        slot, f"return {json.dumps(queries)}.map((q) => sql.exec(`SELECT ${{q}}`).raw().next().value)"
    )
    peer = apsw.Connection(":memory:")
    assert [tuple(row) for row in ours] == [peer.execute(f"SELECT {query}").fetchone() for query in queries]


def test_sql_has_the_clock_of_the_worker(shared_engine: RawEngine, slot: int) -> None:
    code = """
        const times = new Set();
        for (let i = 0; i < 5; i++) {
          for (let j = 0; j < 1e6; j++);
          times.add(sql.exec("SELECT unixepoch('subsec') t").one().t);
        }
        return [times.size, Math.abs([...times][0] * 1000 - Date.now()) < 2];
    """
    assert shared_engine.value(slot, code) == [1, True], "a clock that runs on would allow timing attacks"


def test_a_database_has_a_largest_size(engine: RawEngine, tmp_path: Path) -> None:
    copy = engine.open(1, most_pages=10)
    engine.value(1, 'sql.exec("CREATE TABLE t (a); INSERT INTO t VALUES (1)")')
    answer = engine.run(1, 'sql.exec("INSERT INTO t VALUES (zeroblob(100000))")')
    assert answer.error == "Error: database or disk is full: SQLITE_FULL"
    assert copy.opened(tmp_path / "db").execute("SELECT * FROM t").fetchall() == [(1,)]
