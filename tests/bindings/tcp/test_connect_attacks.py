"""Attacks with sockets, from workers and from peers. Each costs only the request that makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.running import Atoll
from tests.tcp_peer import TcpPeer

Run = Callable[..., Any]

CAUSE = "const cause = (socket) => socket.opened.then(() => 'open', (error) => error.cause?.message ?? error.message);"


# --- workers that try forbidden targets ---


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254", "[fd00:ec2::254]", "10.0.0.1", "0x0a000001", "167772161", "012.0.0.1", "10.1", "192.168.1",
        "0.0.0.0", "0", "[::]", "[::1]", "[::ffff:10.0.0.1]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a00:1]", "[2002:a00:1::]",
        "[fe80::1]", "224.0.0.1", "255.255.255.255", "127.0.0.2", "x.localhost",
    ],
)  # fmt: skip
def test_no_internal_address_in_any_notation(run: Run, peer: TcpPeer, host: str) -> None:
    port = 5432 if host == "x.localhost" else peer.port  # 127.0.0.1 is open here, and ::1 is not
    for form in (f'"{host}:{port}"', f'{{ hostname: "{host}", port: {port} }}'):
        told = run(f"return cause(connect({form}));", outside=CAUSE)
        assert told.startswith("error 1024") or "no address" in told or "refused" in told, told


def test_a_name_that_resolves_to_an_internal_address(run: Run, peer: TcpPeer, node: Atoll) -> None:
    # The address that is checked is the one that is connected: rebinding a name gains nothing (tests/egress/test_gate.py).
    assert run(f'return cause(connect("127.0.0.1:{node.port}"));', outside=CAUSE).endswith("on the port of this node")


def test_port_25_is_closed(run: Run) -> None:
    told = run('return Promise.all(["127.0.0.1:25", "example.com:25"].map((to) => cause(connect(to))));', outside=CAUSE)
    assert all(text.startswith("port 25 may not be reached") for text in told)


def test_the_rules_of_a_worker_narrow_it(run: Run) -> None:
    told = run("return cause(connect(PEER));", outside=CAUSE, egress={"deny": ["127.0.0.1"]})
    assert told.startswith("error 1024")


# --- too much ---


def test_a_peer_that_floods_is_not_read(run: Run, peer: TcpPeer) -> None:
    before = peer.sent
    body = """const { reader } = dial("flood"); await next(reader);
      await scheduler.wait(300); return "unread";"""
    assert run(body) == "unread"
    assert peer.sent - before < 32 << 20  # what the kernel holds, and 256 KB


def test_a_peer_that_never_reads_stops_the_writer(run: Run, peer: TcpPeer) -> None:
    before = peer.open
    body = """const { writer } = dial("deaf");
      const chunk = new Uint8Array(1 << 20);
      let written = 0;
      const endless = (async () => { for (;;) { await writer.write(chunk); written++; } })();
      endless.catch(() => {});
      for (let was = -1; was !== written; ) { was = written; await scheduler.wait(300); }
      return written;"""
    assert run(body) < 32
    peer.wait(lambda: peer.open == before)  # the call is over: what was not sent has a few seconds


def test_ten_thousand_connects_at_once(run: Run, node: Atoll, peer: TcpPeer) -> None:
    before = peer.accepted
    body = """const sockets = Array.from({ length: 10_000 }, () => connect(PEER));
      const opened = await Promise.race([Promise.allSettled(sockets.map((socket) => socket.opened)), scheduler.wait(1000)]);
      return opened?.filter(({ status }) => status === "fulfilled").length ?? "waiting";"""
    told = run(body, limits={"subrequests": 10_000, "cpu_ms": 5_000})
    assert told in (6, "waiting")
    assert peer.accepted - before <= 12
    assert (
        run('const { writer, reader, socket } = dial("echo"); await writer.write(bytes("x")); return next(reader);')
        == "x"
    )


def test_a_seventh_socket_waits_for_a_place(run: Run) -> None:
    body = """const six = Array.from({ length: 6 }, () => dial("echo"));
      await Promise.all(six.map(({ socket }) => socket.opened));
      const refused = await told(connect(PEER).opened);
      const seventh = connect(PEER);
      await six[0].socket.close();
      return [refused, await told(seventh.opened.then(() => "open"))];"""
    refused, after = run(body)
    assert refused.startswith("Error: the 6 connections that a request may hold are all sockets")
    assert after == "open"


# --- TLS ---


def test_a_slow_handshake_ends_in_time(run: Run) -> None:
    body = """const { socket, reader } = dial("slow tls", { secureTransport: "starttls" });
      await next(reader);
      reader.releaseLock();
      return cause(socket.startTls());"""
    assert run(body, outside=CAUSE).startswith("no connection to 127.0.0.1 within 2 s")


def test_bytes_injected_before_the_handshake_are_refused(run: Run) -> None:
    """https://www.postgresql.org/support/security/CVE-2021-23222/"""
    body = """const { socket, writer, reader } = dial("injected", { secureTransport: "starttls" });
      await next(reader);
      await writer.write(bytes("."));
      await scheduler.wait(200);
      reader.releaseLock(); writer.releaseLock();
      return cause(socket.startTls());"""
    assert run(body, outside=CAUSE) == "the peer sent bytes before the TLS handshake"


def test_tls_to_a_peer_without_it(run: Run) -> None:
    body = 'return cause(connect(PEER, { secureTransport: "on" }));'
    assert "127.0.0.1" in run(body, outside=CAUSE)
