"""connect() of cloudflare:sockets, with a server on 127.0.0.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.running import Atoll
from tests.tcp_peer import TcpPeer

Run = Callable[..., Any]


def test_bytes_go_both_ways(run: Run, peer: TcpPeer) -> None:
    body = """const { socket, writer, reader } = dial("echo");
      const info = await socket.opened;
      await writer.write(bytes("hello"));
      const first = await next(reader);
      await writer.write(new Uint8Array([119, 111]).buffer);
      const second = await next(reader);
      await socket.close();
      return [info.remoteAddress, first, second, await told(socket.closed), socket.secureTransport, socket.upgraded,
        (await reader.read()).done, await told(writer.write(bytes("late")))];"""
    closed = "TypeError: This WritableStream has been closed."
    assert run(body) == [peer.address, "hello", "wo", "done", "off", False, True, closed]


def test_the_end_of_the_peer_closes_both_sides(run: Run) -> None:
    body = """const { socket, writer, reader } = dial("bye");
      return [await all(reader), await told(socket.closed), await told(writer.closed)];"""
    assert run(body) == ["bye", "done", "done"]


def test_a_half_open_socket_may_still_write(run: Run, peer: TcpPeer) -> None:
    body = """const { socket, writer, reader } = dial("hear", { allowHalfOpen: true });
      await writer.write(bytes("all of it"));
      await writer.close();
      const answer = await all(reader);
      await socket.close();
      return answer;"""
    assert run(body) == "9 bytes"
    assert peer.heard[-1] == b"all of it"


def test_tls_ends_in_one_direction(run: Run) -> None:
    body = """const { socket, writer, reader } = dial("hear", { allowHalfOpen: true, secureTransport: "on" }, TLS);
      for (let i = 0; i < 10; i++) await writer.write(new Uint8Array(100_000));
      await writer.close();
      const answer = await all(reader);
      await socket.close();
      return answer;"""
    assert run(body) == "1000000 bytes"


def test_byob_readers_fill_their_buffer(run: Run) -> None:
    body = """const socket = connect(PEER);
      const writer = socket.writable.getWriter();
      await writer.write(bytes("echo\\n123456"));
      const reader = socket.readable.getReader({ mode: "byob" });
      const { value } = await reader.readAtLeast(6, new Uint8Array(10));
      await socket.close();
      return new TextDecoder().decode(value);"""
    assert run(body) == "123456"


def test_tls_from_the_start(run: Run) -> None:
    body = """const { socket, writer, reader } = dial("echo", { secureTransport: "on" }, TLS);
      await writer.write(bytes("secret"));
      const answer = await next(reader);
      await socket.close();
      return [answer, socket.secureTransport, await told((async () => socket.startTls())())];"""
    assert run(body) == ["secret", "on", "TypeError: Cannot startTls on a TLS socket."]


def test_tls_after_a_while(run: Run) -> None:
    body = """const { socket, writer, reader } = dial("starttls", { secureTransport: "starttls" });
      const first = await next(reader);
      writer.releaseLock(); reader.releaseLock();
      const secure = socket.startTls({ expectedServerHostname: "db.example" });
      const again = await told((async () => socket.startTls())());
      const to = secure.writable.getWriter();
      await to.write(bytes("secret"));
      const answer = await next(secure.readable.getReader());
      await secure.close();
      return [first, answer, socket.upgraded, secure.upgraded, secure.secureTransport, await told(socket.closed), again];"""
    twice = "TypeError: startTls has already been called on this socket, or the socket was transferred over RPC."
    assert run(body) == ["go", "secret", True, False, "on", "done", twice]


def test_a_certificate_for_another_name_is_refused(run: Run) -> None:
    body = """const { socket, reader } = dial("starttls", { secureTransport: "starttls" });
      await next(reader);
      reader.releaseLock();
      const secure = socket.startTls({ expectedServerHostname: "other.example" });
      const error = await secure.opened.catch((error) => error);
      return [error.message, error.cause.message.includes("not trusted"), await told(secure.readable.getReader().read())];"""
    failed = "connection attempt failed"
    assert run(body) == [failed, True, f"Error: {failed}"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('"a b:1"', "Specified address could not be parsed."),
        ('":1"', "Specified address could not be parsed."),
        ('""', "Specified address is missing hostname."),
        ('"example.com"', "Specified address is missing port."),
        ('"exa*mple.com:1"', "Specified address is empty string, contains unsupported characters or is too long."),
        ('{ hostname: "", port: 1 }', "Specified address is empty string, contains unsupported characters or is too long."),
        ('"a".repeat(255) + ":1"', "Specified address is empty string, contains unsupported characters or is too long."),
        ('PEER, { secureTransport: "maybe" }', "Unsupported value in secureTransport socket option: maybe"),
    ],
)  # fmt: skip
def test_what_is_malformed_throws(run: Run, arguments: str, message: str) -> None:
    assert run(f"connect({arguments});") == {"error": f"TypeError: {message}"}


def test_start_tls_must_be_announced(run: Run) -> None:
    body = """const { socket } = dial("echo");
      const off = await told((async () => socket.startTls())());
      const { socket: closed } = dial("echo", { secureTransport: "starttls" });
      await closed.close();
      return [off, await told((async () => closed.startTls())())];"""
    assert run(body) == [
        "TypeError: The `secureTransport` socket option must be set to 'starttls' for startTls to be used.",
        "TypeError: The connection was closed before startTls could be started.",
    ]


@pytest.mark.parametrize("port", [1, 80])
def test_a_refused_connection_rejects_everything(run: Run, port: int) -> None:
    body = f"""const socket = connect({{ hostname: "127.0.0.1", port: {port} }});
      const seen = [await told(socket.opened), await told(socket.closed), await told(socket.readable.getReader().read()),
        await told(socket.writable.getWriter().write(bytes("x")))];
      return [...new Set(seen), (await socket.opened.catch((error) => error.cause.message))];"""
    message = "Error: proxy request failed, cannot connect to the specified address"
    if port == 80:
        message += (
            ". It looks like you might be trying to connect to a HTTP-based service — consider using fetch instead"
        )
    seen, cause = run(body)
    assert seen == message
    assert "connection refused" in cause


def test_a_reset_is_a_lost_connection(run: Run) -> None:
    body = """const { socket, reader } = dial("reset");
      return [await told(reader.read()), await told(socket.closed)];"""
    assert run(body) == ["Error: Network connection lost."] * 2


def test_strings_cannot_be_written(run: Run) -> None:
    body = """const { writer } = dial("echo"); return told(writer.write("text"));"""
    assert run(body) == "TypeError: This WritableStream only supports writing byte types."


def test_connect_at_top_level_is_refused(run: Run) -> None:
    outside = 'let early; try { connect("127.0.0.1:1"); } catch (error) { early = error.message; }'
    assert run("return early;", outside=outside).startswith("Disallowed operation called within global scope.")


KEPT = """if (kept === undefined) {
    kept = dial("echo");
    await kept.writer.write(bytes("x"));
    await next(kept.reader);
    kept.waiting = WAITING;
    return "opened";
  }
  return [await told(kept.writer.write(bytes("x"))), await told(kept.reader.read()), await told(kept.socket.closed)];"""


def test_a_socket_of_another_request_cannot_be_used(run: Run, node: Atoll, peer: TcpPeer) -> None:
    before = peer.open
    assert run(KEPT.replace("WAITING", "null"), outside="let kept;") == "opened"
    peer.wait(lambda: peer.open == before)
    for told in node.get(run.name).json:  # type: ignore[attr-defined]
        assert told.startswith("Error: Cannot perform I/O on behalf of a different request. I/O objects")


def test_a_read_that_waits_at_the_end_of_its_request_fails(run: Run, node: Atoll, peer: TcpPeer) -> None:
    before = peer.open
    assert run(KEPT.replace("WAITING", "told(kept.reader.read())"), outside="let kept;") == "opened"
    peer.wait(lambda: peer.open == before)
    assert node.get(run.name).json == ["Error: Network connection lost."] * 3  # type: ignore[attr-defined]


def test_wait_until_keeps_a_socket_open(run: Run, peer: TcpPeer) -> None:
    body = """const { socket, writer, reader } = dial("hear", { allowHalfOpen: true });
      ctx.waitUntil((async () => { await scheduler.wait(50); await writer.write(bytes("later")); await writer.close(); await all(reader); })());
      return "answered";"""
    seen = len(peer.heard)
    assert run(body) == "answered"
    peer.wait(lambda: len(peer.heard) > seen)
    assert peer.heard[-1] == b"later"


def test_a_socket_is_a_subrequest(run: Run) -> None:
    body = """const seen = [];
      for (let i = 0; i < 3; i++) {
        const { socket } = dial("echo");
        seen.push(await told(socket.opened.then(() => "open")));
        await socket.close().catch(() => {});
      }
      return seen;"""
    first, second, third = run(body, limits={"subrequests": 2})
    assert (first, second) == ("open", "open")
    assert third.startswith("Error: Too many subrequests")


def test_much_passes_under_back_pressure(run: Run) -> None:
    body = """const { socket, writer, reader } = dial("echo", { allowHalfOpen: true });
      const total = 8 << 20;
      const sent = (async () => {
        for (let i = 0; i < total; i += 1 << 18) await writer.write(new Uint8Array(1 << 18).fill(i >> 18));
        await writer.close();
      })();
      let got = 0, wrong = 0;
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        for (let i = 0; i < value.length; i += 4096) if (value[i] !== ((got + i) >> 18)) wrong++;
        got += value.length;
      }
      await sent;
      return [got, wrong];"""
    assert run(body, limits={"cpu_ms": 1000}) == [8 << 20, 0]  # 8 MB take about 30 ms on a quiet machine
