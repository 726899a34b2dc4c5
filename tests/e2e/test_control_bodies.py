"""Bodies of requests to the control API of a real node: strangers, slow clients, large deploys, and job processes."""

from __future__ import annotations

import json
import re
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import Atoll, children, command_line

MB = 1 << 20
HELLO = "export default { fetch() { return new Response('hello'); } };"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("bodies"), control_auth="token", upload_bytes=32 * MB)
    node.start()
    yield node
    assert node.stop() == 0, node.log()


@pytest.fixture(scope="module")
def token(node: Atoll) -> str:
    return Path(f"{node.settings['data']}/admin-token").read_text().strip()


def begun(node: Atoll, size: int, *, token: str = "", sent: bytes = b"", path: str = "/api/workers") -> socket.socket:
    """A request whose head is sent, with the given part of its body."""
    client = node.connect()
    auth = f"Authorization: Bearer {token}\r\n" if token else ""
    client.sendall(
        f"POST {path} HTTP/1.1\r\nHost: localhost:{node.port}\r\nContent-Type: application/json\r\n{auth}"
        f"Content-Length: {size}\r\n\r\n".encode()
        + sent
    )
    return client


def jobs_of(node: Atoll) -> list[int]:
    return [pid for pid in children(node.pid) if b"offload/child.py" in command_line(pid)]


def deploy(node: Atoll, token: str, name: str, script: str) -> int:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = json.dumps({"name": name, "script": script})
    return node.request("POST", f"localhost:{node.port}", "/api/workers", body, headers).status


def test_a_stranger_is_refused_before_its_body_is_read(node: Atoll) -> None:
    with begun(node, 15 * MB) as client:
        assert client.recv(65536).startswith(b"HTTP/1.1 401 ")


def test_a_body_beyond_the_bound_of_its_endpoint_is_refused_before_it_is_read(node: Atoll, token: str) -> None:
    for path, size in (("/api/tokens", MB), ("/api/workers", 90 * MB)):
        with begun(node, size, token=token, path=path) as client:
            assert client.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_unfinished_bodies_of_a_tenant_are_bounded_together(node: Atoll, token: str) -> None:
    """The tenant may hold 8 MB, a quarter of upload_bytes. Disconnecting frees the room of a client."""
    clients = [begun(node, 5 * MB, token=token, sent=b" " * (3 * MB)) for _ in range(3)]
    [refused], _, _ = select.select(clients, [], [], 30)  # one of them, in any order
    answer = refused.recv(65536)
    assert answer.startswith(b"HTTP/1.1 429 ") and b"19042" in answer and b"retry-after" in answer.lower()
    for client in clients:
        client.close()
    node.wait_until(lambda: deploy(node, token, "after", HELLO + " " * (4 * MB)) == 201)


def test_a_job_process_handles_a_large_deploy_but_not_a_small_one(node: Atoll, token: str) -> None:
    node.wait_until(lambda: not jobs_of(node), 30)
    assert deploy(node, token, "small", HELLO) == 201
    assert not jobs_of(node)
    assert deploy(node, token, "large", HELLO + "//" + "é" * (MB // 2)) == 201
    [pid] = jobs_of(node)
    assert b"ATOLL" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert int(re.findall(r"\d+", Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2])[15]) >= 10  # nice
    assert node.get("large").text == "hello"
    text = node.request("GET", f"localhost:{node.port}", "/metrics", None, {"Authorization": f"Bearer {token}"}).text
    assert 'atoll_jobs_total{ending="ok",job="unpack_job"}' in text and "atoll_job_processes 1.0" in text
    node.wait_until(lambda: not jobs_of(node), 30)  # job processes end after ten idle seconds


def test_job_processes_end_with_their_node(tmp_path: Path) -> None:
    node = Atoll(tmp_path)
    node.start()
    node.deploy("large", HELLO + "//" + "x" * (2 * MB))
    [pid] = jobs_of(node)
    node.stop(9)
    node.wait_until(lambda: not Path(f"/proc/{pid}/cmdline").exists())
