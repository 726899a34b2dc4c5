"""`atoll objects` and its endpoints: what an object stores, its alarm, its sockets, SQL that reads and SQL that writes."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.cli.dev_session import ATOLL, environment
from tests.running import Answer, Atoll

NAME = "console-under-test"
SOURCE = """
import { DurableObject } from "cloudflare:workers";
let made = 0;
export class Shop extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    made++;
    if (ctx.storage.kv.get("broken")) throw new Error("constructor threw");
  }
  async fetch(request) {
    if (request.headers.get("upgrade")) {
      const [client, server] = new WebSocketPair();
      this.ctx.acceptWebSocket(server, ["guest", "täg"]);
      server.serializeAttachment({ a: 1 });
      return new Response(null, { status: 101, webSocket: client });
    }
    const run = new Function("object", "ctx", `return (async () => { ${await request.text()} })()`);
    return Response.json((await run(this, this.ctx)) ?? null);
  }
  async alarm() {
    this.ctx.storage.kv.put("rang", this.ctx.id.name);
  }
}
export class Plain extends DurableObject {
  async fetch() {
    await this.ctx.storage.put("k", [1, 2]);
    return new Response(this.ctx.id.toString());
  }
}
export default {
  fetch(request, env) {
    const url = new URL(request.url);
    if (url.pathname === "/made") return Response.json(made);
    if (url.pathname === "/plain") return env.PLAIN.getByName("p").fetch(request);
    const name = url.searchParams.get("name");
    if (url.pathname === "/id") return new Response(env.SHOP.idFromName(name).toString());
    return env.SHOP.getByName(name).fetch(request);
  },
};
"""


@pytest.fixture(scope="module")
def node(atoll: Atoll) -> Atoll:
    body = {
        "name": NAME, "script": SOURCE, "switches": {"allow_eval": True},
        "bindings": [{"type": "durable_object", "name": "SHOP", "class_name": "Shop"},
                     {"type": "durable_object", "name": "PLAIN", "class_name": "Plain"}],
        "migrations": [{"tag": "v1", "new_sqlite_classes": ["Shop"], "new_classes": ["Plain"]}],
    }  # fmt: skip
    answer = atoll.control("POST", "/api/workers", body)
    assert answer.status == 201, answer.text
    return atoll


def run(node: Atoll, name: str, code: str) -> Any:
    answer = node.request("POST", f"{NAME}.localhost:{node.port}", f"/?name={name}", code)
    assert answer.status == 200, answer.text
    return answer.json


def path_of(node: Atoll, name: str, rest: str = "") -> str:
    return f"/api/objects/{NAME}/Shop/{node.get(NAME, f'/id?name={name}').text}{rest}"


def sql(node: Atoll, name: str, text: str, *params: Any, how: str = "query") -> Answer:
    return node.control("POST", path_of(node, name, f"/{how}"), {"sql": text, "params": list(params)})


FILL = """
  const { sql, kv } = ctx.storage;
  sql.exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT, blob BLOB)");
  sql.exec("INSERT INTO orders VALUES (1, 'tea', x'0102'), (2, NULL, NULL)");
  sql.exec("CREATE VIEW names AS SELECT what FROM orders");
  kv.put("a", { deep: [1, new Map([["k", 1n]])] });
  for (let i = 0; i < 5; i++) kv.put(`b${i}`, i);
  kv.put("large", "x".repeat(100_000));
