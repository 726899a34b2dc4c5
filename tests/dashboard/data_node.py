"""A node with data of every kind, some of it hostile, and a tab that looks at it. Import the fixtures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.browser import Tab, browser
from tests.dashboard.pages import Pages
from tests.running import Answer, Atoll

__all__ = ["browser", "data_node", "data_tab", "pages"]

EVIL = "<img src=x onerror=console.error('evil')>"
RTL = "a\u202egpj.exe"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c626001000000ffff03000006000557bfabd40000000049454e44ae426082"
)
WORKER = """import { DurableObject } from "cloudflare:workers";
export class Box extends DurableObject {
  async fetch(request) {
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS visits (id INTEGER PRIMARY KEY, who TEXT)");
    this.ctx.storage.sql.exec("INSERT INTO visits (who) VALUES (?)", EVIL);
    await this.ctx.storage.put("greeting", EVIL);
    await this.ctx.storage.setAlarm(Date.now() + 3600_000);
    return new Response(this.ctx.id.toString());
  }
  alarm() {}
}
const EVIL = EVIL_TEXT;
export default {
  async fetch(request, env) {
    await caches.default.put("http://shop.example/tea?" + encodeURIComponent(EVIL), new Response("tea", { headers: { "Cache-Control": "max-age=600", "Cache-Tag": "teas" } }));
    return env.BOX.get(env.BOX.idFromName("one")).fetch(request);
  },
  async queue(batch) { for (const each of batch.messages) each.retry(); },
}""".replace("EVIL_TEXT", json.dumps(EVIL))


def control(node: Atoll, method: str, path: str, body: object = None) -> Answer:
    answer = node.control(method, path, body)
    assert answer.status < 300, answer.text
    return answer


def put_value(node: Atoll, namespace: str, key: str, value: bytes, query: str = "") -> None:
    path = f"/api/kv/{namespace}/values/{quote(key, safe='')}{query and '?' + query}"
    answer = node.request("PUT", node.control_host, path, value, {"Content-Type": "application/octet-stream"})
    assert answer.status == 204, answer.text


def value_of(node: Atoll, namespace: str, key: str) -> Answer:
    return node.control("GET", f"/api/kv/{namespace}/values/{quote(key, safe='')}")


def put_file(node: Atoll, bucket: str, key: str, content: bytes, kind: str = "text/html", **headers: str) -> None:
    path = f"/api/r2/{bucket}/objects/{quote(key, safe='')}"
    answer = node.request("PUT", node.control_host, path, content, {"Content-Type": kind, **headers})
    assert answer.status == 200, answer.text


def fill(node: Atoll) -> str:
    """Data of every kind; returns the id of a Durable Object."""
    for name in ("hostile", "empty"):
        control(node, "POST", "/api/kv", {"name": name})
        control(node, "POST", "/api/d1", {"name": name})
        control(node, "POST", "/api/r2", {"name": f"{name}-files"})
        control(node, "POST", "/api/queues", {"name": name})
    put_value(node, "hostile", EVIL, EVIL.encode(), "metadata=" + quote(json.dumps({"evil": EVIL})))
    put_value(node, "hostile", RTL, RTL.encode())
    put_value(node, "hostile", "a/b/../c", b'{"big": 12345678901234567890, "list": [1, {"x": []}]}')
    put_value(node, "hostile", "bytes", bytes(range(256)))
    put_value(node, "hostile", "picture", PNG)
    put_value(node, "hostile", "long", b"x" * (1 << 20))
    sql = (
        f'CREATE TABLE "{EVIL}" ("{EVIL}" TEXT, n INTEGER); INSERT INTO "{EVIL}" VALUES (\'{EVIL.replace(chr(39), chr(39) * 2)}\', 9007199254740993), (NULL, 1);'
        " CREATE TABLE many (id INTEGER PRIMARY KEY, name TEXT, price REAL, raw BLOB);"
        " WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 10000) INSERT INTO many SELECT n, 'tea ' || n, n / 4.0, x'00ff' FROM c;"
        " CREATE TABLE bare (id INTEGER PRIMARY KEY); CREATE VIEW cheap AS SELECT * FROM many WHERE price < 10;"
        " CREATE TABLE keyed (code TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO keyed VALUES ('a')"
    )
    control(node, "POST", "/api/d1/hostile/query", {"sql": sql})
    put_file(
        node, "hostile-files", "pages/index.html", f"<h1>{EVIL}</h1><script>console.error('ran')</script>".encode()
    )
    put_file(
        node,
        "hostile-files",
        "pages/logo.svg",
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='console.error(1)'/>",
        "image/svg+xml",
    )
    put_file(node, "hostile-files", "picture.png", PNG, "image/png", **{"X-Atoll-Metadata": json.dumps({"by": EVIL})})
    put_file(node, "hostile-files", EVIL, b"x", EVIL.replace("\n", ""))
    messages = [
        {"body": {"evil": EVIL}},
        {"body": EVIL, "content_type": "text"},
        {"body": "AP8=", "content_type": "bytes"},
    ]
    control(node, "POST", "/api/queues/hostile/messages", {"messages": messages})
    node.deploy(
        "box", WORKER,
        bindings=[
            {"type": "durable_object", "name": "BOX", "class_name": "Box"}, {"type": "kv", "name": "KV", "namespace": "hostile"},
            {"type": "d1", "name": "DB", "database": "hostile"}, {"type": "r2", "name": "FILES", "bucket": "hostile-files"},
            {"type": "queue", "name": "QUEUE", "queue": "hostile"},
        ],
        migrations=[{"tag": "v1", "new_sqlite_classes": ["Box"]}],
    )  # fmt: skip
    return node.get("box").text


@pytest.fixture(scope="module")
def data_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("data"), engines=1)
    node.start()
    node.object_id = fill(node)  # type: ignore[attr-defined]
    yield node
    assert node.stop() == 0


@pytest.fixture(scope="module")
def data_tab(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    tab = Tab(browser, tmp_path_factory.mktemp("data-tab"))
    yield tab
    tab.close()


@pytest.fixture
def pages(data_tab: Tab, data_node: Atoll) -> Pages:
    data_tab.send("Network.clearBrowserCookies")
    data_tab.events.clear()
    pages = Pages(data_tab, data_node)
    pages.theme("light")
    pages.width(1280)
    return pages
