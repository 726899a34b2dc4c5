"""WebSockets that workers open: to the `websockets` package, and to each other."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from tests.running import Atoll
from tests.socket_servers import PRELUDE, Peer

Run = Callable[..., Any]


# --- with a well-behaved server ---


def test_new_websocket_talks_to_a_server(run: Run) -> None:
    body = """const ws = await opened(new WebSocket(UP + "/echo?x#".slice(0, -1)));
      const heard = [];
      for (const message of ["text", "", "ü".repeat(70_000)]) { ws.send(message); heard.push((await next(ws)) === message); }
      ws.binaryType = "arraybuffer";
      for (const message of [new Uint8Array([1, 2]), new Uint8Array([3, 4]).buffer, new Blob(["56"]), new DataView(new ArrayBuffer(300_000))]) {
        ws.send(message);
        const data = await next(ws);
        heard.push(data instanceof ArrayBuffer && data.byteLength);
      }
      ws.binaryType = "blob";
      ws.send(new Uint8Array(3));
      const blob = await next(ws);
      const end = ended(ws);
      ws.close(3000, "bye");
      return [heard, blob instanceof Blob && blob.size, ws.readyState, await end, ws.readyState, ws.extensions, ws.url === UP + "/echo?x"];"""
    heard, blob, closing, end, closed, extensions, url = run(body)
    assert heard == [True, True, True, 2, 2, 2, 300_000]
    assert (blob, closing, end, closed, url) == (3, 2, [3000, "bye", True], 3, True)
    assert extensions.startswith("permessage-deflate")


def test_fetch_with_upgrade_returns_a_socket(run: Run) -> None:
    body = """const heard = [];
      for (const url of [UP, UP.replace("ws", "http")]) {
        const response = await fetch(url, { headers: { Upgrade: "websocket", "Sec-WebSocket-Protocol": "none, chat" } });
        const ws = response.webSocket;
        heard.push(response.status, response.body, ws.protocol, ws.readyState);
        ws.accept();
        ws.send("hello");
        heard.push(await next(ws));
        const end = ended(ws);
        ws.close();
        heard.push(await end);
      }
      return heard;"""
    assert run(body) == [101, None, "chat", 1, "hello", [1005, "", True]] * 2


def test_the_server_closes_first(run: Run) -> None:
    assert run("return events(new WebSocket(UP + '/close'));") == ["open", "close 4001 true"]


def test_fragments_are_joined(run: Run) -> None:
    body = """const ws = await upgrade(UP + "/fragments"); ws.binaryType = "arraybuffer"; ws.accept();
      return [await next(ws), [...new Uint8Array(await next(ws))]];"""
    assert run(body) == ["one two three", [1, 2]]


def test_a_lost_server_is_an_error_and_a_close(run: Run) -> None:
    body = "const ws = new WebSocket(UP + '/abort'); ws.onmessage = () => ws.send('go'); return events(ws);"
    assert run(body) == ["open", "message before", "error", "close 1006 false"]


def test_the_handshake_has_the_required_headers_and_none_of_the_worker(run: Run) -> None:
    body = """const headers = { Upgrade: "websocket", "Sec-WebSocket-Key": "mine", "Sec-WebSocket-Version": "8", Connection: "close", "X-A": "b" };
      const ws = (await fetch(UP + "/headers", { headers })).webSocket;
      ws.accept();
      return next(ws);"""
    lines = dict(line.split(": ", 1) for line in run(body).split("\n"))
    assert lines["sec-websocket-version"] == "13" and lines["connection"] == "Upgrade" and lines["x-a"] == "b"
    assert re.fullmatch(r"[A-Za-z0-9+/]{22}==", lines["sec-websocket-key"])
    assert lines["cf-ew-via"] == "1" and lines["cf-worker"].endswith(".localhost")


def test_wss_checks_the_certificate(run: Run, folder: Path, node: Atoll) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "up.pem", folder / "up.key")
    secure = Peer(tls=context)
    try:
        body = f"""const ws = await opened(new WebSocket("{secure.url}")); ws.send("secret"); return next(ws);"""
        assert run(body) == "secret"
        elsewhere = secure.url.replace("127.0.0.1", "localhost")  # the certificate does not include this name
        rules = {"egress": {"allow": ["localhost", "127.0.0.1"]}}
        assert "error" in run(f"return opened(new WebSocket('{elsewhere}'));", **rules)
    finally:
        secure.close()


def test_large_messages_pass_in_both_directions(run: Run) -> None:
    body = """const ws = await opened(new WebSocket(UP)); ws.binaryType = "arraybuffer";
      ws.send(new Uint8Array(9_000_000).fill(7));
      const before = ws.bufferedAmount;
      const data = new Uint8Array(await next(ws));
      return [before > 0, ws.bufferedAmount, data.length, data[8_999_999]];"""
    assert run(body, limits={"cpu_ms": 5000}) == [True, 0, 9_000_000, 7]


def test_many_small_messages_keep_their_order(run: Run) -> None:
    body = """const ws = await opened(new WebSocket(UP));
      for (let i = 0; i < 3000; i++) ws.send(`${i}`);
      let expected = 0;
      await new Promise((resolve) => ws.addEventListener("message", ({ data }) => {
        if (data !== `${expected}`) resolve();
        if (++expected === 3000) resolve();
      }));
      return expected;"""
    assert run(body, limits={"cpu_ms": 5000}) == 3000


def test_a_worker_that_does_not_listen_stops_the_server(run: Run, node: Atoll) -> None:
    """200 MB are sent to a socket that is never accepted: neither side of Atoll may buffer them."""
    body = "const ws = await upgrade(UP + '/flood'); await scheduler.wait(1500); return ws.readyState;"
    before = node.memory_mb()
    assert run(body) == 1
    assert node.memory_mb() - before < 40


# --- mistakes of a worker ---


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("new WebSocket()", "TypeError"),
        ("new WebSocket('nowhere')", "SyntaxError"),
        ("new WebSocket('mailto:x@y.z')", "SyntaxError"),
        ("new WebSocket(UP + '/#x')", "SyntaxError"),
        ("new WebSocket('ws://foo bar/')", "SyntaxError"),
        ("new WebSocket(UP, 'a b')", "SyntaxError"),
        ("new WebSocket(UP, '')", "SyntaxError"),
        ("new WebSocket(UP, ['a', 'A'])", "SyntaxError"),
        ("new WebSocket(UP).send('x')", "InvalidStateError"),
        ("new WebSocket(UP).accept()", "TypeError"),
        ("new WebSocket(UP).close(1001)", "InvalidAccessError"),
        ("new WebSocket(UP).close(65536 + 1000)", "InvalidAccessError"),
        ("new WebSocket(UP).close(NaN)", "InvalidAccessError"),
        ("new WebSocket(UP).close(1000, 'ü'.repeat(62))", "SyntaxError"),
        ("WebSocket.prototype.url", "TypeError"),
        ("WebSocket(UP)", "TypeError"),
        ("(await upgrade(UP)).send('x')", "TypeError: You must call one of accept()"),
        ("await fetch(UP)", "TypeError: Fetch API cannot load: ws:"),
    ],
)
def test_errors_have_the_classes_of_the_standard(run: Run, code: str, expected: str) -> None:
    assert run(f"{code}; return 'nothing was thrown';").get("error", "").startswith(expected)


def test_send_after_close_is_dropped_and_counted(run: Run) -> None:
    body = """const ws = await opened(new WebSocket(UP)); const end = ended(ws); ws.close(); ws.send("12345");
      return [ws.bufferedAmount, await end];"""
    assert run(body) == [5, [1005, "", True]]


def test_close_while_connecting_fails_the_connection(run: Run) -> None:
    body = "const ws = new WebSocket(UP); const seen = events(ws); ws.close(); return [ws.readyState, await seen];"
    assert run(body) == [2, ["error", "close 1006 false"]]


def test_top_level_code_cannot_open_a_socket(node: Atoll, peer: Peer) -> None:
    source = f"""let said; try {{ new WebSocket("{peer.url}"); }} catch (error) {{ said = error.message; }}
      export default {{ fetch() {{ return new Response(said); }} }};"""
    node.deploy("ws-top", source)
    assert "global scope" in node.get("ws-top").text


def test_a_socket_cannot_be_used_by_another_request(node: Atoll, peer: Peer) -> None:
    source = f"""{PRELUDE} let kept;
      export default {{ async fetch(request, env, ctx) {{
        if (kept === undefined) {{
          kept = await opened(new WebSocket("{peer.url}"));
          ctx.waitUntil(ended(kept));
          return new Response("opened");
        }}
        try {{ kept.send("x"); }} catch (error) {{ return new Response(error.message); }}
      }} }};"""
    node.deploy("ws-kept", source)
    assert node.get("ws-kept").text == "opened"
    assert node.get("ws-kept").text.startswith("Cannot perform I/O on behalf of a different request")


# --- workers of the same node ---

ECHO = """export default { fetch(request) {
  if (request.headers.get("upgrade") !== "websocket") return new Response("no socket", { status: 426 });
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.addEventListener("message", ({ data }) => data === "bye" ? server.close(4002, "done") : server.send(data));
  server.addEventListener("close", ({ code, reason }) => console.log("closed", code, reason));
  const protocol = request.headers.get("sec-websocket-protocol");
  return new Response(null, { status: 101, webSocket: client, headers: protocol ? { "sec-websocket-protocol": protocol } : {} });
} };"""

CONVERSE = """
  ws.send("hello"); const text = await next(ws);
  ws.binaryType = "arraybuffer"; ws.send(new Uint8Array(500_000)); const data = await next(ws);
  const end = ended(ws); ws.send("bye");
  return [text, data.byteLength, await end];
