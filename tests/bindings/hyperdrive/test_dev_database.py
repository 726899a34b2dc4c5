"""`localConnectionString`: where `atoll dev` connects to. It is not sent to other nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.project.read import read_project
from tests.cli.dev_session import Dev
from tests.tcp_peer import TcpPeer

WORKER = """import net from "node:net";
export default { async fetch(request, env) {
  const socket = net.connect(env.DB.port, env.DB.host, () => socket.end("bye\\n"));
  let text = "";
  for await (const chunk of socket) text += chunk;
  return new Response(`${text} ${env.DB.user} ${env.DB.database}`);
} };
"""


@pytest.fixture
def peer() -> Iterator[TcpPeer]:
    peer = TcpPeer()
    yield peer
    peer.close()


def test_atoll_dev_connects_to_the_local_database(tmp_path: Path, peer: TcpPeer) -> None:
    local = f"postgres://ada:secret@127.0.0.1:{peer.port}/shop"
    config = tmp_path / "wrangler.jsonc"
    config.write_text(f"""{{ "name": "dev-database", "main": "index.js", "compatibility_date": "2026-08-04",
      "hyperdrive": [{{ "binding": "DB", "id": "orders", "localConnectionString": "{local}" }}] }}""")
    sent = read_project(tmp_path).settings()["bindings"]
    assert sent == [{"type": "hyperdrive", "name": "DB", "database": "orders"}]
    (tmp_path / "index.js").write_text(WORKER)
    dev = Dev(tmp_path)
    try:
        assert dev.get("/") == (200, "bye ada shop")
    finally:
        dev.stop()
