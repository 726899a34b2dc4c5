"""Attacks of HTTP clients over TLS. A quiet tenant's client beside them does not wait."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.certificates import make_authority, make_certificate, require_openssl
from tests.running import free_port
from tests.stalls.attacks.http_bodies import SINK
from tests.stalls.attacks.http_heads import MANY, get, repeated
from tests.stalls.flood import connections, flood
from tests.stalls.stage import BUSY_WAIT_MS, Attack, Stage

ROUNDS = 3
Connect = Callable[[], socket.socket]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Connect]]:
    require_openssl()
    folder = tmp_path_factory.mktemp("tls")
    authority = make_authority(folder)
    make_certificate(folder / "certificates", "default", "sink.localhost", authority=authority)
    port = free_port()
    stage = Stage(folder / "node", https_port=port, certificates=folder / "certificates")
    stage.deploy("sink", SINK)
    yield stage, lambda: _handshake(folder, port)
    stage.close()


def _handshake(folder: Path, port: int) -> socket.socket:
    trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    return trust.wrap_socket(socket.create_connection(("127.0.0.1", port), 30), server_hostname="sink.localhost")


CHUNKED = get("sink.localhost", "Transfer-Encoding: chunked", method="POST")
ATTACKS = {
    "empty lines": (b"", b"\r\n" * 200_000, 1),
    "pipelined requests to an unknown host": (b"", repeated(get("nobody.localhost")), 1),
    "pipelined requests to an unknown host on many connections": (b"", repeated(get("nobody.localhost")), MANY),
    "chunks of one byte": (CHUNKED, b"1\r\nx\r\n" * 100_000, 1),
    "chunks full of empty lines": (CHUNKED, (b"2000\r\n" + b"\r\n" * 4096 + b"\r\n") * 100, 4),
    "heads that never end": (get("sink.localhost")[:-2], b"a:\r\n" * 100_000, 4),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_quiet_tenant_does_not_wait_because_of_tls_and(name: str, secure: tuple[Stage, Connect]) -> None:
    stage, connect = secure
    first, data, count = ATTACKS[name]

    def run(_: Stage) -> Iterator[None]:
        with connections(connect, count) as clients:
            yield
            flood(clients, data, first=first)

    for _ in range(ROUNDS):
        stall = stage.measure(Attack(name, run, 64))
        assert stall.memory_mb <= 64
        if stall.wait_ms <= BUSY_WAIT_MS:
            return
    pytest.fail(f"the quiet tenant waited {stall.wait_ms:.0f} ms")
