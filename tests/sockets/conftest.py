"""A node whose workers may open WebSockets on 127.0.0.1, and servers there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import make_authority, make_certificate, require_openssl
from tests.running import Atoll
from tests.socket_servers import PRELUDE, Peer, Rogue

Run = Callable[..., Any]


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_openssl()
    folder = tmp_path_factory.mktemp("wss")
    make_certificate(folder, "up", "127.0.0.1", authority=make_authority(folder))
    return folder


@pytest.fixture(scope="package")
def node(folder: Path) -> Iterator[Atoll]:
    settings = {"engines": 1, "egress_allow": "127.0.0.1", "fetch_timeout": 2, "socket_timeout": 2}
    node = Atoll(folder / "node", ca_file=folder / "ca.pem", tenant_connections=8, connect_timeout=1, **settings)
    node.start()
    yield node
    assert node.stop() == 0


@pytest.fixture(scope="package")
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.close()


@pytest.fixture(scope="package")
def rogue() -> Iterator[Rogue]:
    rogue = Rogue()
    yield rogue
    rogue.close()


@pytest.fixture
def run(node: Atoll, peer: Peer, request: pytest.FixtureRequest) -> Run:
    """Runs the body of a handler, in which UP is the server's address; returns its result."""
    count = 0

    def run(body: str, **fields: object) -> Any:
        nonlocal count
        count += 1
        name = f"c{abs(hash(request.node.name)) % 10**9}-{count}"
        source = f"""const UP = "{peer.url}"; {PRELUDE}
          async function run(request, env, ctx) {{ {body} }}
          export default {{ async fetch(request, env, ctx) {{
            try {{ return Response.json(await run(request, env, ctx) ?? null); }}
            catch (error) {{ return Response.json({{ error: `${{error.name}}: ${{error.message}}` }}); }}
          }} }};"""
        node.deploy(name, source, **fields)
        answer = node.get(name)
        assert answer.status == 200, answer.text
        return answer.json

    return run