"""


@pytest.mark.parametrize(
    "open_one",
    [
        "const ws = (await env.ECHO.fetch('http://x/', { headers: { Upgrade: 'websocket' } })).webSocket; ws.accept();",
        "const ws = await upgrade('http://ws-inner-echo.localhost/'); ws.accept();",
        "const ws = await opened(new WebSocket('ws://ws-inner-echo.localhost/'));",
    ],
)
def test_a_worker_of_the_node_is_reached_without_a_socket(node: Atoll, run: Run, open_one: str) -> None:
    node.deploy("ws-inner-echo", ECHO)
    bindings = [{"type": "service", "name": "ECHO", "service": "ws-inner-echo"}]
    before = node.control("GET", "/metrics").text
    answer = run(f"{open_one} {CONVERSE}", bindings=bindings, limits={"cpu_ms": 5000})
    assert answer == ["hello", 500_000, [4002, "done", True]]
    connects = re.compile(r"^atoll_egress_connects\w* (\S+)$", re.MULTILINE)
    assert connects.findall(before) == connects.findall(node.control("GET", "/metrics").text)


def test_a_worker_receives_1001_when_its_caller_ends(node: Atoll, run: Run) -> None:
    node.deploy("ws-inner-left", ECHO)
    run("const ws = await opened(new WebSocket('ws://ws-inner-left.localhost/')); ws.send('x'); await next(ws);")
    node.wait_until(lambda: "closed 1001" in json.dumps(node.logs("ws-inner-left")))


def test_a_subprotocol_that_was_not_offered_fails_an_inner_socket_too(node: Atoll, run: Run) -> None:
    node.deploy("ws-inner-protocol", ECHO.replace('request.headers.get("sec-websocket-protocol")', '"mine"'))
    assert run("return events(new WebSocket('ws://ws-inner-protocol.localhost/'));") == ["error", "close 1006 false"]


async def test_a_worker_passes_a_clients_socket_on(node: Atoll, peer: Peer) -> None:
    """`return fetch(request)` for a WebSocket request: the client talks to the server behind the worker."""
    node.deploy(
        "ws-proxy",
        f"export default {{ fetch(request) {{ return fetch('{peer.url.replace('ws', 'http')}', request); }} }};",
    )
    uri = f"ws://{node.host('ws-proxy')}/"
    async with connect(uri, host="127.0.0.1", port=node.port, proxy=None, max_size=None) as ws:
        for message in ("text", bytes(300_000)):
            await ws.send(message)
            assert await asyncio.wait_for(ws.recv(), 10) == message
        count = len(peer.closes)
        await ws.close(3005, "enough")
    closed = await asyncio.to_thread(peer.wait_close, count + 1)
    assert closed == (3005, "enough")
