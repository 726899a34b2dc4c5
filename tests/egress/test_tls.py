"""TLS to other servers: which certificate must match which name, and the error messages."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from atoll.config import Settings
from atoll.egress.gate import EgressGate
from atoll.errors import NetworkError
from atoll.workers import EgressRules, Version
from tests.certificates import make_authority, make_certificate, require_openssl

WHO = Version("v", "w", "worker", "a", (), "", egress=EgressRules())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_openssl()
    folder = tmp_path_factory.mktemp("tls")
    make_certificate(folder, "server", "127.0.0.1", "::1", "up.example", authority=make_authority(folder))
    return folder


async def speak(folder: Path, address: str, host: str, tls: ssl.SSLContext | None) -> None:
    """Connects over TLS to a server at `address`, as `host`."""
    gate = EgressGate(Settings(egress_allow=("127.0.0.1", "::1"), ca_file=str(folder / "ca.pem")))
    server = await asyncio.start_server(lambda reader, writer: _answer(reader, writer), address, 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        transport, _ = await gate.connect(WHO, host, port, tls=True, protocol=asyncio.Protocol)
        transport.abort()
    finally:
        gate.close()
        server.close()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()


def context(folder: Path) -> ssl.SSLContext:
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.load_cert_chain(folder / "server.pem", folder / "server.key")
    return found


@pytest.mark.parametrize(
    ("address", "host"),
    [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("127.0.0.1", "up.example"), ("127.0.0.1", "up.example.")],
)
async def test_a_certificate_matches_any_spelling_of_the_host(
    folder: Path, monkeypatch: pytest.MonkeyPatch, address: str, host: str
) -> None:
    try:
        with socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET):
            pass
    except OSError:
        pytest.skip("this machine has no IPv6")
    resolve = socket.getaddrinfo

    def resolved(name: Any, *arguments: Any, **more: Any) -> Any:
        return resolve("127.0.0.1" if str(name).startswith("up.") else name, *arguments, **more)

    monkeypatch.setattr("atoll.egress.gate.socket.getaddrinfo", resolved)
    await speak(folder, address, host, context(folder))


async def test_a_server_without_tls_has_its_own_error(folder: Path) -> None:
    with pytest.raises(NetworkError, match=r"^no TLS with 127\.0\.0\.1:\d+: its answer is not TLS$"):
        await speak(folder, "127.0.0.1", "127.0.0.1", None)
