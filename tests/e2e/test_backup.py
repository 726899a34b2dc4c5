"""A node is backed up while it serves, and another node continues from the backup."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tests.running import Atoll

COMMAND = str(Path(sys.executable).parent / "atoll")
HELLO = 'export default { fetch(request, env) { console.log("greeted"); return new Response("hello " + env.WHO); } }'


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_a_backup_of_a_busy_node_is_served_by_another(new_atoll: Callable[..., Atoll], tmp_path: Path) -> None:
    atoll = new_atoll()
    atoll.deploy("hello", HELLO, env={"WHO": "world"}, routes=["hello.example/*"])
    statuses: set[int] = set()
    done = threading.Event()

    def keep_busy() -> None:
        number = 0
        while not done.is_set():
            number += 1
            atoll.deploy("other", f"export default {{ fetch() {{ return new Response('{number}') }} }}")
            statuses.add(atoll.get("hello").status)

    thread = threading.Thread(target=keep_busy)
    thread.start()
    try:
        file = tmp_path / "all.tar"
        made = run("backup", file, "--api", f"http://localhost:{atoll.port}")
    finally:
        done.set()
        thread.join()
    assert (made.returncode, made.stdout.strip()) == (0, str(file)), made.stderr
    assert statuses == {200}
    again = run("backup", file, "--api", f"http://localhost:{atoll.port}")
    assert again.returncode == 1 and "exists already" in again.stderr

    restored = run("restore", file, "--data", tmp_path / "copy")
    assert restored.returncode == 0, restored.stderr
    copy = new_atoll(data=tmp_path / "copy")
    assert copy.get("hello").text == "hello world"
    assert copy.request("GET", "hello.example").text == "hello world"
    assert copy.get("other").status == 200
    assert any(record["logs"][0]["message"] == "greeted" for record in copy.logs("hello")[1:]), (
        "the backup includes the logs"
    )


def test_a_failed_restore_has_a_hint(tmp_path: Path) -> None:
    (tmp_path / "no.tar").write_bytes(b"nonsense")
    for arguments, words in (
        (("restore", tmp_path / "none.tar", "--data", tmp_path / "a"), "No such file"),
        (("restore", tmp_path / "no.tar", "--data", tmp_path / "b"), "damaged"),
        (("backup", tmp_path / "x.tar", "--api", "http://localhost:1"), "does not answer"),
    ):
        result = run(*arguments)
        assert result.returncode == 1 and words in result.stderr and "hint:" in result.stderr, result.stderr
        assert "Traceback" not in result.stderr


def test_a_client_that_disconnects_during_a_backup_leaves_no_files(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll()
    atoll.deploy("hello", HELLO)
    (atoll.folder / "data" / "large.bin").write_bytes(bytes(64 << 20))
    with atoll.connect() as client:
        client.sendall(f"GET /api/backup HTTP/1.1\r\nHost: localhost:{atoll.port}\r\n\r\n".encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
        busy = atoll.control("GET", "/api/backup")
        assert busy.status == 409 and "another backup" in busy.text
    data = atoll.folder / "data"
    atoll.wait_until(lambda: not list(data.glob("backup-*")))
    assert atoll.control("GET", "/api/backup?logs=maybe").status == 400
    assert atoll.control("GET", "/api/backup?logs=false").status == 200


def test_a_client_that_disconnects_before_a_backup_leaves_no_files(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll()
    data = atoll.folder / "data"
    (data / "large.bin").write_bytes(bytes(32 << 20))  # large enough that the copy takes a moment
    with atoll.connect() as client:
        client.sendall(f"GET /api/backup HTTP/1.1\r\nHost: localhost:{atoll.port}\r\n\r\n".encode())
        atoll.wait_until(lambda: list(data.glob("backup-*")))
    atoll.wait_until(lambda: not list(data.glob("backup-*")))
    assert atoll.control("GET", "/api/backup?logs=false").status == 200
