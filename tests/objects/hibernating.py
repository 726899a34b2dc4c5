"""A node in this process with an object whose WebSockets hibernate, for tests that watch both sides."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from atoll.embed import Atoll
from atoll.engine.objects import runtime as runtime_module
from atoll.engine.objects.runtime import ObjectRuntime
from tests.eventually import eventually

SOURCE = """
import { DurableObject } from "cloudflare:workers";
let made = 0;
export class Room extends DurableObject {
  number = ++made;
  closes = [];
  accept(tags, attachment) {
    const [client, server] = new WebSocketPair();
    this.ctx.acceptWebSocket(server, tags);
    if (attachment !== undefined) server.serializeAttachment(attachment);
    return client;
  }
  fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const webSocket = this.accept(searchParams.getAll("tag"), { path: pathname });
    return new Response(null, { status: 101, webSocket });
  }
  /** Each message is code. Its result is sent back. */
  async webSocketMessage(ws, message) {
    if (typeof message !== "string") return ws.send(`${message.constructor.name} ${message.byteLength}`);
    const run = new Function("object", "ws", "ctx", `return (async () => { ${message} })()`);
    ws.send(JSON.stringify((await run(this, ws, this.ctx)) ?? null));
  }
  async webSocketClose(ws, code, reason, clean) {
    this.closes.push([code, reason, clean, ws.readyState, this.ctx.getWebSockets().includes(ws)]);
    await this.onClose?.(ws);
  }
  webSocketError(ws, error) {
    this.closes.push([error.message]);
  }
  async run(code) {
    return new Function("object", "ctx", `return (async () => { ${code} })()`)(this, this.ctx);
  }
}
export default {
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    const room = env.ROOM.getByName("one");
    if (pathname === "/run") return Response.json((await room.run(await request.text())) ?? null);
    if (pathname === "/worker") {
      const run = new Function("room", "env", "ctx", `return (async () => { ${await request.text()} })()`);
      return Response.json((await run(room, env, ctx)) ?? null);
    }
    return room.fetch(request);
  },
};
"""
FIELDS: dict[str, Any] = {
    "bindings": [{"type": "durable_object", "name": "ROOM", "class_name": "Room"}],
    "migrations": [{"tag": "v1", "new_sqlite_classes": ["Room"]}],
    "switches": {"allow_eval": True},
}


async def until(condition: Callable[[], object], what: str) -> None:
    async def is_so() -> object:
        return condition()

    await eventually(is_so, what)


class Stage:
    def __init__(self, node: Atoll) -> None:
        self.node = node

    @property
    def runtime(self) -> ObjectRuntime:
        return self.node.node.objects.runtime

    @property
    def sockets(self) -> int:
        return self.runtime.hibernation.count()

    def connect(self, path: str = "/", **options: Any) -> connect:
        port = self.node.port
        wanted: dict[str, Any] = {"compression": None, "max_size": None, **options}
        return connect(f"ws://room.localhost:{port}{path}", host="127.0.0.1", port=port, **wanted)

    async def run(self, code: str, path: str = "/run") -> Any:
        """Run code in the object, which has `object` and `ctx`."""
        answer = await self.node.fetch(self.node.url("room", path), method="POST", body=code.encode())
        assert answer.status == 200, answer.text
        return answer.json()

    async def evicted(self) -> None:
        await until(lambda: not self.runtime.count(), "the object is evicted")


async def say(client: ClientConnection, code: str) -> Any:
    await client.send(code)
    return json.loads(await client.recv())


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(runtime_module, "IDLE_SECONDS", 0.3)
    async with opened() as stage:
        yield stage


@asynccontextmanager
async def opened(source: str = SOURCE, change: Callable[[dict[str, Any]], None] | None = None, **settings: Any) -> Any:
    async with Atoll(port=0, **settings) as node:
        fields = dict(FIELDS)
        if change is not None:
            change(fields)
        await node.deploy("room", source, **fields)
        yield Stage(node)