"""


def test_the_state_of_an_object_has_tables_keys_and_size(node: Atoll) -> None:
    run(node, "state", FILL)
    answer = node.control("GET", path_of(node, "state"))
    assert answer.status == 200, answer.text
    state = answer.json
    tables = [(each["name"], each["type"], each["rows"]) for each in state["tables"]]
    assert tables == [("names", "view", None), ("orders", "table", 2)]
    assert state["tables"][1]["sql"].startswith("CREATE TABLE orders (id")
    assert [each["key"] for each in state["keys"]] == ["a", "b0", "b1", "b2", "b3", "b4", "large"]
    assert state["keys"][0]["value"] == "{ deep: [ 1, Map(1) { 'k' => 1n } ] }"
    assert state["keys"][-1]["value"] is None and state["keys"][-1]["bytes"] > 100_000
    assert state["bytes"] > 100_000 and state["alarm"] is None and state["storage"] == "sqlite"
    assert "cursor" not in state


def test_keys_come_in_pages(node: Atoll) -> None:
    run(node, "pages", FILL)
    path, seen, cursor = path_of(node, "pages"), [], ""
    for _ in range(4):
        page = node.control("GET", f"{path}?limit=2" + (f"&cursor={cursor}" if cursor else "")).json
        seen.append([each["key"] for each in page["keys"]])
        cursor = page.get("cursor", "")
    assert seen == [["a", "b0"], ["b1", "b2"], ["b3", "b4"], ["large"]] and not cursor
    assert node.control("GET", f"{path}?limit=0").status == 400
    assert node.control("GET", f"{path}?cursor=x").status == 400


def test_queries_read_and_do_not_write(node: Atoll) -> None:
    run(node, "reads", FILL)
    answer = sql(node, "reads", "SELECT id, what, blob FROM orders WHERE id <= ?", 2)
    assert answer.json == {
        "columns": ["id", "what", "blob"], "rows": [[1, "tea", [1, 2]], [2, None, None]], "rows_read": 2,
        "rows_written": 0,
    }  # fmt: skip
    refused = "the object refused: attempt to write a readonly database: SQLITE_READONLY"
    run(node, "reads", 'ctx.storage.sql.exec("DELETE FROM orders WHERE id = 9")')  # is compiled already
    for text in (
        "DELETE FROM orders WHERE id = 9", "INSERT INTO orders (what) VALUES ('x')", "DROP TABLE orders", "SELECT 1; DELETE FROM orders",
        "CREATE TABLE other (x)", "INSERT INTO orders (what) VALUES ('y') RETURNING id",
    ):  # fmt: skip
        answer = sql(node, "reads", text)
        assert answer.status == 400 and answer.json["error"]["message"].startswith(refused), (text, answer.text)
    for text in ("PRAGMA foreign_keys = OFF", "SELECT 1; PRAGMA/**/foreign_keys(0)"):
        assert "PRAGMA" in sql(node, "reads", text).text
    for text in ("PRAGMA query_only = 0", "SELECT * FROM _cf_KV", "BEGIN"):
        assert sql(node, "reads", text).status == 400
    # The object itself goes on writing.
    code = 'ctx.storage.sql.exec("INSERT INTO orders (what) VALUES (1)"); return ctx.storage.sql.exec("PRAGMA foreign_keys").one();'
    assert run(node, "reads", code) == {"foreign_keys": 1}
    assert sql(node, "reads", "SELECT count(*) AS n FROM orders").json["rows"] == [[3]]


def test_execute_changes_all_or_nothing(node: Atoll) -> None:
    run(node, "writes", FILL)
    answer = sql(node, "writes", "UPDATE orders SET what = ? WHERE id = 2", "milk", how="execute")
    assert answer.status == 200 and answer.json["rows_written"] == 1
    assert run(node, "writes", 'return ctx.storage.sql.exec("SELECT what FROM orders").raw().toArray()') == [
        ["tea"],
        ["milk"],
    ]
    answer = sql(node, "writes", "DELETE FROM orders; SELECT missing", how="execute")
    assert answer.status == 400 and "no such column: missing" in answer.text
    assert sql(node, "writes", "SELECT count(*) FROM orders").json["rows"] == [[2]]
    too_much = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20) INSERT INTO orders (what) SELECT hex(zeroblob(40000)) FROM n RETURNING what"
    answer = sql(node, "writes", too_much, how="execute")
    assert answer.status == 400 and "LIMIT" in answer.text
    assert sql(node, "writes", "SELECT count(*) FROM orders").json["rows"] == [[2]]


def test_no_instance_is_made_and_one_that_throws_can_be_looked_into(node: Atoll) -> None:
    made = node.get(NAME, "/made").json
    state = node.control("GET", path_of(node, "never")).json
    assert (state["keys"], state["tables"]) == ([], []) and node.get(NAME, "/made").json == made
    run(node, "throws", 'ctx.storage.kv.put("broken", true)')
    node.control("PUT", path_of(node, "throws", "/alarm"), {"at": 4_000_000_000_000})
    assert [each["key"] for each in node.control("GET", path_of(node, "throws")).json["keys"]] == ["broken"]
    # The name of an object that was looked into first is known to its next event.
    node.control("GET", path_of(node, "named"))
    assert run(node, "named", "return ctx.id.name") == "named"


def test_the_alarm_is_shown_set_and_deleted(node: Atoll) -> None:
    path = path_of(node, "alarms")
    run(node, "alarms", "await ctx.storage.setAlarm(4_000_000_000_000)")
    assert node.control("GET", path).json["alarm"] == "2096-10-02T07:06:40.000Z"
    assert node.control("DELETE", f"{path}/alarm").status == 204
    assert node.control("GET", path).json["alarm"] is None
    assert node.control("PUT", f"{path}/alarm", {}).status == 200
    node.wait_until(lambda: run(node, "alarms", "return ctx.storage.kv.get('rang') ?? null") == "alarms")
    assert node.control("PUT", f"{path}/alarm", {"at": -5}).status == 400


def test_a_class_without_sql_or_alarm_says_so(node: Atoll) -> None:
    path = f"/api/objects/{NAME}/Plain/{node.get(NAME, '/plain').text}"
    state = node.control("GET", path).json
    assert (state["storage"], state["keys"][0]["key"], state["keys"][0]["value"]) == ("kv", "k", "[ 1, 2 ]")
    for how in ("query", "execute"):
        assert "SQL" in node.control("POST", f"{path}/{how}", {"sql": "SELECT 1"}).json["error"]["message"]
    assert "alarm() handler" in node.control("PUT", f"{path}/alarm", {}).text


def test_sockets_are_listed_with_their_tags(node: Atoll) -> None:
    address = f"ws://{NAME}.localhost:{node.port}/?name=sockets"
    ways = [socket.create_connection(("127.0.0.1", node.port)) for _ in range(2)]
    with connect(address, sock=ways[0]), connect(address, sock=ways[1]):
        path = path_of(node, "sockets", "/sockets")
        found = node.control("GET", path).json["sockets"]
        assert [(each["number"], each["tags"], each["responded_at"]) for each in found] == [
            (1, ["guest", "täg"], None), (2, ["guest", "täg"], None),
        ]  # fmt: skip
        node.wait_until(lambda: node.control("GET", path).json["sockets"][0]["attachment_bytes"])
        page = node.control("GET", f"{path}?limit=1").json
        assert page["cursor"] == "1"
        assert [each["number"] for each in node.control("GET", f"{path}?limit=1&cursor=1").json["sockets"]] == [2]


def test_a_query_without_an_end_is_stopped_and_the_object_goes_on(node: Atoll) -> None:
    run(node, "endless", FILL)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    assert sql(node, "endless", endless).status >= 400
    assert sql(node, "endless", "INSERT INTO orders (what) VALUES ('z')", how="execute").status == 200
    assert run(node, "endless", 'ctx.storage.sql.exec("DELETE FROM orders")') is None


def atoll_cli(node: Atoll, *arguments: str, stdin: str = "") -> str:
    command = [ATOLL, "objects", *arguments, "--api", f"http://localhost:{node.port}"]
    done = subprocess.run(
        command, env=environment(Path("/nowhere")), input=stdin, text=True, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_commands_show_what_the_endpoints_answer(node: Atoll) -> None:
    run(node, "cli", FILL)
    one = [NAME, "Shop", node.get(NAME, "/id?name=cli").text]
    shown = atoll_cli(node, "show", *one, "--keys", "3")
    assert "orders" in shown and "deep" in shown and "--keys 30" in shown
    assert len(json.loads(atoll_cli(node, "show", *one, "--json"))["keys"]) == 7
    assert "tea" in atoll_cli(node, "sql", *one, "SELECT * FROM orders")
    assert (
        json.loads(atoll_cli(node, "sql", *one, "DELETE FROM orders WHERE id = 1", "--write", "--json"))["rows_written"]
        == 1
    )
    assert "2" in atoll_cli(node, "sql", *one, stdin="SELECT id\nFROM orders;\n")
    assert "2096-10-02" in atoll_cli(node, "alarm", *one, "--at", "2096-10-02T07:06:40Z")
    assert json.loads(atoll_cli(node, "alarm", *one, "--json"))["alarm"] == "2096-10-02T07:06:40.000Z"
    assert "no alarm" in atoll_cli(node, "alarm", *one, "--delete")
    assert atoll_cli(node, "sockets", *one) == ""  # that there are none is told on stderr
    assert json.loads(atoll_cli(node, "sockets", *one, "--json")) == []
    assert json.loads(atoll_cli(node, "delete", *one, "--json")) == {"deleted": one[2]}
