"""node:net and node:tls, with servers on 127.0.0.1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.running import Atoll
from tests.tcp_peer import TcpPeer

Run = Callable[..., Any]

OUTSIDE = """
import net from "node:net";
import tls from "node:tls";
import { once } from "node:events";
const [HOST, PORT] = PEER.split(":");
const TLS_PORT = TLS.split(":")[1];
const events = (socket, names = ["lookup", "connect", "ready", "secureConnect", "data", "end", "timeout", "error", "close"]) => new Promise((resolve) => {
  const seen = [];
  for (const name of names) {
    socket.on(name, (value) => {
      seen.push(value instanceof Error ? `${name} ${value.code} ${value.message}` : Buffer.isBuffer(value) || typeof value === "string" ? `${name} ${value}` : name === "close" ? `close ${value}` : name);
      if (name === "close") resolve(seen);
    });
  }
});
const thrown = (call) => { try { call(); return "nothing"; } catch (error) { return `${error.name} ${error.code}: ${error.message}`; } };
"""


@pytest.fixture
def node_run(run: Run) -> Run:
    return lambda body, **fields: run(body, outside=OUTSIDE, **fields)


def test_a_socket_has_the_events_of_node(node_run: Run, peer: TcpPeer) -> None:
    body = """const socket = net.connect(PORT, HOST);
      const seen = events(socket);
      const facts = [socket.connecting, socket.pending, socket.readyState];
      socket.write("echo\\n");
      socket.write("hel");
      socket.once("connect", () => facts.push(socket.connecting, socket.readyState, socket.remoteAddress, socket.remotePort, socket.remoteFamily));
      await once(socket, "data");
      socket.end("lo");
      const list = await seen;
      return [list[0], list[1], list.filter((each) => each.startsWith("data")).map((each) => each.slice(5)).join(""), list.slice(-2), facts,
        socket.bytesRead, socket.bytesWritten, socket.destroyed, socket.readyState];"""
    assert node_run(body) == [
        "connect", "ready", "hello", ["end", "close false"],
        [True, True, "opening", False, "open", "127.0.0.1", peer.port, "IPv4"], 5, 10, True, "closed",
    ]  # fmt: skip


def test_what_is_written_before_the_connection_is_sent_after_it(node_run: Run) -> None:
    body = """const socket = net.createConnection({ port: Number(PORT), host: HOST }, () => socket.end("late"));
      socket.setEncoding("utf8");
      socket.write("hear\\n"); socket.cork(); socket.write("a"); socket.write(Buffer.from("b")); socket.uncork();
      return [await once(socket, "data"), await once(socket, "close")];"""
    assert node_run(body) == [["6 bytes"], [False]]


def test_a_refused_connection_is_an_error_with_a_code(node_run: Run) -> None:
    body = "return events(net.connect(1, HOST));"
    message = "proxy request failed, cannot connect to the specified address"
    assert node_run(body) == [f"error ECONNREFUSED {message}", "close true"]


def test_a_lost_connection_is_an_error(node_run: Run) -> None:
    body = (
        """const socket = net.connect(PORT, HOST); socket.write("reset\\n"); return (await events(socket)).slice(2);"""
    )
    assert node_run(body) == ["error ECONNRESET Network connection lost.", "close true"]


def test_back_pressure_reaches_the_peer(node_run: Run, peer: TcpPeer) -> None:
    body = """const socket = net.connect(PORT, HOST);
      socket.write("flood\\n");
      await once(socket, "data");
      socket.pause();
      await scheduler.wait(200);
      const before = socket.bytesRead;
      await scheduler.wait(100);
      const held = socket.bytesRead === before;
      socket.resume();
      await once(socket, "data");
      socket.destroy();
      return [held, socket.bytesRead < 64 << 20];"""
    assert node_run(body) == [True, True]


def test_write_waits_for_a_slow_peer(node_run: Run) -> None:
    body = """const socket = net.connect(PORT, HOST);
      socket.write("deaf\\n");
      let room = true, written = 0;
      while (room) { room = socket.write(Buffer.alloc(65536)); written++; }
      socket.destroy();
      return written;"""
    assert node_run(body) < 100


def test_timeouts(node_run: Run) -> None:
    body = """const socket = net.connect(PORT, HOST);
      socket.write("deaf\\n");
      socket.setTimeout(50);
      await once(socket, "timeout");
      const idle = new net.Socket();
      idle.setTimeout(10);
      await once(idle, "timeout");
      socket.destroy();
      return [socket.timeout, thrown(() => idle.setTimeout("1")), thrown(() => idle.setTimeout(-1)), thrown(() => idle.setTimeout(1, 2)), idle.setTimeout(1e6) === idle];"""
    assert node_run(body) == [
        50,
        "TypeError ERR_INVALID_ARG_TYPE: The \"msecs\" argument must be of type number. Received type string ('1')",
        'RangeError ERR_OUT_OF_RANGE: The value of "msecs" is out of range. It must be a non-negative finite number. Received -1',
        'TypeError ERR_INVALID_ARG_TYPE: The "callback" argument must be of type function. Received type number (2)',
        True,
    ]


def test_an_abort_signal_ends_a_socket(node_run: Run) -> None:
    body = """const seen = [];
      for (const make of [
        (signal) => net.connect({ port: PORT, host: HOST, signal }),
        (signal) => new net.Socket({ signal }),
        (signal) => tls.connect({ port: TLS_PORT, host: HOST, signal }),
        (signal) => new tls.TLSSocket(undefined, { signal }),
      ]) {
        for (const early of [true, false]) {
          const controller = new AbortController();
          if (early) controller.abort();
          const socket = make(controller.signal);
          if (!early) controller.abort();
          seen.push(await once(socket, "close").then(() => "closed", (error) => error.name));
        }
      }
      return [...new Set(seen)];"""
    assert node_run(body) == ["AbortError"]


def test_a_socket_connects_again(node_run: Run) -> None:
    body = """const socket = net.connect(PORT, HOST);
      socket.setEncoding("utf8");
      const seen = [];
      socket.on("data", (data) => seen.push(data));
      for (let i = 0; i < 5; i++) {
        socket.write("bye\\n");
        seen.push(...await once(socket, "close"));
        if (i < 4) socket.connect(PORT, HOST);
      }
      return seen;"""
    assert node_run(body) == ["bye", False] * 5


def test_lookup_is_called_for_names_alone(node_run: Run) -> None:
    body = """const calls = [];
      const lookup = (host, options, callback) => { calls.push([host, options.family]); queueMicrotask(() => callback(null, HOST, 4)); };
      const socket = net.connect({ port: PORT, host: "db.internal", family: 4, lookup });
      const [error, ip, family] = await once(socket, "lookup");
      await once(socket, "connect");
      socket.destroy();
      net.connect({ port: PORT, host: HOST, lookup }).destroy();
      net.connect({ port: 80, host: "other.internal", lookup: () => calls.push("never") }).destroy();
      return [calls, error, ip, family];"""
    assert node_run(body) == [[["db.internal", 4], "never"], None, "127.0.0.1", 4]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("net.connect()", 'TypeError ERR_MISSING_ARGS: The "options" or "port" or "path" argument must be specified'),
        ("net.connect({})", 'TypeError ERR_MISSING_ARGS: The "options" or "port" or "path" argument must be specified'),
        ("net.connect(-1)", "RangeError ERR_SOCKET_BAD_PORT: Port should be >= 0 and < 65536. Received type number (-1)."),
        ("net.connect(true)", 'TypeError ERR_INVALID_ARG_TYPE: The "options.port" property must be of type number or string. Received type boolean (true)'),
        ("net.connect({ path: '/tmp/x' })", "TypeError ERR_INVALID_ARG_VALUE: The argument 'path' is not supported. Received '/tmp/x'"),
        ("net.connect({ port: 1, objectMode: true })", "TypeError ERR_INVALID_ARG_VALUE: The property 'options.objectMode' is not supported. Received true"),
        ("new net.Socket({ fd: 42 })", "Error ERR_OPTION_NOT_IMPLEMENTED: The options.fd option is not implemented"),
        ("net.connect({ port: 1, localAddress: 'foobar' })", "TypeError ERR_INVALID_IP_ADDRESS: Invalid IP address: foobar"),
        ("net.createServer()", "Error undefined: Server is not implemented"),
        ("tls.connect({ port: 42, secureContext: {} })", "TypeError ERR_TLS_INVALID_CONTEXT: secureContext must be a SecureContext"),
        ("tls.createSecureContext({ cert: 'x' })", "Error ERR_OPTION_NOT_IMPLEMENTED: The options.cert option is not implemented"),
    ],
)  # fmt: skip
def test_wrong_arguments_throw_as_in_node(node_run: Run, call: str, told: str) -> None:
    assert node_run(f"return thrown(() => {call});") == told


def test_a_malformed_host_is_an_event(node_run: Run) -> None:
    body = (
        """return [await events(net.connect(0, "invalid address")), await events(net.connect(42, "*".repeat(64)))];"""
    )
    assert node_run(body) == [
        ["lookup undefined Specified address could not be parsed.", "error undefined Specified address could not be parsed.", "close true"],
        ["lookup undefined Specified address is empty string, contains unsupported characters or is too long.",
         "error undefined Specified address is empty string, contains unsupported characters or is too long.", "close true"],
    ]  # fmt: skip


def test_onread_reuses_a_buffer(node_run: Run) -> None:
    body = """const seen = [];
      const buffer = Buffer.alloc(4);
      const socket = net.connect({ port: PORT, host: HOST, onread: { buffer, callback: (count, data) => { seen.push(data.toString("utf8", 0, count)); } } });
      socket.end("bye\\n");
      await once(socket, "close");
      return [seen, socket.bytesRead];"""
    assert node_run(body) == [["bye"], 3]


def test_streams_of_node_work_with_sockets(node_run: Run) -> None:
    body = """const { pipeline } = await import("node:stream/promises");
      const { Readable } = await import("node:stream");
      const socket = net.connect({ port: PORT, host: HOST, allowHalfOpen: true });
      const text = (async () => { let all = ""; for await (const chunk of socket) all += chunk; return all; })();
      socket.write("echo\\n");
      await pipeline(Readable.from(["one ", "two"]), socket, { end: true });
      return text;"""
    assert node_run(body) == "one two"


# --- TLS ---


def test_tls_connects_and_checks_the_certificate(node_run: Run) -> None:
    body = """const socket = tls.connect({ port: TLS_PORT, host: HOST, servername: "db.example" });
      const seen = events(socket);
      await once(socket, "secureConnect");
      const facts = [socket.authorized, socket.encrypted, socket.getProtocol()];
      socket.end("bye\\n");
      return [await seen, facts];"""
    seen, facts = node_run(body)
    assert seen == ["connect", "ready", "secureConnect", "data bye", "end", "close false"]
    assert facts == [True, True, "TLSv1.3"]


def test_tls_refuses_a_wrong_name_unless_told_not_to_look(node_run: Run) -> None:
    body = """const refused = await events(tls.connect({ port: TLS_PORT, host: HOST, servername: "other.example" }));
      const socket = tls.connect({ port: TLS_PORT, host: HOST, servername: "other.example", rejectUnauthorized: false }, () => socket.end("bye\\n"));
      return [refused[0].slice(0, 40), await events(socket, ["data", "close"]), socket.authorized];"""
    assert node_run(body) == ["error ERR_TLS_CERT_ALTNAME_INVALID proxy", ["data bye", "close false"], False]


def test_tls_trusts_the_authorities_of_the_worker(node_run: Run, folder: Path) -> None:
    other = "-----BEGIN CERTIFICATE-----\\nnonsense\\n-----END CERTIFICATE-----"
    ca = (folder / "ca.pem").read_text().replace("\n", "\\n")
    body = f"""const told = [];
      for (const ca of ["{ca}", [Buffer.from("{ca}")], "{other}"]) {{
        const socket = tls.connect({{ port: TLS_PORT, host: HOST, ca }}, () => socket.end("bye\\n"));
        told.push((await events(socket, ["data", "error", "close"]))[0].slice(0, 8));
      }}
      return told;"""
    assert node_run(body) == ["data bye", "data bye", "error ER"]


def test_a_socket_is_upgraded_to_tls(node_run: Run) -> None:
    body = """const plain = net.connect(PORT, HOST);
      plain.write("starttls\\n");
      const [go] = await once(plain, "data");
      const secure = tls.connect({ socket: plain, servername: "db.example" });
      await once(secure, "secureConnect");
      secure.write("secret");
      const [data] = await once(secure, "data");
      secure.end();
      await once(secure, "close");
      return [`${go}`, `${data}`, secure.authorized, plain.destroyed];"""
    assert node_run(body) == ["go", "secret", True, True]


def test_tls_ends_in_one_direction_in_node_too(node_run: Run) -> None:
    body = """const socket = tls.connect({ port: TLS_PORT, host: HOST, allowHalfOpen: true }, () => { socket.write("hear\\nHello"); socket.end(); });
      socket.setEncoding("utf8");
      let text = "";
      socket.on("data", (data) => { text += data; });
      await once(socket, "end");
      return text;"""
    assert node_run(body) == "5 bytes"


def test_a_pool_that_lives_across_requests_notices_the_end(run: Run, node: Atoll, peer: TcpPeer) -> None:
    """The socket of the first request fails with it, so that a pool drops it; to use it in the second is an error."""
    body = """if (globalThis.kept === undefined) {
        const socket = (globalThis.kept = net.connect(PORT, HOST));
        globalThis.seen = [];
        for (const name of ["error", "close"]) socket.on(name, (value) => seen.push(`${name} ${value?.message ?? value}`));
        socket.write("echo\\nx");
        await once(socket, "data");
        return "opened";
      }
      const again = await once(kept.connect(PORT, HOST), "connect").then(() => "connected");
      const told = [...seen];
      kept.destroy();
      return [told, again];"""
    before = peer.open
    assert run(body, outside=OUTSIDE) == "opened"
    peer.wait(lambda: peer.open == before)
    assert node.get(run.name).json == [["error Network connection lost.", "close true"], "connected"]  # type: ignore[attr-defined]
