"""Connections that an object opens live as long as the object, not only as long as the call that opened them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

import pytest
from websockets.asyncio.server import ServerConnection, serve

from atoll.engine.objects import runtime as runtime_module
from tests.eventually import eventually
from tests.objects.hibernating import SOURCE, Stage, opened, until

IMPORTED = 'import { connect } from "cloudflare:sockets";\n' + SOURCE.replace(
    "  number = ++made;",
    """  number = ++made;
  async alarm() {
    await new Function("object", "ctx", "connect", `return (async () => { ${await this.ctx.storage.get("code")} })()`)(this, this.ctx, connect);
  }
  connect = connect;""",
)


class Server:
    """Echoes, over TCP and WebSockets. It sees what its clients do."""

    def __init__(self) -> None:
        self.open = 0
        self.clients: list[ServerConnection] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.port = self.tcp = 0

    async def on_socket(self, client: ServerConnection) -> None:
        self.open += 1
        self.clients.append(client)
        try:
            async for message in client:
                await client.send(f"echo {message!s}")
        finally:
            self.open -= 1

    async def on_stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.writers.append(writer)
        try:
            while data := await reader.read(1000):
                writer.write(b"echo " + data)
        except OSError:
            pass
        finally:
            self.open -= 1
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    tcp = await asyncio.start_server(server.on_stream, "127.0.0.1", 0)
    async with serve(server.on_socket, "127.0.0.1", 0, close_timeout=1) as sockets:
        server.port, server.tcp = next(iter(sockets.sockets)).getsockname()[1], tcp.sockets[0].getsockname()[1]
        yield server
    tcp.close()


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(runtime_module, "IDLE_SECONDS", 0.2)
    async with opened(IMPORTED, egress_allow=["127.0.0.1"]) as stage:
        yield stage


def by_fetch(server: Server) -> str:
    return f"""
      const response = await fetch("http://127.0.0.1:{server.port}/", {{ headers: {{ upgrade: "websocket" }} }});
      const ws = object.ws = response.webSocket;
      ws.accept();
    """


def by_constructor(server: Server) -> str:
    return f"""
      const ws = object.ws = new WebSocket("ws://127.0.0.1:{server.port}/");
      await new Promise((resolve) => ws.addEventListener("open", resolve));
    """


HEAR = 'object.heard = []; ws.addEventListener("message", ({ data }) => object.heard.push(data));'


@pytest.mark.parametrize("way", [by_fetch, by_constructor])
async def test_a_websocket_outlives_its_call_and_keeps_the_object(stage: Stage, server: Server, way: object) -> None:
    assert callable(way)
    await stage.run(way(server) + HEAR)
    await asyncio.sleep(0.6)  # three times as long as an idle object stays
    await stage.run('object.ws.send("one");')  # from another call
    await server.clients[0].send("by itself")

    async def heard() -> bool:
        return sorted(await stage.run("return object.heard;")) == ["by itself", "echo one"]

    await eventually(heard, "both messages")
    assert await stage.run("return object.number;") == 1 and server.open == 1
    await stage.run("object.ws.close(1000);")
    await until(lambda: not server.open, "the socket is closed")
    await stage.evicted()
    assert await stage.run("return object.number;") == 2


async def test_its_call_is_answered_and_has_no_deadline_while_the_connection_is_open(
    stage: Stage, server: Server
) -> None:
    await stage.run(by_fetch(server) + HEAR)
    [live] = stage.runtime.live.values()
    assert live.look() == 1
    [call] = [call for call in live.calls if call.deadline == math.inf]
    assert call.is_socket
    await stage.run("object.ws.close();")
    await until(lambda: not live.look(), "the call is over")


async def test_a_listener_uses_storage_and_bindings_after_the_call(stage: Stage, server: Server) -> None:
    code = f"""
      ws.addEventListener("message", async ({{ data }}) => {{
        await ctx.storage.put("heard", data);
        const bookmark = await ctx.storage.getCurrentBookmark(); // an op
        const again = await fetch("http://127.0.0.1:{server.port}/", {{ headers: {{ upgrade: "websocket" }} }});
        again.webSocket.accept();
        object.done = [bookmark.length, again.status];
      }});
    """
    await stage.run(by_fetch(server) + code)
    await server.clients[0].send("hello")

    async def is_done() -> object:
        return await stage.run("return object.done ?? null;")

    await eventually(is_done, "the listener is done")
    assert await stage.run('return [await ctx.storage.get("heard"), ...object.done];') == ["hello", 59, 101]


async def test_a_tcp_socket_is_read_and_written_by_later_calls(stage: Stage, server: Server) -> None:
    opens = f'object.socket = object.connect("127.0.0.1:{server.tcp}"); await object.socket.opened;'
    await stage.run(opens)
    await asyncio.sleep(0.6)
    code = """
      const writer = object.socket.writable.getWriter();
      await writer.write(new TextEncoder().encode("hi"));
      writer.releaseLock();
      const reader = object.socket.readable.getReader();
      const { value } = await reader.read();
      reader.releaseLock();
      return [object.number, new TextDecoder().decode(value)];
    """
    assert await stage.run(code) == [1, "echo hi"]
    assert await stage.run(code) == [1, "echo hi"]
    await stage.run("await object.socket.close();")
    await stage.evicted()
    await until(lambda: not server.open, "the socket is closed")


async def test_a_loop_that_nobody_waits_for_goes_on_reading(stage: Stage, server: Server) -> None:
    code = f"""
      object.read = "";
      const socket = object.connect("127.0.0.1:{server.tcp}");
      await socket.opened;
      (async () => {{
        for await (const chunk of socket.readable) {{
          object.read += new TextDecoder().decode(chunk);
          await ctx.storage.put("read", object.read);
        }}
        object.isOver = true;
      }})();
    """
    await stage.run(code)
    for part in (b"a", b"b"):
        server.writers[0].write(part)
        await asyncio.sleep(0.5)
    assert await stage.run('return [object.number, await ctx.storage.get("read")];') == [1, "ab"]
    server.writers[0].close()
    await stage.evicted()


async def test_a_reset_ends_the_connections_of_an_object(stage: Stage, server: Server) -> None:
    await stage.run(
        by_fetch(server) + f'object.socket = object.connect("127.0.0.1:{server.tcp}"); await object.socket.opened;'
    )
    assert server.open == 2
    again = 'env.ROOM.getByName("one").run("return object.number;")'  # a stub whose object was reset stays broken
    code = f'await room.run("ctx.abort();").catch(() => {{}}); return await {again};'
    assert await stage.run(code, "/worker") == 2
    await until(lambda: not server.open, "both are closed")
    await stage.evicted()


async def test_a_connection_that_fails_or_that_the_server_ends_lets_the_object_go(stage: Stage, server: Server) -> None:
    await stage.run(by_fetch(server))
    await server.clients[0].close()
    await stage.run('object.socket = object.connect("127.0.0.1:1"); await object.socket.opened.catch(() => {});')
    await stage.evicted()
    await stage.run(
        f'const ws = new WebSocket("ws://127.0.0.1:{server.tcp}/"); await new Promise((resolve) => ws.addEventListener("error", resolve));'
    )
    for writer in server.writers:
        writer.close()
    await stage.evicted()


async def test_alarms_and_timers_open_connections_too(stage: Stage, server: Server) -> None:
    code = by_fetch(server) + 'object.alarmed = true; ctx.storage.delete("code");'
    await stage.run(f"await ctx.storage.put('code', `{code}`); await ctx.storage.setAlarm(1);")
    await until(lambda: server.open == 1, "the alarm has connected")
    await stage.run(f"setTimeout(async () => {{ {by_fetch(server).replace('object.ws', 'object.other')} }}, 10);")
    await until(lambda: server.open == 2, "the timer has connected")
    await asyncio.sleep(0.6)
    assert await stage.run("return [object.number, object.alarmed, await ctx.storage.getAlarm()];") == [1, True, None]
    await stage.run("object.ws.close(); object.other.close();")
    await stage.evicted()


async def test_outside_of_objects_a_connection_still_belongs_to_its_request(stage: Stage, server: Server) -> None:
    await stage.run(by_fetch(server).replace("object.ws", "globalThis.ws"), "/worker")
    code = "try { globalThis.ws.send('x'); return 'sent'; } catch (error) { return error.message; }"
    assert "different request" in await stage.run(code, "/worker")
    await until(lambda: not server.open, "it ended with its request")


async def test_an_object_does_not_use_connections_of_another_one(stage: Stage, server: Server) -> None:
    await stage.run(by_fetch(server).replace("object.ws", "globalThis.ws"))
    code = """
      return await env.ROOM.getByName("two").run("try { globalThis.ws.send('x'); return 'sent'; } catch (error) { return error.message; }");
    """
    assert "different request" in await stage.run(code, "/worker")


async def test_many_messages_have_a_budget_each(stage: Stage, server: Server) -> None:
    """A socket that lives for days must not run out of CPU time or subrequests of the request that opened it."""
    code = """
      object.count = 0;
      ws.addEventListener("message", async () => {
        for (let i = 0; i < 1e6; i++) object.sum = Math.sqrt(i);
        await ctx.storage.getCurrentBookmark();
        object.count++;
      });
    """
    await stage.run(by_fetch(server) + code)
    [live] = stage.runtime.live.values()
    for _ in range(30):
        await server.clients[0].send("x")

    async def has_all() -> bool:
        return bool(await stage.run("return object.count;") == 30)

    await eventually(has_all, "all messages")
    [call] = [call for call in live.calls if call.is_socket]
    assert call.scope is not None and call.scope.messages > 0
