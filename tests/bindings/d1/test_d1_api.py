"""D1 over HTTP and from the command line: databases, queries, migrations, quotas, tenants, restarts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atoll.api.cloudflare import account_id
from tests.cli.dev_session import Dev
from tests.cli.test_projects import run
from tests.e2e.test_packages import bundle
from tests.running import Answer, Atoll

READS = """export default { async fetch(request, env) {
  try { return Response.json((await env.DB.prepare("SELECT v FROM t").raw()).flat()); }
  catch (error) { return new Response(error.message, { status: 500 }); }
} }"""
BINDINGS = [{"type": "d1", "name": "DB", "database": "api"}]


def ask(atoll: Atoll, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    content = None if body is None else json.dumps(body).encode()
    fields = {"Content-Type": "application/json", **headers}
    return atoll.request(method, f"localhost:{atoll.port}", f"/api/d1{path}", content, fields)


def query(atoll: Atoll, database: str, sql: str, params: list[Any] | None = None, kind: str = "query") -> Any:
    answer = ask(atoll, "POST", f"/{database}/{kind}", {"sql": sql, "params": params or []})
    return answer.json["result"] if answer.status == 200 else answer.json["error"]["message"]


def code(answer: Answer) -> int:
    return int(answer.json["error"]["code"])


def test_a_database_is_created_listed_and_deleted(atoll: Atoll) -> None:
    made = ask(atoll, "POST", "", {"name": "books"})
    assert made.status == 201 and made.json["file_size"] == 0 and made.headers["location"] == "/api/d1/books"
    assert code(ask(atoll, "POST", "", {"name": "books"})) == 19005
    assert code(ask(atoll, "POST", "", {"name": "no such name"})) == 10026
    query(atoll, "books", "CREATE TABLE t (v); INSERT INTO t VALUES (1)")
    [listed] = [each for each in ask(atoll, "GET", "").json["databases"] if each["name"] == "books"]
    assert listed == ask(atoll, "GET", f"/{made.json['uuid']}").json and listed["uuid"] == made.json["uuid"]
    assert ask(atoll, "DELETE", "/books").status == 204
    assert code(ask(atoll, "GET", "/books")) == code(ask(atoll, "DELETE", "/books")) == 10007
    assert code(ask(atoll, "POST", "/books/query", {"sql": "SELECT 1"})) == 10007
    ask(atoll, "POST", "", {"name": "books"})
    assert query(atoll, "books", "SELECT * FROM t") == "the query failed: no such table: t: SQLITE_ERROR"


def test_a_query_runs_all_its_statements_or_none(atoll: Atoll) -> None:
    ask(atoll, "POST", "", {"name": "queries"})
    script = """
      -- a comment; with a semicolon
      CREATE TABLE t (v TEXT, w); /* ; */ CREATE TABLE log ("a;b" TEXT);
      CREATE TRIGGER after_t AFTER INSERT ON t BEGIN
        INSERT INTO log VALUES (CASE WHEN new.v = 'end;' THEN 'x' ELSE new.v END);
        UPDATE log SET "a;b" = "a;b" || '!';
      END;
      INSERT INTO t VALUES ('it''s; one', x'0102');;
      SELECT * FROM t; SELECT * FROM log -- the last one
    """
    found = query(atoll, "queries", script)
    assert [each["results"] for each in found] == [
        [], [], [], [], [{"v": "it's; one", "w": [1, 2]}], [{"a;b": "it's; one!"}],
    ]  # fmt: skip
    assert [each["success"] for each in found] == [True] * 6 and found[3]["meta"]["changes"] == 3
    said = query(atoll, "queries", "DELETE FROM t; SELECT * FROM none")
    assert said == "the query failed: no such table: none: SQLITE_ERROR"
    [raw] = query(atoll, "queries", "SELECT v, ? AS p FROM t", [True], kind="raw")
    assert raw["results"] == {"columns": ["v", "p"], "rows": [["it's; one", 1]]}
    for empty in ("", " ; -- nothing"):
        assert query(atoll, "queries", empty) == "the query failed: No SQL statements detected."
    assert query(atoll, "queries", "SELECT 1; )").startswith('the query failed: near ")": syntax error')


def test_a_worker_reads_what_the_api_wrote_and_is_told_of_a_deleted_database(atoll: Atoll) -> None:
    atoll.deploy("d1-api", READS, bindings=BINDINGS)  # creates it
    query(atoll, "api", "CREATE TABLE t (v); INSERT INTO t VALUES (1), (2)")
    assert atoll.get("d1-api").json == [1, 2]
    ask(atoll, "DELETE", "/api")
    assert atoll.get("d1-api").text == "D1_ERROR: the database `api` was deleted"


def test_quotas_tenants_and_a_restart(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    assert node.control("POST", "/api/tenants", {"name": "small", "quotas": {"d1_databases": 1}}).status == 201
    of_small = {"X-Atoll-Tenant": "small"}
    assert ask(node, "POST", "", {"name": "api"}, **of_small).status == 201
    assert code(ask(node, "POST", "", {"name": "more"}, **of_small)) == 19014
    deployed = {"name": "d1-small", "script": READS, "bindings": [{"type": "d1", "name": "DB", "database": "more"}]}
    fields = {"Content-Type": "application/json", **of_small}
    host = f"localhost:{node.port}"
    refused = node.request("POST", host, "/api/workers", json.dumps(deployed).encode(), fields)
    assert code(refused) == 19014 and "d1_databases" in refused.text

    node.deploy("d1-api", READS, bindings=BINDINGS)
    query(node, "api", "CREATE TABLE t (v); INSERT INTO t VALUES ('kept')")
    theirs = ask(node, "POST", "/api/query", {"sql": "SELECT count(*) AS n FROM sqlite_master"}, **of_small)
    assert theirs.json["result"][0]["results"] == [{"n": 0}]

    node.stop()
    node.start()
    assert node.get("d1-api").json == ["kept"]
    assert node.control("DELETE", "/api/tenants/small").status == 409
    assert ask(node, "DELETE", "/api", **of_small).status == 204
    assert node.control("DELETE", "/api/tenants/small").status == 204


def test_a_query_without_an_end_fails_and_the_database_goes_on(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1, max_cpu_ms=300, cpu_ms=50)
    node.deploy("d1-api", READS, bindings=BINDINGS)
    query(node, "api", "CREATE TABLE t (v); INSERT INTO t VALUES (1)")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    said = query(node, "api", f"INSERT INTO t VALUES (2); {endless}")
    assert "D1 DB exceeded its CPU time limit and was reset." in said
    assert node.get("d1-api").json == [1]


def test_commands_and_migrations(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    entry = 'binding = "DB"\ndatabase_name = "shop"\nmigrations_dir = "sql"\n'
    (tmp_path / "wrangler.toml").write_text(f'name = "shop"\nmain = "i.js"\n[[d1_databases]]\n{entry}')
    (tmp_path / "i.js").write_text("export default {}")
    run(tmp_path, "d1", "create", "shop", **node)
    run(tmp_path, "d1", "migrations", "create", "DB", "make orders")
    (tmp_path / "sql/0001_make_orders.sql").write_text("CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT)")
    (tmp_path / "sql/0002_fill.sql").write_text("INSERT INTO orders (what) VALUES ('tea'); /* no end")
    (tmp_path / "sql/0010_fails.sql").write_text("INSERT INTO orders (what) VALUES ('gone'); SELECT * FROM none;")
    ran = run(tmp_path, "d1", "migrations", "apply", "shop", code=1, **node)
    assert ran.stdout.splitlines() == ["applied 0001_make_orders.sql", "applied 0002_fill.sql"]
    assert "no such table: none" in ran.stderr
    assert json.loads(run(tmp_path, "d1", "migrations", "list", "DB", "--json", **node).stdout) == ["0010_fails.sql"]
    (tmp_path / "sql/0010_fails.sql").write_text("")
    assert json.loads(run(tmp_path, "d1", "migrations", "apply", "DB", "--json", **node).stdout) == {
        "applied": ["0010_fails.sql"]
    }
    shown = run(tmp_path, "d1", "execute", "shop", "--command", "SELECT * FROM orders", **node).stdout
    assert [line.split() for line in shown.splitlines()] == [["ID", "WHAT"], ["1", "tea"]]
    more = "INSERT INTO orders (what) VALUES (NULL);\nSELECT what FROM orders WHERE id = 2;"
    (tmp_path / "more.sql").write_text(more)
    shown = run(tmp_path, "d1", "execute", "shop", "--file", "more.sql", **node).stdout
    assert shown.splitlines() == ["no rows; 1 changed", "WHAT", "NULL"]
    assert "either --command" in run(tmp_path, "d1", "execute", "shop", code=2, **node).stderr
    assert "no database `other`" in run(tmp_path, "d1", "migrations", "list", "other", code=1, **node).stderr
    assert "shop" in run(tmp_path, "d1", "list", **node).stdout
    run(tmp_path, "d1", "delete", "shop", "--yes", **node)
    assert "there is no database" in run(tmp_path, "d1", "execute", "shop", "--command", "x", code=1, **node).stderr


def test_drizzle_orm_works_on_d1(atoll: Atoll) -> None:
    ask(atoll, "POST", "", {"name": "drizzle"})
    columns = "name TEXT NOT NULL UNIQUE, is_admin INTEGER NOT NULL DEFAULT 0, born INTEGER, settings TEXT"
    query(
        atoll,
        "drizzle",
        f"CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, {columns});"
        "CREATE TABLE posts (id INTEGER PRIMARY KEY, author INTEGER REFERENCES users (id), title TEXT NOT NULL);",
    )
    bindings = [{"type": "d1", "name": "DB", "database": "drizzle"}]
    atoll.deploy("d1-drizzle", bundle("drizzle"), bindings=bindings, limits={"cpu_ms": 1000})
    assert atoll.get("d1-drizzle").json == {
        "ada": {
            "id": 1, "name": "Ada", "isAdmin": True, "born": "1815-12-10T00:00:00.000Z", "settings": {"theme": "dark"},
        },
        "changes": 2,
        "joined": [{"name": "Ada", "title": "More"}, {"name": "Ada", "title": "Notes"}],
        "n": 2,
        "found": True,
        "failed": "D1_ERROR: UNIQUE constraint failed: users.name: SQLITE_CONSTRAINT "
        "(extended: SQLITE_CONSTRAINT_UNIQUE)",
    }  # fmt: skip


def test_kysely_works_on_d1(atoll: Atoll) -> None:
    bindings = [{"type": "d1", "name": "DB", "database": "kysely"}]
    atoll.deploy("d1-kysely", bundle("kysely"), bindings=bindings, limits={"cpu_ms": 1000})
    assert atoll.get("d1-kysely").json == {
        "ada": {"id": 1, "name": "Ada"},
        "added": 2,
        "joined": [{"person": "Ada", "pet": "Dog", "size": 3}, {"person": "Ada", "pet": "Cat", "size": 3}],
        "changed": 1,
        "failed": "D1_ERROR: UNIQUE constraint failed: person.name: SQLITE_CONSTRAINT "
        "(extended: SQLITE_CONSTRAINT_UNIQUE)",
    }


def test_dev_keeps_databases_and_shows_only_calls_of_the_project(tmp_path: Path) -> None:
    folder = tmp_path / "guestbook"
    shutil.copytree(Path(__file__).parents[3] / "examples/d1-guestbook", folder)
    dev = Dev(folder)
    api = {"ATOLL_API": f"http://control.localhost:{dev.port}"}
    assert run(folder, "d1", "migrations", "apply", "guestbook", **api).stdout.count("applied") == 2
    insert = "INSERT INTO entries (name, message) VALUES ('A', 'b')"
    run(folder, "d1", "execute", "guestbook", "--command", insert, **api)
    assert dev.get("A")[0] == 200 and dev.wait_for("call")["worker"] == "d1-guestbook"
    assert dev.stop() == 0
    dev.take_events()
    assert {event["worker"] for event in dev.seen if event["event"] == "call"} == {"d1-guestbook"}
    dev = Dev(folder)
    assert json.loads(dev.get("A")[1])[0]["message"] == "b"
    dev.stop()


WRITES = [
    "INSERT INTO t VALUES ('two')",
    "SELECT 1; INSERT INTO t VALUES ('two')",
    "/* a */ -- b\n UPDATE t SET v = 'two'",
    "WITH x AS (SELECT 'two' AS v) INSERT INTO t SELECT v FROM x",
    "WITH x AS (SELECT 1) DELETE FROM t",
    "CREATE TABLE stolen (v)",
    "DROP TABLE t",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA foreign_keys",
    "EXPLAIN PRAGMA foreign_keys = OFF",
    "EXPLAIN QUERY PLAN PRAGMA foreign_keys(0)",
    "SELECT 1; PRAGMA foreign_keys = OFF",
    "VACUUM",
    "ATTACH 'x' AS y",
]


def test_statements_that_write_are_refused_where_only_reading_is_allowed(atoll: Atoll) -> None:
    ask(atoll, "POST", "", {"name": "reading"})
    query(atoll, "reading", "CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('one')")
    for sql in WRITES:
        said = query(atoll, "reading", sql, kind="read")
        assert isinstance(said, str) and "Only statements that read may run here" in said, sql
    said = query(atoll, "reading", "SELECT 1; DELETE FROM t WHERE v = ?", ["one"], kind="read")
    assert "Only statements that read may run here" in said
    [rows] = query(atoll, "reading", "SELECT v FROM t", kind="read")
    assert rows["results"] == {"columns": ["v"], "rows": [["one"]]}
    [keys] = query(atoll, "reading", "SELECT foreign_keys FROM pragma_foreign_keys", kind="read")
    assert keys["results"]["rows"] == [[1]]
    [names] = query(atoll, "reading", "SELECT name FROM sqlite_schema WHERE name NOT LIKE '%cf%'", kind="read")
    assert names["results"]["rows"] == [["t"]]
    two = query(atoll, "reading", "SELECT v FROM t; EXPLAIN QUERY PLAN DELETE FROM t", kind="read")
    assert len(two) == 2 and two[0]["results"]["rows"] == [["one"]]


def test_a_token_that_may_only_read_reads_rows_and_runs_nothing_else(tmp_path: Path) -> None:
    node = Atoll(tmp_path, engines=1, control_auth="token")
    node.start()
    try:
        admin = (tmp_path / "data/admin-token").read_text().strip()

        def send(token: str, path: str, body: Any) -> Answer:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            return node.request("POST", f"localhost:{node.port}", path, json.dumps(body), headers)

        reader = send(admin, "/api/tokens", {"name": "reader", "scopes": ["read"]}).json["token"]
        assert send(admin, "/api/d1", {"name": "books"}).status == 201
        assert send(admin, "/api/d1/books/query", {"sql": "CREATE TABLE t (v)"}).status == 200
        assert send(reader, "/api/d1/books/read", {"sql": "SELECT * FROM t"}).status == 200
        for kind in ("query", "raw"):
            assert send(reader, f"/api/d1/books/{kind}", {"sql": "SELECT * FROM t"}).status == 403
        assert send(reader, "/api/d1/books/read", {"sql": "DELETE FROM t"}).status == 400
    finally:
        assert node.stop() == 0


def test_parameters_of_megabytes_are_checked_and_carried_on(atoll: Atoll) -> None:
    """A job process checks a large body: decoding millions of values would make other tenants wait."""
    ask(atoll, "POST", "", {"name": "large"})
    [answer] = query(atoll, "large", "SELECT length(?) AS n", [[7] * 600_000])
    assert answer["results"] == [{"n": 600_000}]
    for wrong, told in (
        ({"sql": "SELECT 1", "params": [[["x"]]] * 60_000}, "$.params[0][0]"),
        ({"sql": ["SELECT 1"] * 60_000}, "$.sql"),
        ({"sql": "SELECT 1", "parms": [1] * 200_000}, "unknown field"),
    ):
        refused = ask(atoll, "POST", "/large/query", wrong)
        assert refused.status == 400 and told in refused.json["error"]["message"], refused.text[:300]
    text = "é" * 100_000  # 600 KB of JSON
    assert query(atoll, "large", "SELECT length(?) AS n", [text])[0]["results"] == [{"n": 100_000}]


def test_a_batch_of_large_answers_is_bounded_as_a_whole(atoll: Atoll) -> None:
    ask(atoll, "POST", "", {"name": "batched"})
    token = atoll.control("POST", "/api/tokens", {"name": "v4", "scopes": ["admin"]}).json["token"]
    path = f"/client/v4/accounts/{account_id('default')}/d1/database/batched/query"

    def batch(sql: str, count: int) -> Answer:
        body = json.dumps({"batch": [{"sql": sql}] * count}).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return atoll.request("POST", f"localhost:{atoll.port}", path, body, headers)

    large = "SELECT hex(zeroblob(900000)) AS v"
    assert len(batch(large, 3).json["result"]) == 3
    refused = batch(large, 20)
    assert refused.status == 400 and "larger than 16 MB together" in refused.text, refused.text[:300]
    assert batch("SELECT 1", 100).json["success"] is True
    many = batch("SELECT 1", 101)
    assert many.status == 400 and "$.batch" in many.text
