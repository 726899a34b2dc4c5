"""A program in the shape of its kind: a counter that many people change at once, with a wrangler config.

Its WebSockets hibernate, its alarm writes what happened into a log and says so to everybody, and its state survives.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from atoll.project.read import read_project
from tests.running import Atoll

CONFIG = """{
  // as wrangler init writes it
  "$schema": "node_modules/wrangler/config-schema.json",
  "name": "together",
  "main": "src/index.js",
  "compatibility_date": "2026-05-01",
  "observability": { "enabled": true },
  "durable_objects": { "bindings": [{ "name": "COUNTERS", "class_name": "SharedCounter" }] },
  "migrations": [{ "tag": "v1", "new_sqlite_classes": ["SharedCounter"] }],
}"""

SOURCE = """
import { DurableObject } from "cloudflare:workers";
export class SharedCounter extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.sql = ctx.storage.sql;
    ctx.blockConcurrencyWhile(async () => {
      this.sql.exec("CREATE TABLE IF NOT EXISTS clicks (id INTEGER PRIMARY KEY, who TEXT NOT NULL, by INTEGER NOT NULL)");
      this.sql.exec("CREATE TABLE IF NOT EXISTS log (at INTEGER, total INTEGER, clicks INTEGER)");
    });
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
  }
  total() { return this.sql.exec("SELECT coalesce(sum(by), 0) AS n FROM clicks").one().n; }
  async fetch(request) {
    if (request.headers.get("Upgrade") !== "websocket") {
      return Response.json({ total: this.total(), log: this.sql.exec("SELECT total, clicks FROM log").toArray() });
    }
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    server.serializeAttachment({ who: new URL(request.url).searchParams.get("who") });
    server.send(JSON.stringify({ total: this.total() }));
    return new Response(null, { status: 101, webSocket: client });
  }
  async webSocketMessage(ws, message) {
    const { who } = ws.deserializeAttachment();
    this.sql.exec("INSERT INTO clicks (who, by) VALUES (?, ?)", who, JSON.parse(message).by);
    if ((await this.ctx.storage.getAlarm()) === null) await this.ctx.storage.setAlarm(Date.now() + 300);
    this.tell({ total: this.total(), who });
  }
  tell(news) { for (const ws of this.ctx.getWebSockets()) ws.send(JSON.stringify(news)); }
  async alarm() {
    const { clicks } = this.sql.exec("SELECT count(*) AS clicks FROM clicks").one();
    this.sql.exec("INSERT INTO log VALUES (?, ?, ?)", Date.now(), this.total(), clicks);
    this.tell({ saved: clicks });
  }
}
export default {
  async fetch(request, env) {
    const id = env.COUNTERS.idFromName(new URL(request.url).pathname);
    return env.COUNTERS.get(id).fetch(request);
  },
};
"""


async def test_people_count_together(new_atoll: Callable[..., Atoll], tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "wrangler.jsonc").write_text(CONFIG)
    (tmp_path / "src/index.js").write_text(SOURCE)
    project = read_project(tmp_path)
    assert not project.errors and project.main is not None
    node = new_atoll()
    node.deploy(script=project.main.read_text(), **project.settings())
    options: dict[str, Any] = {"host": "127.0.0.1", "port": node.port, "proxy": None}
    address = f"ws://{node.host('together')}/room?who="

    async def heard(client: ClientConnection, last: object) -> list[Any]:
        found = [json.loads(await client.recv())]
        while found[-1] != last:
            found.append(json.loads(await client.recv()))
        return found

    async with connect(address + "Ada", **options) as ada, connect(address + "Bo", **options) as bo:
        assert [json.loads(await each.recv()) for each in (ada, bo)] == [{"total": 0}, {"total": 0}]
        await ada.send("ping")
        assert await ada.recv() == "pong"
        for number in range(20):
            await (ada, bo)[number % 2].send(json.dumps({"by": 1 + number % 2}))
        news = await heard(ada, {"saved": 20})
        assert await heard(bo, {"saved": 20}) == news, "both hear the same in the same order"
        assert [each["total"] for each in news if "total" in each][-1] == 30
    node.stop(signal.SIGKILL)
    node.start()
    kept = node.get("together", "/room").json
    assert kept["total"] == 30 and kept["log"][-1] == {"total": 30, "clicks": 20}
    async with connect(address + "Cy", **options) as cy:
        await cy.send(json.dumps({"by": -30}))
        assert await heard(cy, {"saved": 21}) == [{"total": 30}, {"total": 0, "who": "Cy"}, {"saved": 21}]
    assert node.get("together", "/other").json == {"total": 0, "log": []}
