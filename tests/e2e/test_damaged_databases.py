"""A page of a database is damaged while the node is stopped. The node reports it at the start or on access."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import COMMAND, Atoll

PAGE = 4096
WORKER = """export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    try {
      if (request.method === "POST") await env.KV.put(pathname, await request.text());
      return new Response(await env.KV.get(pathname));
    } catch (error) { return new Response(`${error}`, { status: 507 }); }
  },
  queue() {}, scheduled() {},
};"""
BINDINGS = [{"type": "kv", "name": "KV", "namespace": "kept"}, {"type": "queue", "name": "JOBS", "queue": "kept"}]
FILES = ("atoll.db", "kv.db", "queues.db", "crons.db", "logs.db", "cache/cache.db")


def fill(node: Atoll) -> None:
    node.deploy("keeper", WORKER, bindings=BINDINGS)
    for i in range(20):
        assert node.post("keeper", f"/{i}", b"v" * 2000).status == 200
        messages = [{"body": "m" * 2000} for _ in range(10)]
        assert node.control("POST", "/api/queues/kept/messages", {"messages": messages}).status == 201
        assert node.control("POST", "/api/workers/keeper/crons/run").status == 200
    assert node.stop() == 0


def damage(path: Path, pages: range) -> None:
    content = bytearray(path.read_bytes())
    for page in pages:
        if page * PAGE < len(content):
            content[page * PAGE : (page + 1) * PAGE] = b"\xa5" * PAGE
    path.write_bytes(content)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a stopped node."""
    node = Atoll(tmp_path_factory.mktemp("filled"), engines=1)
    node.start()
    fill(node)
    return data_of(node)


@pytest.fixture
def stopped(filled: Path, tmp_path: Path) -> Iterator[Atoll]:
    """A node that is not started yet, on a copy of that folder."""
    node = Atoll(tmp_path, engines=1)
    shutil.copytree(filled, data_of(node))
    (tmp_path / "log").touch()
    yield node
    if node.process is not None:
        node.stop()


def data_of(node: Atoll) -> Path:
    return Path(str(node.settings["data"]))


def test_a_database_whose_first_page_is_damaged_is_named_at_the_start(stopped: Atoll) -> None:
    data = data_of(stopped)
    for name in FILES[:5]:
        path = data / name
        sound = path.read_bytes()
        damage(path, range(1))
        done = subprocess.run(
            [*COMMAND, "--port=0", f"--data={data}", "--engines=1"], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 1 and f"{path} is" in done.stderr and "hint: restore" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
        path.write_bytes(sound)
    damage(data / "cache/cache.db", range(1))  # the cache may lose data: it starts empty
    stopped.start()
    assert stopped.get("keeper", "/7").body == b"v" * 2000


@pytest.mark.parametrize("name", FILES)
def test_damaged_pages_stop_the_node_with_a_clear_error_or_cost_only_their_data(stopped: Atoll, name: str) -> None:
    data = data_of(stopped)
    pages = (data / name).stat().st_size // PAGE
    damage(data / name, range(pages // 2, pages))
    refusal = start_or_refusal(stopped)
    if refusal is not None:
        assert f"{data / name} is damaged" in refusal and "hint: restore" in refusal, refusal
        (data / name).unlink()
        if name == "atoll.db":
            return  # the list of workers is lost with it
        stopped.start()
    asked = {
        "kv.db": [stopped.get("keeper", f"/{i}") for i in range(20)],
        "queues.db": [stopped.control("GET", f"/api/queues/kept{path}") for path in ("", "/messages")],
        "crons.db": [stopped.control("GET", "/api/workers/keeper/crons")],
        "logs.db": [stopped.control("GET", "/api/workers/keeper/logs")],
        "atoll.db": [stopped.control("GET", "/api/workers/keeper/versions")],
        "cache/cache.db": [stopped.control("GET", "/api/caches")],
    }
    for kept, answers in asked.items():
        for answer in answers:
            is_told = "the storage of this node is damaged" in answer.text and answer.status == 507
            is_gone = refusal is not None and answer.status in (200, 404)
            assert answer.status == 200 or (kept == name and (is_told or is_gone)), f"{kept}: {answer.text}"
    assert stopped.control("GET", "/metrics").status == 200
    assert "Traceback" not in stopped.log()


def start_or_refusal(node: Atoll) -> str | None:
    """The error of a node that refuses to start; None if it serves."""
    before = len(node.log())
    try:
        node.start()
    except AssertionError:
        assert node.process is not None and node.process.wait(10) == 1
        return node.log()[before:]
    return None
