"""Three nodes on one PostgreSQL, behind a real nginx: changes reach all nodes, and a lost node costs no data."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import itertools
import json
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

from tests.assets.sites import add_manifest, deploy_site, sha256, upload
from tests.assets.sites import packed as packed_files
from tests.cluster.conftest import Nodes
from tests.cluster.edges import ask, edge
from tests.running import Answer, Atoll

HELLO = 'export default { fetch() { return new Response("%s"); } }'
KV = """export default { async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    if (request.method === "PUT") { await env.KV.put(pathname, searchParams.get("value")); return new Response("ok"); }
    return new Response(await env.KV.get(pathname) ?? "none");
} }"""
QUEUE = """export default {
    async fetch(request, env) {
        await env.JOBS.send(new URL(request.url).searchParams.get("id"));
        return new Response("sent");
    },
    async queue(batch, env) { for (const message of batch.messages) await env.KV.put("seen/" + message.body, "1"); },
}"""
SEEN = """export default { async fetch(request, env) {
    const ids = []; let cursor;
    do {
        const page = await env.KV.list({ prefix: "seen/", cursor });
        ids.push(...page.keys.map((key) => key.name.slice(5)));
        cursor = page.cursor;
    } while (cursor);
    return Response.json(ids);
} }"""


def kv(name: str) -> dict[str, str]:
    return {"type": "kv", "name": "KV", "namespace": name}


def answers(nodes: Nodes, name: str, path: str = "/") -> list[str]:
    return [node.get(name, path).text for node in nodes.all if node.process is not None]


def test_what_one_node_deploys_changes_and_deletes_all_nodes_serve(nodes: Nodes) -> None:
    nodes.deploy("all", HELLO % "one")
    assert answers(nodes, "all") == ["one"] * 3
    changed = nodes.all[1].control("PUT", "/api/workers/all", {"script": HELLO % "two", "routes": ["all.example/*"]})
    assert changed.status == 200, changed.text
    assert answers(nodes, "all") == ["two"] * 3
    assert [node.request("GET", "all.example").text for node in nodes.all] == ["two"] * 3
    back = nodes.all[2].control("POST", "/api/workers/all/rollback", {})
    assert back.status == 200, back.text
    assert answers(nodes, "all") == ["one"] * 3
    assert nodes.all[0].control("DELETE", "/api/workers/all").status == 204
    assert [node.get("all").status for node in nodes.all] == [404] * 3


def test_a_secret_of_one_node_opens_on_the_others(nodes: Nodes) -> None:
    nodes.deploy("secret", "export default { fetch(_, env) { return new Response(env.WORD); } }")
    put = nodes.all[1].control("PUT", "/api/workers/secret/secrets/WORD", {"value": "swordfish"})
    assert put.status in (200, 201), put.text
    assert answers(nodes, "secret") == ["swordfish"] * 3


def test_secrets_stores_and_databases_of_one_node_are_there_on_every_node(nodes: Nodes) -> None:
    first, second, third = nodes.all
    assert first.control("POST", "/api/secrets-stores", {"name": "team"}).status == 201
    put = second.control("PUT", "/api/secrets-stores/team/secrets/word", {"value": "swordfish"})
    assert put.status == 200, put.text
    named = {"name": "shop", "connection_string": "postgresql://ada:pw@db.example:5432/shop"}
    assert third.control("POST", "/api/hyperdrive", named).status == 201
    bindings = [
        {"type": "secrets_store_secret", "name": "WORD", "store": "team", "secret": "word"},
        {"type": "hyperdrive", "name": "DB", "database": "shop"},
    ]
    script = "export default { async fetch(_, env) { return new Response(await env.WORD.get() + env.DB.user); } }"
    nodes.deploy("stores", script, bindings=bindings)
    assert answers(nodes, "stores") == ["swordfishada"] * 3
    changed = third.control("PUT", "/api/secrets-stores/team/secrets/word", {"value": "mackerel"})
    assert changed.status == 200, changed.text
    assert answers(nodes, "stores") == ["mackerelada"] * 3
    again = first.control("POST", "/api/hyperdrive", named)
    assert again.status == 409, again.text
    assert second.control("DELETE", "/api/secrets-stores/team").status == 204
    assert [node.control("GET", "/api/secrets-stores").json["stores"] for node in nodes.all] == [[]] * 3
    assert nodes.all[0].control("DELETE", "/api/workers/stores").status == 204


SITE = {"/index.html": b"<h1>home</h1>", "/large.bin": bytes(range(256)) * 2_000, "/a.txt": b"text " * 3_000}


def test_files_of_a_site_that_one_node_received_are_served_by_every_node(nodes: Nodes) -> None:
    first, second, third = nodes.all
    deploy_site(first, "site", SITE)
    assert answers(nodes, "site") == ["<h1>home</h1>"] * 3
    for node in nodes.all:
        for _ in range(2):  # fetched, then from the disk or the memory of the node
            assert node.get("site", "/large.bin").body == SITE["/large.bin"]
        part = node.request("GET", node.host("site"), "/large.bin", None, {"Range": "bytes=300-309"})
        assert part.status == 206 and part.body == SITE["/large.bin"][300:310]
        packed = node.request("GET", node.host("site"), "/a.txt", None, {"Accept-Encoding": "gzip"})
        assert gzip.decompress(packed.body) == SITE["/a.txt"]
    changed = {**SITE, "/index.html": b"<h1>new</h1>"}
    assert add_manifest(second, changed)["missing"] == [sha256(b"<h1>new</h1>")]
    assert upload(third, packed_files([b"<h1>new</h1>"])).status == 200  # begun on one node, finished on another
    assert add_manifest(first, changed)["missing"] == []
    found = third.control(
        "PUT", "/api/workers/site", {"assets": {"manifest": add_manifest(third, changed)["manifest"]}}
    )
    assert found.status == 200, found.text
    assert answers(nodes, "site") == ["<h1>new</h1>"] * 3
    newest = second.control("GET", "/api/workers/site/versions").json["versions"][0]["id"]
    bundle = second.control("GET", f"/api/workers/site/versions/{newest}/bundle")
    assert bundle.status == 200 and SITE["/large.bin"] in bundle.body


def test_a_token_works_on_every_node_and_is_revoked_on_every_node(nodes: Nodes) -> None:
    made = nodes.all[0].control("POST", "/api/tokens", {"name": "ci", "scopes": ["read"]}).json
    headers = {"Authorization": f"Bearer {made['token']}"}

    def statuses() -> list[int]:
        return [node.request("GET", node.control_host, "/api/workers", None, headers).status for node in nodes.all]

    assert statuses() == [200] * 3
    assert nodes.all[2].control("DELETE", f"/api/tokens/{made['id']}").status == 204
    assert statuses() == [401] * 3


def test_a_session_of_the_dashboard_holds_on_every_node_and_ends_on_every_node(nodes: Nodes) -> None:
    text = [nodes.all[0].control("POST", "/api/tokens", {"name": "me", "scopes": ["read"]}).json for _ in range(2)]

    def ask(node: Atoll, method: str, cookie: str, **headers: str) -> Answer:
        sent = {"Cookie": cookie, "Origin": f"http://{node.control_host}", **headers}
        return node.request(method, node.control_host, "/api/session", None, sent)

    def begin(node: Atoll, token: str) -> str:
        sent = {"Origin": f"http://{node.control_host}", "Content-Type": "application/json"}
        made = node.request("POST", node.control_host, "/api/session", json.dumps({"token": token}), sent)
        assert made.status == 201, made.text
        return str(made.headers["set-cookie"]).partition(";")[0]

    def lives(cookie: str) -> list[bool]:
        return [ask(node, "GET", cookie).json["is_session"] for node in nodes.all]

    ended, revoked = (begin(nodes.all[0], each["token"]) for each in text)
    assert lives(ended) == lives(revoked) == [True] * 3
    csrf = ask(nodes.all[1], "GET", ended).json["csrf"]
    assert ask(nodes.all[2], "DELETE", ended, **{"X-Atoll-CSRF": csrf}).status == 204
    assert nodes.all[1].control("DELETE", f"/api/tokens/{text[1]['id']}").status == 204
    assert lives(ended) == lives(revoked) == [False] * 3


def test_two_nodes_that_create_the_same_worker_at_once_make_one(nodes: Nodes) -> None:
    found: list[Answer] = []

    def create(node: Atoll, text: str) -> None:
        found.append(node.control("POST", "/api/workers", {"name": "race", "script": HELLO % text}))

    threads = [threading.Thread(target=create, args=(node, str(i))) for i, node in enumerate(nodes.all)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in found) == [201, 409, 409], [answer.text for answer in found]
    assert len(set(answers(nodes, "race"))) == 1


def test_no_reader_sees_less_than_the_last_confirmed_value(nodes: Nodes) -> None:
    nodes.deploy("kv", KV, bindings=[kv("values")])
    confirmed, wrong = [0], []
    stop = threading.Event()

    def read(node: Atoll) -> None:
        while not stop.is_set():
            least = confirmed[0]
            text = node.get("kv", "/key").text
            if least and int(text) < least:
                wrong.append((least, text))

    readers = [threading.Thread(target=read, args=(node,)) for node in nodes.all[1:]]
    for reader in readers:
        reader.start()
    for value in range(1, 200):
        put = nodes.all[value % 3].request("PUT", nodes.all[value % 3].host("kv"), f"/key?value={value}")
        assert put.status == 200, put.text
        confirmed[0] = value
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong


def test_what_several_nodes_cannot_share_is_refused_with_a_reason(nodes: Nodes) -> None:
    script = "export class A {}; export default { fetch() {} }"
    bindings = [{"type": "analytics_engine", "name": "EVENTS", "dataset": "shop"}]
    for node in nodes.all:
        refused = node.control("POST", "/api/workers", {"name": "data", "script": script, "bindings": bindings})
        assert refused.status == 501 and "Analytics Engine" in refused.json["error"]["message"], refused.text
        assert "--only-node on" in refused.json["error"]["hint"]
        assert node.control("GET", "/api/workflows").status == 501
        assert node.control("GET", "/api/backup").status == 501
    assert [node.get("data").status for node in nodes.all] == [404] * 3


def test_nodes_are_listed_and_print_the_configuration_of_an_edge(nodes: Nodes, tmp_path: Path) -> None:
    found = nodes.all[1].control("GET", "/api/nodes").json["nodes"]
    assert [node["address"] for node in found] == [f"127.0.0.1:{node.port}" for node in nodes.all]
    assert {node["state"] for node in found} == {"serving"}
    for words in (["nodes", "list"], ["nodes", "watch", "--times", "1"]):
        asked = [nodes.all[0].command[0], *words, "--json", "--api", f"http://localhost:{nodes.all[0].port}"]
        listed = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
        assert [node["name"] for node in listed] == [node["name"] for node in found]
        assert all(node["change"] > 0 for node in listed)
    command = [nodes.all[0].command[0], "edge", "haproxy", "--api", f"http://localhost:{nodes.all[0].port}"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert all(f"127.0.0.1:{node.port} check" in printed for node in nodes.all)


def test_behind_an_edge_a_node_that_is_killed_costs_no_request_and_no_message(nodes: Nodes, tmp_path: Path) -> None:
    jobs = {"type": "queue", "name": "JOBS", "queue": "jobs"}
    consumers = [{"queue": "jobs", "max_batch_size": 5, "max_batch_timeout": 0}]
    nodes.deploy("jobs", QUEUE, bindings=[jobs, kv("seen")], queue_consumers=consumers)
    nodes.deploy("seen", SEEN, bindings=[kv("seen")])
    names = [f"load{i}" for i in range(6)]  # hosts are spread over the nodes
    for name in names:
        nodes.deploy(name, HELLO % name)
    statuses: Counter[int | str] = Counter()
    sent: list[str] = []
    stop, count = threading.Event(), itertools.count()

    def load(port: int) -> None:
        while not stop.is_set():
            number = next(count)
            name = names[number % len(names)]
            answer = ask(port, f"{name}.localhost")
            statuses[answer.status if answer.text == name else f"{answer.status} {answer.text[:99]}"] += 1

    def send(port: int) -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                number = str(next(count))
                if ask(port, "jobs.localhost", f"/?id={number}").text == "sent":
                    sent.append(number)

    with edge("nginx", nodes, tmp_path) as port:
        threads = [threading.Thread(target=each, args=(port,)) for each in (load, load, send)]
        for thread in threads:
            thread.start()
        Atoll.wait_until(lambda: statuses[200] > 100 and len(sent) > 20, 30)
        victim = nodes.all.pop()
        victim.stop(signal.SIGKILL)
        before = statuses[200], len(sent)
        Atoll.wait_until(lambda: statuses[200] > before[0] + 200 and len(sent) > before[1] + 20, 40)
        stop.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}, statuses
    Atoll.wait_until(lambda: set(sent) <= set(nodes.all[0].get("seen").json), 30)
    Atoll.wait_until(lambda: states(nodes)[victim.port] == "lost", 15)


def states(nodes: Nodes) -> dict[int, str]:
    found = nodes.all[0].control("GET", "/api/nodes").json["nodes"]
    return {int(node["address"].rpartition(":")[2]): node["state"] for node in found}


def test_a_node_that_is_drained_says_so_and_goes_on_until_it_is_stopped(nodes: Nodes) -> None:
    nodes.deploy("drain", HELLO % "here")
    node = nodes.add(node_name="fourth")
    assert nodes.all[0].control("POST", "/api/nodes/fourth/drain", {}).status == 200
    node.wait_until(lambda: node.control("GET", "/readyz").status == 503)
    assert node.get("drain").text == "here"
    assert states(nodes)[node.port] == "draining"
    assert node.stop() == 0
    nodes.all.remove(node)
    assert node.port not in states(nodes), "a node that was stopped has left"
    assert nodes.all[0].control("POST", "/api/nodes/fourth/drain", {}).status == 404


def test_without_postgresql_workers_go_on_and_everything_else_says_why(nodes: Nodes) -> None:
    nodes.deploy("plain", HELLO % "still here")
    deploy_site(nodes.all[0], "files", {"/here.txt": b"here", "/away.bin": bytes(300_000)})
    assert nodes.all[1].get("files", "/here.txt").text == "here"
    nodes.deploy("stored", KV, bindings=[kv("outage")])
    node = nodes.all[0]
    assert node.request("PUT", node.host("stored"), "/a?value=1").text == "ok"
    nodes.server.stop()
    try:
        assert answers(nodes, "plain") == ["still here"] * len(nodes.all)
        assert [each.control("GET", "/readyz").status for each in nodes.all] == [200] * len(nodes.all)
        refused = node.control("POST", "/api/workers", {"name": "new", "script": HELLO % "new"})
        assert refused.status == 503 and refused.headers["retry-after"], refused.text
        assert node.get("stored", "/a").status >= 500
        assert nodes.all[1].get("files", "/here.txt").text == "here"
        missing = nodes.all[1].get("files", "/away.bin")
        assert missing.status == 503 and missing.headers["retry-after"], missing.text
        started = time.monotonic()
        assert all(node.get("plain").status == 200 for _ in range(100))
        assert time.monotonic() - started < 20
    finally:
        nodes.server.start()
    node.wait_until(lambda: node.get("stored", "/a").text == "1", 20)
    node.wait_until(lambda: nodes.all[1].get("files", "/away.bin").body == bytes(300_000), 20)
    node.wait_until(lambda: node.control("PUT", "/api/workers/plain", {"script": HELLO % "new"}).status == 200, 20)
    node.wait_until(lambda: answers(nodes, "plain") == ["new"] * len(nodes.all), 10)
    assert PASSWORD not in node.log() and "pa55" not in node.log()


PASSWORD = "pa55 w/ord?"
