"""A node whose workers may connect to 127.0.0.1, and servers there."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import make_authority, make_certificate, require_openssl
from tests.running import Atoll
from tests.tcp_peer import TcpPeer

PRELUDE = """
import { connect } from "cloudflare:sockets";
const bytes = (text) => new TextEncoder().encode(text);
const told = async (promise) => { try { return await promise ?? "done"; } catch (error) { return `${error.name}: ${error.message}`; } };
function dial(line, options, address = PEER) {
  const socket = connect(address, options);
  const writer = socket.writable.getWriter();
  const reader = socket.readable.getReader();
  writer.write(bytes(line + "\\n")).catch(() => {});
  return { socket, writer, reader };
}
async function all(reader) {
  let text = "";
  for (const decoder = new TextDecoder(); ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
  }
}
async function next(reader) { return new TextDecoder().decode((await reader.read()).value); }
"""

Run = Callable[..., Any]


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_openssl()
    folder = tmp_path_factory.mktemp("tcp")
    make_certificate(folder, "up", "127.0.0.1", "db.example", authority=make_authority(folder))
    return folder


@pytest.fixture(scope="package")
def certificate(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "up.pem", folder / "up.key")
    return context


@pytest.fixture(scope="package")
def node(folder: Path) -> Iterator[Atoll]:
    node = Atoll(folder / "node", ca_file=folder / "ca.pem", engines=1, egress_allow="127.0.0.1", connect_timeout=2)
    node.start()
    yield node
    assert node.stop() == 0


@pytest.fixture(scope="package")
def peer(certificate: ssl.SSLContext) -> Iterator[TcpPeer]:
    peer = TcpPeer(later=certificate)
    yield peer
    peer.close()


@pytest.fixture(scope="package")
def tls_peer(certificate: ssl.SSLContext) -> Iterator[TcpPeer]:
    peer = TcpPeer(tls=certificate)
    yield peer
    peer.close()


@pytest.fixture
def run(node: Atoll, peer: TcpPeer, tls_peer: TcpPeer, request: pytest.FixtureRequest) -> Run:
    """Runs the body of a handler, in which PEER and TLS are the servers' addresses; returns its result."""
    count = 0

    def run(body: str, *, outside: str = "", **fields: object) -> Any:
        nonlocal count
        count += 1
        name = f"t{abs(hash(request.node.name)) % 10**9}-{count}"
        source = f"""const PEER = "{peer.address}", TLS = "{tls_peer.address}"; {PRELUDE} {outside}
          async function run(request, env, ctx) {{ {body} }}
          export default {{ async fetch(request, env, ctx) {{
            try {{ return Response.json(await run(request, env, ctx) ?? null); }}
            catch (error) {{ return Response.json({{ error: `${{error.name}}: ${{error.message}}` }}); }}
          }} }};"""
        node.deploy(name, source, **fields)
        run.name = name  # type: ignore[attr-defined]
        answer = node.get(name)
        assert answer.status == 200, answer.text
        return answer.json

    return run
