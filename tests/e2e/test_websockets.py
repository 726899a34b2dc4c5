"""WebSockets of workers, with an independent client library. For clients that break rules see test_websocket_rules.py."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.raw_websocket import handshake, read, request_for
from tests.running import Atoll

ECHO = """export default { async fetch(request) {
  if (request.headers.get("upgrade") !== "websocket") return new Response("no socket wanted");
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.addEventListener("message", ({ data }) => {
    if (data === "bye") server.close(4000, "done");
    else if (data === "spin") for (;;);
    else if (data === "throw") throw new Error("thrown in a listener");
    else server.send(data);
  });
  server.addEventListener("close", ({ code, reason, wasClean }) => console.log("closed", code, reason, wasClean));
  return new Response(null, { status: 101, webSocket: client });
} };"""


def dial(atoll: Atoll, name: str, **options: Any) -> connect:
    uri = f"ws://{atoll.host(name)}/"
    return connect(uri, host="127.0.0.1", port=atoll.port, proxy=None, max_size=None, **options)


async def closed(ws: ClientConnection) -> tuple[int, str]:
    """The close code and reason of the server."""
    try:
        while True:
            await asyncio.wait_for(ws.recv(), 10)
    except ConnectionClosed:
        assert ws.close_code is not None
        return ws.close_code, ws.close_reason or ""


def said(atoll: Atoll, name: str) -> list[str]:
    return [line["message"] for record in atoll.logs(name) for line in record["logs"]]


@pytest.fixture
def echo(atoll: Atoll) -> Atoll:
    atoll.deploy("ws-echo", ECHO)
    return atoll


@pytest.mark.parametrize("compression", ["deflate", None])
async def test_messages_flow_in_both_directions(echo: Atoll, compression: str | None) -> None:
    async with dial(echo, "ws-echo", compression=compression) as ws:
        for message in ("", "text", "ü" * 70_000, b"", b"\x00\xff" * 100_000):
            await ws.send(message)
            assert await ws.recv() == message


async def test_a_fragmented_message_arrives_complete(echo: Atoll) -> None:
    async with dial(echo, "ws-echo") as ws:
        await ws.send(["one ", "two ", "three"])
        assert await ws.recv() == "one two three"
        await (await ws.ping())


async def test_the_worker_closes_with_its_code_and_reason(echo: Atoll) -> None:
    async with dial(echo, "ws-echo") as ws:
        await ws.send("bye")
        assert await closed(ws) == (4000, "done")


async def test_the_worker_receives_the_close_code_of_the_client(atoll: Atoll) -> None:
    atoll.deploy("ws-closing", ECHO)
    async with dial(atoll, "ws-closing") as ws:
        await ws.close(3001, "enough")
    atoll.wait_until(lambda: "closed 3001 enough true" in said(atoll, "ws-closing"))
    record = atoll.logs("ws-closing")[0]
    assert (record["status"], record["outcome"]) == (101, "ok")


async def test_the_worker_is_notified_when_the_client_disappears(atoll: Atoll) -> None:
    atoll.deploy("ws-gone", ECHO)
    ws = await dial(atoll, "ws-gone")
    ws.transport.abort()
    await ws.wait_closed()
    atoll.wait_until(lambda: any(line.startswith("closed 1006") for line in said(atoll, "ws-gone")))


async def test_a_listener_that_throws_does_not_end_the_socket(echo: Atoll) -> None:
    async with dial(echo, "ws-echo") as ws:
        await ws.send("throw")
        await ws.send("still here")
        assert await ws.recv() == "still here"


async def test_an_endless_listener_costs_its_isolate_and_the_client_gets_a_reason(atoll: Atoll) -> None:
    atoll.deploy("ws-spin", ECHO)
    async with dial(atoll, "ws-spin") as ws:
        await ws.send("spin")
        assert (await closed(ws))[0] == 1011
    async with dial(atoll, "ws-spin") as ws:
        await ws.send("again")
        assert await ws.recv() == "again"


async def test_cpu_time_counts_per_message_and_not_per_socket(atoll: Atoll) -> None:
    script = ECHO.replace("else server.send(data);", "else { for (let i = 0; i < 2e6; i++); server.send(data); }")
    atoll.deploy("ws-long", script, limits={"cpu_ms": 20})
    async with dial(atoll, "ws-long") as ws:
        for i in range(40):
            await ws.send(str(i))
            assert await ws.recv() == str(i)


async def test_a_broadcast_reaches_every_socket_of_the_isolate(atoll: Atoll) -> None:
    script = """const all = new Set();
      export default { fetch() {
        const [client, server] = Object.values(new WebSocketPair());
        server.accept();
        all.add(server);
        server.onmessage = ({ data }) => all.forEach((each) => each.send(data));
        server.onclose = () => all.delete(server);
        return new Response(null, { status: 101, webSocket: client });
      } }"""
    atoll.deploy("ws-chat", script)
    clients = [await dial(atoll, "ws-chat") for _ in range(20)]
    await clients[0].send("to all")
    assert [await ws.recv() for ws in clients] == ["to all"] * 20
    for ws in clients:
        await ws.close()


async def test_the_worker_chooses_the_subprotocol(atoll: Atoll) -> None:
    script = ECHO.replace("webSocket: client }", 'webSocket: client, headers: { "Sec-WebSocket-Protocol": "chat" } }')
    atoll.deploy("ws-protocol", script)
    async with dial(atoll, "ws-protocol", subprotocols=["chat", "other"]) as ws:
        assert ws.subprotocol == "chat"


async def test_messages_sent_before_the_response_arrive_after_it(atoll: Atoll) -> None:
    atoll.deploy("ws-early", ECHO.replace("return new Response(null", 'server.send("early"); return new Response(null'))
    async with dial(atoll, "ws-early") as ws:
        assert await ws.recv() == "early"


async def test_a_socket_survives_a_new_version_until_it_is_closed(atoll: Atoll) -> None:
    atoll.deploy("ws-versions", ECHO)
    async with dial(atoll, "ws-versions") as old:
        atoll.deploy("ws-versions", ECHO.replace("else server.send(data)", 'else server.send("new " + data)'))
        async with dial(atoll, "ws-versions") as new:
            await old.send("a")
            await new.send("b")
            assert (await old.recv(), await new.recv()) == ("a", "new b")


async def test_sockets_outlive_the_idle_timeout_of_isolates(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(idle_seconds=0.2)
    node.deploy("ws", ECHO)
    async with dial(node, "ws") as ws:
        await asyncio.sleep(1.5)
        await ws.send("still")
        assert await ws.recv() == "still"


async def test_a_silent_client_is_pinged_and_a_dead_one_dropped(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(socket_timeout=3)
    node.deploy("ws", ECHO)
    async with dial(node, "ws") as ws:  # the client answers pings by itself
        with handshake(node, "ws") as raw:
            assert await asyncio.to_thread(read, raw, 2) == b"\x89\x00", "a ping"
            assert await asyncio.to_thread(read, raw, 100) == b"", "and then the end"
        await ws.send("alive")
        assert await ws.recv() == "alive"


async def test_a_stopping_node_closes_sockets_properly(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll()
    node.deploy("ws", ECHO)
    async with dial(node, "ws") as ws:
        assert node.process is not None
        node.process.send_signal(signal.SIGTERM)
        assert (await closed(ws))[0] == 1001


async def test_the_client_is_notified_when_an_engine_dies(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    node.deploy("ws", ECHO)
    async with dial(node, "ws") as ws:
        os.kill(node.engines()[0], signal.SIGKILL)
        assert (await closed(ws))[0] == 1011


async def test_a_slow_reader_delays_only_its_own_socket(atoll: Atoll) -> None:
    script = """export default { fetch() {
      const [client, server] = Object.values(new WebSocketPair());
      server.accept();
      server.onmessage = () => { for (let i = 0; i < 64; i++) server.send(new Uint8Array(262144)); };
      return new Response(null, { status: 101, webSocket: client });
    } }"""
    atoll.deploy("ws-slow", script, limits={"cpu_ms": 5000})
    before = atoll.memory_mb()
    slow, quick = await dial(atoll, "ws-slow", max_queue=1), await dial(atoll, "ws-slow")
    await slow.send("go")
    await quick.send("go")
    for _ in range(64):
        assert len(await quick.recv()) == 262144
    assert atoll.memory_mb() - before < 64
    for _ in range(64):
        assert len(await slow.recv()) == 262144
    await slow.close()
    await quick.close()


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("new Response(null, { status: 101 })", "in the range 200 to 599"),
        ("new Response(null, { webSocket: new WebSocketPair()[0] })", "101"),
        ("new Response(null, { status: 200, webSocket: new WebSocketPair()[0] })", "101"),
        ("new Response(null, { status: 101, webSocket: {} })", "is not of type 'WebSocket'"),
        ("(() => { const p = new WebSocketPair(); p[0].accept(); return new Response(null, { status: 101, webSocket: p[0] }); })()",
         "after calling accept()"),
        ("new WebSocketPair()[1].send('x')", "accept()"),
        ("new WebSocket('ftp://example.com/')", "must be ws or wss"),
        ("(() => { const p = new WebSocketPair(); p[1].accept(); p[1].close(1005); })()", "1005"),
        ("(() => { const p = new WebSocketPair(); p[1].accept(); p[1].close(1000, 'x'.repeat(124)); })()", "123"),
        ("(() => { const p = new WebSocketPair(); p[1].accept(); p[1].close(1000); p[1].send('x'); })()", "after close"),
    ],
)  # fmt: skip
async def test_mistakes_of_a_worker_are_reported(atoll: Atoll, code: str, text: str) -> None:
    script = f"""export default {{ fetch() {{
      try {{ return {code}; }} catch (error) {{ return new Response(error.message); }}
    }} }}"""
    atoll.deploy("ws-wrong", script)
    with socket.create_connection(("127.0.0.1", atoll.port), 10) as raw:
        raw.sendall(request_for(atoll, "ws-wrong"))
        assert text in raw.recv(4096).decode()


def test_a_socket_for_a_plain_request_is_an_error_page(atoll: Atoll) -> None:
    atoll.deploy("ws-plain", ECHO.replace('request.headers.get("upgrade") !== "websocket"', "false"))
    answer = atoll.get("ws-plain")
    assert answer.status == 500 and "upgrade" in answer.text


def test_a_pair_within_one_worker_is_linked(atoll: Atoll) -> None:
    script = """export default { async fetch() {
      const [a, b] = Object.values(new WebSocketPair());
      a.accept(); b.accept();
      const heard = [];
      b.onmessage = ({ data }) => { heard.push(data); b.send(data + "!"); };
      a.onmessage = ({ data }) => { heard.push(data); a.close(4001, "end"); };
      const end = new Promise((resolve) => { b.onclose = ({ code, reason }) => resolve([code, reason]); });
      a.send("one");
      return Response.json([heard, await end, a.readyState, WebSocket.OPEN, b instanceof WebSocket]);
    } }"""
    atoll.deploy("ws-pair", script)
    assert json.loads(atoll.get("ws-pair").text) == [["one", "one!"], [4001, "end"], 3, 1, True]


ASKS = """export default { async fetch(request, env) {
  if (env.OTHER !== undefined) return env.OTHER.fetch(request);
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.addEventListener("message", async ({ data }) => {
    const answers = await Promise.all(Array.from({ length: Number(data) }, () => fetch("http://127.0.0.1:9/").catch(String)));
    const refused = answers.find((text) => text.includes("Too many subrequests"));
    server.send(refused ?? `${data} asked`);
  });
  return new Response(null, { status: 101, webSocket: client });
} };"""


async def test_each_message_has_its_own_subrequest_budget(atoll: Atoll) -> None:
    atoll.deploy("ws-asks", ASKS, limits={"subrequests": 2})
    binding = {"type": "service", "name": "OTHER", "service": "ws-asks"}
    atoll.deploy("ws-asks-other", ASKS, limits={"subrequests": 2}, bindings=[binding])
    for name in ("ws-asks", "ws-asks-other"):
        async with dial(atoll, name) as ws:
            for _ in range(20):  # possibly in one packet
                await ws.send("2")
            assert [await ws.recv() for _ in range(20)] == ["2 asked"] * 20
            await ws.send("9")
            assert "one request, or one message of a WebSocket, may make 2 fetches" in str(await ws.recv())
