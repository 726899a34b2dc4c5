"""`atoll serve --processes 2`: two nodes under one parent, on one port."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.cli.processes import share_key
from atoll.errors import StartError
from tests.cluster.edges import Load
from tests.postgres_server import Place, fresh_database
from tests.running import Atoll, children, free_port

HELLO = "export default { fetch(request) { return new Response(new URL(request.url).hostname); } }"


@pytest.fixture(scope="module")
def place() -> Place:
    import asyncio

    return asyncio.run(fresh_database())


def make(folder: Path, place: Place, **settings: object) -> Atoll:
    node = Atoll(folder, store=place.url, **{"engines": 2, "spares": 0, "processes": 2, **settings})
    while True:  # three ports in a row
        node.port = free_port()
        if free_port() == node.port + 1 and free_port() == node.port + 2:
            return node


@pytest.fixture
def pair(tmp_path: Path, place: Place) -> Iterator[Atoll]:
    node = make(tmp_path, place)
    node.start()
    node.wait_until(lambda: "all 2 processes serve" in node.log(), 60)
    yield node
    if node.process is not None and node.process.poll() is None:
        assert node.stop() == 0
    assert "Traceback" not in node.log(), node.log()


def own(node: Atoll, number: int, path: str) -> http.client.HTTPResponse:
    """The answer of one process, on its own port."""
    connection = http.client.HTTPConnection("127.0.0.1", node.port + number, timeout=30)
    connection.request("GET", path, headers={"Host": f"localhost:{node.port + number}", "Connection": "close"})
    return connection.getresponse()


def test_both_processes_serve_one_port_and_one_that_is_killed_costs_nothing_and_comes_back(pair: Atoll) -> None:
    node = pair
    made = node.control("POST", "/api/workers", {"name": "hello", "script": HELLO})
    assert made.status == 201 and made.headers["x-atoll-pending-nodes"] is None, made.text
    found = node.control("GET", "/api/nodes").json["nodes"]
    assert sorted(each["address"] for each in found) == [f"127.0.0.1:{node.port + number}" for number in (1, 2)]
    assert sorted(each["name"][-2:] for each in found) == ["-1", "-2"]
    assert [own(node, number, "/readyz").status for number in (1, 2)] == [200, 200]
    first, second = sorted(pid for pid in children(node.pid) if os.getpgid(pid) == pid)
    with Load(node.port, ["hello.localhost"]) as load:
        load.more(100)
        os.kill(second, signal.SIGKILL)
        load.more(100)
        node.wait_until(lambda: "process 2 ended; it is started again" in node.log(), 20)
        node.wait_until(lambda: _is_ready(node, 2), 60)
        load.more(50)
    refused = [outcome for outcome in load.statuses if "Refused" in str(outcome)]
    lost = sum(count for outcome, count in load.statuses.items() if outcome != 200)
    assert not refused and lost <= 2, f"only what was being answered by the process that was killed: {load.statuses}"
    assert first in children(node.pid)
    processes = children(node.pid)
    os.kill(node.pid, signal.SIGKILL)  # the others end with their parent
    assert node.process is not None
    node.process.wait(20)
    node.wait_until(lambda: not any(_is_alive(pid) for pid in processes), 40)


def _is_ready(node: Atoll, number: int) -> bool:
    try:
        return own(node, number, "/readyz").status == 200
    except OSError:
        return False


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def said(*words: str) -> str:
    """What `atoll serve` says that does not start."""
    ran = subprocess.run(
        [*Atoll(Path("/tmp")).command, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 1 and "Traceback" not in ran.stderr and "hint:" in ran.stderr, ran.stderr
    return ran.stderr


def test_what_several_processes_cannot_have_is_refused_in_words(tmp_path: Path, place: Place) -> None:
    assert "must share a PostgreSQL" in said(f"--data={tmp_path}", "--processes=2")
    store = f"--store={place.url}"
    assert "only_node is on" in said(f"--data={tmp_path}", store, "--processes=2", "--only-node=on")
    assert "https_port" in said(f"--data={tmp_path}", store, "--processes=2", "--https-port=1234")
    assert "--replace does not work" in said(f"--data={tmp_path}", store, "--processes=2", "--replace")
    away = f"--store=postgresql://nobody@127.0.0.1:{free_port()}/none"
    assert "cannot be reached" in said(f"--data={tmp_path}/away", away, "--processes=2", "--port=0")
    (tmp_path / "atoll.db").touch()
    assert "is of a single node" in said(f"--data={tmp_path}", store, "--processes=2")


def test_all_processes_have_the_root_key_of_the_folder(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"process-{number}").mkdir()
    share_key(tmp_path, 2)
    key = (tmp_path / "root-key").read_bytes()
    paths = [tmp_path / f"process-{number}/root-key" for number in (1, 2)]
    assert [path.read_bytes() for path in paths] == [key, key] and paths[0].stat().st_mode & 0o777 == 0o600
    share_key(tmp_path, 2)
    paths[1].write_bytes(key + b"another")
    with pytest.raises(StartError, match="are not the same root key"):
        share_key(tmp_path, 2)
    assert paths[1].read_bytes() == key + b"another", "no key is ever overwritten"
