"""Whole D1 databases: Time Travel, exports that other SQLite programs read, imports that are all or nothing."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.bindings.d1.test_d1_api import ask, query
from tests.cli.test_projects import run as run_command
from tests.running import Answer, Atoll

SCHEMA = """
CREATE TABLE people (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, age REAL, big INTEGER, picture BLOB);
CREATE TABLE "odd ""name" ("a;b" TEXT, 'c' ANY, total AS (length("a;b")) STORED);
CREATE TABLE pets (owner INTEGER REFERENCES people (id), name TEXT, PRIMARY KEY (owner, name)) WITHOUT ROWID;
CREATE INDEX by_name ON people (name);
CREATE VIRTUAL TABLE notes USING fts5(title, body);
CREATE VIRTUAL TABLE found USING fts5(name, content='people', content_rowid='id');
CREATE VIRTUAL TABLE places USING rtree(id, x0, x1);
CREATE VIEW adults AS SELECT name FROM people WHERE age >= 18;
CREATE TABLE log (what TEXT);
CREATE TRIGGER noted AFTER INSERT ON people BEGIN INSERT INTO log VALUES ('new: ' || new.name); END;
INSERT INTO people (name, age, big, picture) VALUES ('Ada', 36.5, 9007199254740993, x'00ff27');
INSERT INTO people (name, age, big) VALUES ('it''s; "two"' || char(10) || 'lines', 1e300, -9223372036854775808);
INSERT INTO people (name, age) VALUES ('nul' || char(0) || 'byte', 0.1), (CAST(x'ff41' AS TEXT), 9e999), ('', NULL);
INSERT INTO "odd ""name" VALUES ('x', 1), ('y', '1'), (NULL, 1.0);
INSERT INTO pets VALUES (1, 'Cat'), (1, 'Dog');
INSERT INTO notes (rowid, title, body) VALUES (7, 'first', 'quick brown fox');
INSERT INTO found (found) VALUES ('rebuild');
INSERT INTO places VALUES (1, 1.5, 2.5);
DELETE FROM people WHERE id = 5;
"""
TABLES = "people", '"odd ""name"', "pets", "notes", "places", "log", "adults", "sqlite_sequence"


def contents(connection: sqlite3.Connection) -> dict[str, Any]:
    connection.text_factory = bytes
    found: dict[str, Any] = {}
    for table in TABLES:
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        found[table] = sorted([[(type(value), value) for value in row] for row in rows], key=repr)
    found["match"] = [
        connection.execute("SELECT rowid FROM notes WHERE notes MATCH 'brown'").fetchall(),
        connection.execute("SELECT rowid FROM found WHERE found MATCH 'ada'").fetchall(),
    ]
    found["schema"] = connection.execute("SELECT type, name FROM sqlite_schema ORDER BY 1, 2").fetchall()
    return found


def loaded(sql: bytes, path: Path) -> dict[str, Any]:
    """What the stock shell makes of it."""
    subprocess.run(["sqlite3", "-bail", path], input=sql, check=True)
    with sqlite3.connect(path) as connection:
        return contents(connection)


def export(atoll: Atoll, database: str, **wanted: Any) -> bytes:
    answer = ask(atoll, "POST", f"/{database}/export", wanted)
    assert answer.status == 200, answer.text
    return answer.body


def load(atoll: Atoll, database: str, sql: bytes) -> Answer:
    fields = {"Content-Type": "application/sql"}
    return atoll.request("POST", f"localhost:{atoll.port}", f"/api/d1/{database}/import", sql, fields)


def test_an_export_loads_into_stock_sqlite_and_back(atoll: Atoll, tmp_path: Path) -> None:
    for name in ("whole", "again"):
        ask(atoll, "POST", "", {"name": name})
    query(atoll, "whole", SCHEMA)
    with sqlite3.connect(tmp_path / "expected.db") as expected:
        expected.executescript(SCHEMA)
        wanted = contents(expected)
    text = export(atoll, "whole")
    assert loaded(text, tmp_path / "one.db") == wanted
    answer = load(atoll, "again", text)
    assert answer.status == 200 and answer.json["num_queries"] == text.count(b";\n"), answer.text
    assert loaded(export(atoll, "again"), tmp_path / "two.db") == wanted
    query(atoll, "again", "INSERT INTO people (name) VALUES ('next')")
    assert query(atoll, "again", "SELECT max(id) AS id FROM people; SELECT count(*) AS n FROM log")[0]["results"] == [
        {"id": 6}
    ]
    said = query(atoll, "again", "INSERT INTO pets VALUES (99, 'Nobody')")
    assert "FOREIGN KEY constraint failed" in said, "they are checked again"


def test_parts_of_a_database_are_exported(atoll: Atoll) -> None:
    ask(atoll, "POST", "", {"name": "parts"})
    query(atoll, "parts", SCHEMA)
    rows = export(atoll, "parts", tables=["pets"], no_schema=True).decode()
    assert rows.splitlines()[1:] == [
        """INSERT INTO "pets" VALUES(1,'Cat');""",
        """INSERT INTO "pets" VALUES(1,'Dog');""",
    ]
    schema = export(atoll, "parts", no_data=True).decode()
    assert 'INSERT INTO "' not in schema and "CREATE TRIGGER noted" in schema
    assert ask(atoll, "POST", "/parts/export", {"tables": ["none"]}).json["error"]["message"] == (
        "the database cannot be exported: no such table: none"
    )
    query(atoll, "parts", "CREATE VIRTUAL TABLE bare USING fts5(a, content='')")
    assert "content=''" in ask(atoll, "POST", "/parts/export", {}).json["error"]["message"]
    assert query(atoll, "parts", "SELECT 1 AS one")[0]["results"] == [{"one": 1}], "it is not busy any more"


def test_a_large_import_is_all_or_nothing(atoll: Atoll) -> None:
    ask(atoll, "POST", "", {"name": "large"})
    query(atoll, "large", "CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (0, 'kept')")
    big = "ab" * 700_000  # a statement that SQLite would not take as text
    rows = "".join(f"INSERT INTO t VALUES ({n}, '{'x' * 2_000}');\n" for n in range(1, 3_000))
    start = f"BEGIN TRANSACTION;\nDELETE FROM t;\n{rows}INSERT INTO t VALUES (9000, X'{big}');\n"
    broken = load(atoll, "large", (start + "INSERT INTO none VALUES (1);\n").encode())
    assert (
        broken.status == 400 and "no such table: none: SQLITE_ERROR, in the statement: INSERT INTO none" in broken.text
    )
    assert query(atoll, "large", "SELECT * FROM t")[0]["results"] == [{"id": 0, "v": "kept"}]
    assert load(atoll, "large", b"DELETE FROM t; \xff").status == 400
    assert query(atoll, "large", "SELECT count(*) AS n FROM t")[0]["results"] == [{"n": 1}]
    whole = load(atoll, "large", (start + "COMMIT;").encode())
    assert whole.status == 200 and whole.json["num_queries"] == 3_001
    found = query(atoll, "large", "SELECT count(*) AS n, length(max(v)) AS size FROM t")[0]["results"]
    assert found == [{"n": 3_000, "size": 700_000}]


def test_an_index_of_a_large_table_may_be_at_the_end_of_an_import(atoll: Atoll) -> None:
    ask(atoll, "POST", "", {"name": "indexed"})
    rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
    value = "printf('%08d', (SELECT count(*) FROM \"the t\") + i) || hex(zeroblob(440))"
    # Each is a step of the import, because of its comment.
    some = f'INSERT INTO "the t" (v) {rows} SELECT {value} FROM n;\n--{"." * 530_000}\n'
    text = (
        f'-- as sqlite3 writes it\nCREATE TABLE IF NOT EXISTS "the t" (id INTEGER PRIMARY KEY, v TEXT);\n{some * 12}'
        "CREATE TABLE small (a);\nINSERT INTO small VALUES ('CREATE INDEX no ON small (a); ');\n"
        'CREATE UNIQUE INDEX "of the; t" ON [THE T] (v);\nCREATE INDEX late ON small (a);\n'
    )
    answer = load(atoll, "indexed", text.encode())
    assert answer.status == 200 and answer.json["num_queries"] == 17, answer.text
    found = query(atoll, "indexed", "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' ORDER BY name")
    assert found[0]["results"] == [
        {"name": "late", "tbl_name": "small"},
        {"name": "of the; t", "tbl_name": "the t"},
    ]
    sizes = query(atoll, "indexed", 'SELECT count(*) AS n FROM "the t"; PRAGMA quick_check')
    assert [each["results"] for each in sizes] == [[{"n": 36_000}], [{"quick_check": "ok"}]]
    refused = load(atoll, "indexed", b'CREATE INDEX again ON "the t" (v || id)')
    assert refused.status == 400 and "SQLITE_FULL" in refused.text, "the table was there before"
    assert len(query(atoll, "indexed", "SELECT 1 FROM sqlite_schema WHERE name = 'again'")[0]["results"]) == 0


def test_an_import_that_a_kill_ends_never_was(new_atoll: Any) -> None:
    node = new_atoll()
    ask(node, "POST", "", {"name": "killed"})
    query(node, "killed", "CREATE TABLE t (v); INSERT INTO t VALUES ('kept')")
    rows = "".join(f"INSERT INTO t VALUES ('{n}{'x' * 500}');\n" for n in range(40_000))
    sender = subprocess.Popen(
        ["curl", "-sS", "-o", "/dev/null", "-H", "Content-Type: application/sql", "--data-binary", "@-",
         f"http://localhost:{node.port}/api/d1/killed/import"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert sender.stdin is not None
    sender.stdin.write(rows.encode())
    sender.stdin.close()
    node.wait_until(lambda: "Currently processing a long-running import." in str(query(node, "killed", "SELECT 1")), 30)
    node.stop(9)
    sender.wait()
    node.start()
    assert query(node, "killed", "SELECT v FROM t")[0]["results"] == [{"v": "kept"}]


def test_a_database_travels_in_time_from_the_command_line(atoll: Atoll, tmp_path: Path) -> None:
    def run(*words: str) -> str:
        return run_command(tmp_path, "d1", *words, ATOLL_API=f"http://localhost:{atoll.port}").stdout

    ask(atoll, "POST", "", {"name": "travel"})
    query(atoll, "travel", "CREATE TABLE t (v); INSERT INTO t VALUES (1)")
    mark = run("time-travel", "info", "travel").strip()
    time.sleep(0.01)
    now = time.time()
    time.sleep(0.01)
    query(atoll, "travel", "DELETE FROM t")
    said = run("time-travel", "restore", "travel", "--bookmark", mark, "-y")
    assert query(atoll, "travel", "SELECT v FROM t")[0]["results"] == [{"v": 1}]
    undo = said.split()[-1]
    run("time-travel", "restore", "travel", "--bookmark", undo, "-y")
    assert query(atoll, "travel", "SELECT v FROM t")[0]["results"] == []
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06}Z"
    run("time-travel", "restore", "travel", "--timestamp", stamp, "-y")
    assert query(atoll, "travel", "SELECT v FROM t")[0]["results"] == [{"v": 1}]
    refused = ask(atoll, "POST", f"/travel/time_travel/restore?bookmark={undo[::-1]}")
    assert refused.status == 400 and "not a bookmark of this database" in refused.text
    assert ask(atoll, "GET", "/travel/time_travel/bookmark?timestamp=1").status == 200
    assert ask(atoll, "GET", "/travel/time_travel/bookmark?timestamp=soon").status == 400
    run("export", "travel", "--output", "t.sql")
    run("create", "copy")
    assert "ran 3 statements" in run("import", "copy", "t.sql")
    assert query(atoll, "copy", "SELECT v FROM t")[0]["results"] == [{"v": 1}]
