"""The next start removes what kill -9 leaves in the data folder, and nothing else."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.running import Atoll

SCRIPT = """export default { async fetch(request, env) {
  const cache = await caches.open("c");
  await cache.put("http://x/" + crypto.randomUUID(), new Response(new Uint8Array(300_000), { headers: { "cache-control": "max-age=60" } }));
  return new Response("ok");
} };"""


def names(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if "/cache/" not in f"/{path.relative_to(folder)}/"
    }


def test_a_killed_node_leaves_nothing_behind_after_its_next_start(tmp_path: Path) -> None:
    node = Atoll(tmp_path, engines=1)
    node.start()
    data = tmp_path / "data"
    node.deploy("hello", SCRIPT)
    assert node.control("PUT", "/api/workers/hello/secrets/KEY", {"value": "kept"}).status == 200
    assert node.get("hello").text == "ok"
    with node.connect() as reader:  # the client reads nothing: the copies stay while it is connected
        for _ in range(40):
            node.deploy("large", "export default { fetch() {} } //" + "x" * 900_000)
        reader.sendall(f"GET /api/backup HTTP/1.1\r\nHost: localhost:{node.port}\r\n\r\n".encode())
        reader.recv(100)
        assert list(data.glob("backup-*"))
        node.stop(signal.SIGKILL)
    assert list(data.glob("backup-*")), "kill -9 leaves the copies"
    key = (data / "root-key").read_bytes()
    (data / "root-key.new").write_bytes(key)
    (data / "recent.tmp").write_bytes(b"[")
    (data / "engine-abc.tmp").write_bytes(b"half a snapshot")
    (data.parent / f".restore-{data.name}-abcd1234").mkdir()
    (data.parent / ".restore-other-abcd1234").mkdir()
    (data / "backup-monday.tar").write_bytes(b"somebody's")
    node.start()
    try:
        left = names(data)
        assert not {name for name in left if name.startswith(("backup-", "engine-")) and name.endswith((".tmp", "_"))}
        assert not [path for path in data.glob("backup-*") if path.is_dir()]
        assert not left & {"root-key.new", "recent.tmp", "engine-abc.tmp"}
        assert (data / "root-key").read_bytes() == key and (data / "backup-monday.tar").exists()
        assert [path.name for path in data.parent.glob(".restore-*")] == [".restore-other-abcd1234"]
        assert "left behind when it was killed" in node.log()
        assert node.get("hello").text == "ok"
        assert node.control("GET", "/api/workers/hello/secrets").json["secrets"][0]["name"] == "KEY"
    finally:
        node.stop()
