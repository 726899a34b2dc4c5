"""A worker whose objects keep a ledger, clients that add to it, and the check that nothing is lost or doubled."""

from __future__ import annotations

import http.client
import json
import random
import secrets
import threading
import time
from collections.abc import Callable
from urllib.parse import quote

from tests.cluster.conftest import Nodes
from tests.running import Atoll

SCRIPT = """
import { DurableObject } from "cloudflare:workers";
export class Ledger extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.copy = crypto.randomUUID();
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS ledger (id TEXT)");
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS copies (number INTEGER PRIMARY KEY, copy TEXT)");
  }
  add(id) {
    const sql = this.ctx.storage.sql;
    sql.exec("INSERT INTO ledger VALUES (?)", id);
    return { copy: this.copy, count: sql.exec("SELECT count(*) AS n FROM ledger").one().n };
  }
  read() { return { copy: this.copy, count: this.ctx.storage.sql.exec("SELECT count(*) AS n FROM ledger").one().n }; }
  ids() { return this.ctx.storage.sql.exec("SELECT id FROM ledger").toArray().map((row) => row.id); }
  fill(mb) {
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS blobs (data BLOB)");
    for (let i = 0; i < mb; i++) this.ctx.storage.sql.exec("INSERT INTO blobs VALUES (randomblob(1000000))");
    return this.ctx.storage.sql.databaseSize;
  }
  sum() { return this.ctx.storage.sql.exec("SELECT hex(substr(data, 1, 8)) AS h FROM blobs").toArray(); }
  shrink() { this.ctx.storage.sql.exec("DELETE FROM blobs"); return this.ctx.storage.sql.databaseSize; }
  alarmIn(ms) { return this.ctx.storage.setAlarm(Date.now() + ms); }
  alarm() { this.ctx.storage.sql.exec("INSERT INTO ledger VALUES ('alarm')"); }
  fetch(request) { return new Response(request.body, { headers: { copy: this.copy } }); }
}
export default { async fetch(request, env) {
  const { object, method, args } = JSON.parse(decodeURIComponent(new URL(request.url).search.slice(1)));
  const stub = env.LEDGER.get(env.LEDGER.idFromName(object));
  if (method === "fetch") return stub.fetch(request);
  try {
    return Response.json({ value: (await stub[method](...args)) ?? null });
  } catch (error) {
    return Response.json({ message: error.message, retryable: error.retryable === true });
  }
} }
"""
BINDINGS = [{"type": "durable_object", "name": "LEDGER", "class_name": "Ledger"}]
MIGRATIONS = [{"tag": "v1", "new_sqlite_classes": ["Ledger"]}]


def deploy(nodes: Nodes, name: str = "ledger") -> None:
    nodes.deploy(name, SCRIPT, bindings=BINDINGS, migrations=MIGRATIONS)


def ask(node: Atoll, object: str, method: str, *args: object, name: str = "ledger") -> dict[str, object]:
    """{value} or {message, retryable}. OSError if the node is down."""
    question = quote(json.dumps({"object": object, "method": method, "args": args}))
    answer = node.request("GET", node.host(name), f"/?{question}")
    if answer.status != 200:
        return {"message": f"{answer.status} {answer.text[:200]}", "retryable": False}
    found: dict[str, object] = answer.json
    return found


def value(node: Atoll, object: str, method: str, *args: object, name: str = "ledger") -> object:
    """The answer, asked for again as long as a retry may help."""
    until = time.monotonic() + 30
    while True:
        found = ask(node, object, method, *args, name=name)
        if "value" in found:
            return found["value"]
        assert found["retryable"] and time.monotonic() < until, found
        time.sleep(0.05)


class Load:
    """Clients that add ids to some objects over random nodes, and remember what was acknowledged."""

    def __init__(self, nodes: Callable[[], list[Atoll]], objects: int = 4, clients: int = 4) -> None:
        self._nodes = nodes
        self.only: list[Atoll] | None = None  # the nodes to ask
        self._tag = secrets.token_hex(4)
        self._stop = threading.Event()
        self.objects = [f"{self._tag}-{number}" for number in range(objects)]
        self.sent: dict[str, set[str]] = {name: set() for name in self.objects}
        self.acknowledged: dict[str, set[str]] = {name: set() for name in self.objects}
        self.counts: dict[str, dict[str, int]] = {name: {} for name in self.objects}  # by object and copy: the last
        self.faults: list[str] = []
        self.refused: list[str] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(clients)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, client: int) -> None:
        number, choice = 0, random.Random(client)
        while not self._stop.is_set():
            number += 1
            name, id = choice.choice(self.objects), f"{client}-{number}"
            self.sent[name].add(id)
            with self._lock:
                least = len(self.acknowledged[name])
            try:
                found = ask(choice.choice(self.only or self._nodes()), name, "add", id)
            except (OSError, http.client.HTTPException):  # the node is down
                time.sleep(0.02)
                continue
            if "value" in found:
                answer = found["value"]
                assert isinstance(answer, dict)
                with self._lock:
                    self.acknowledged[name].add(id)
                    if answer["count"] <= least:
                        self.faults.append(f"{name} had {answer['count']} rows after {least} were acknowledged")
            else:
                self.refused.append(str(found["message"]))
                time.sleep(0.02)

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def wait_for(self, more: int, seconds: float = 60) -> None:
        before = self.count
        Atoll.wait_until(lambda: self.count >= before + more, seconds)

    def check(self, node: Atoll) -> None:
        assert not self.faults, self.faults[:5]
        for name in self.objects:
            stored = value(node, name, "ids")
            assert isinstance(stored, list)
            assert len(stored) == len(set(stored)), "something is there twice"
            assert self.acknowledged[name] <= set(stored), "something that was acknowledged is lost"
            assert set(stored) <= self.sent[name]
