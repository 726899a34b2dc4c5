"""A process takes the place of another: under load, with a socket of a parent, and when the new one fails."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sqlite3
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from atoll.handover.channel import DOOR, knock
from tests.replacing import FIELDS, NAME, SOURCE, Load
from tests.running import COMMAND, GAVE_WAY, Atoll

HELLO = 'export default { fetch() { return new Response("Hello!"); } }'
PASSED = 'exec 3<&"$0"; LISTEN_FDS=1 LISTEN_FDNAMES=http LISTEN_PID=$$ exec "$@"'


async def under_load(atoll: Atoll, change: Callable[[], None]) -> None:
    atoll.deploy(NAME, SOURCE, **FIELDS)
    load = Load(atoll, rate=150, sockets=20, streams=5, stream_lines=35)

    async def later() -> None:
        while load.found.messages < 40 or load.found.answered < 100:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await asyncio.to_thread(change)

    found = await load.run(later)
    await asyncio.to_thread(load.check)
    assert found.problems == []
    assert found.restarts == 20 and found.streams == 5
    assert len(found.numbers) > 20 and len(found.stored) > 150


async def test_a_replacement_under_load_is_noticed_by_nobody(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1, drain_seconds=8)
    old = atoll.pid
    await under_load(atoll, atoll.replace)
    assert atoll.pid != old
    assert atoll.replaced[0].wait(20) == 0, "the old process ends"
    found = f"/api/workers/{NAME}/logs?text=/stream"  # ended in the old process, and recorded in the new one
    atoll.wait_until(lambda: len(atoll.control("GET", found).json["logs"]) == 5)
    assert "Traceback" not in atoll.log() and "ERROR" not in atoll.log()


async def test_a_replacement_on_a_socket_of_the_parent_is_noticed_by_nobody(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as port:
        atoll = Atoll(tmp_path / "node", engines=1, drain_seconds=8, port=port.getsockname()[1])
        atoll.command = ["bash", "-c", PASSED, str(port.fileno()), *COMMAND]
        atoll.pass_fds = (port.fileno(),)
        atoll.start()
        try:
            await under_load(atoll, atoll.replace)
            assert atoll.replaced[0].wait(20) == 0
        finally:
            atoll.stop()


def test_clients_wait_while_a_node_with_a_socket_of_its_parent_restarts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as port:
        atoll = Atoll(tmp_path / "node", engines=1, port=port.getsockname()[1])
        atoll.command = ["bash", "-c", PASSED, str(port.fileno()), *COMMAND]
        atoll.pass_fds = (port.fileno(),)
        atoll.start()
        try:
            atoll.deploy("hello", HELLO)
            assert atoll.stop() == 0
            with atoll.connect() as client:  # while no node runs
                client.sendall(f"GET / HTTP/1.1\r\nHost: {atoll.host('hello')}\r\n\r\n".encode())
                atoll.start()
                assert client.recv(100).startswith(b"HTTP/1.1 200 OK")
        finally:
            atoll.stop()


def test_an_upgrade_that_cannot_start_leaves_the_old_process_serving(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1)
    atoll.deploy("hello", HELLO)
    with sqlite3.connect(atoll.folder / "data" / "atoll.db") as database:
        [known] = database.execute("PRAGMA user_version").fetchone()
        database.execute("PRAGMA user_version = 9999")  # as a newer Atoll would leave it
    try:
        fresh = atoll.spawn("--replace")
        assert fresh.wait(30) == 1
        assert "made by a newer Atoll" in atoll.log() and "hint:" in atoll.log() and "Traceback" not in atoll.log()
    finally:
        with sqlite3.connect(atoll.folder / "data" / "atoll.db") as database:
            database.execute(f"PRAGMA user_version = {known}")
    assert atoll.get("hello").text == "Hello!" and GAVE_WAY not in atoll.log()


def test_a_folder_of_a_newer_atoll_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with sqlite3.connect(data / "atoll.db") as database:
        database.execute("PRAGMA user_version = 9999")
    (data / "recent.tmp").write_text("of the newer one")
    before = {path.name: path.read_bytes() for path in data.iterdir()}
    command = [*COMMAND, "--port=0", f"--data={data}", "--engines=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "made by a newer Atoll" in done.stderr and "hint:" in done.stderr
    assert {path.name: path.read_bytes() for path in data.iterdir() if path.name != "lock"} == before


async def test_a_node_whose_successor_dies_at_the_worst_moment_goes_on(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1)
    atoll.deploy(NAME, SOURCE, **FIELDS)
    assert atoll.get(NAME, "/put?key=before").status == 200
    client = atoll.connect()  # a connection that is passed on, with half a request
    client.sendall(f"GET /has?key=before HTTP/1.1\r\nHost: {atoll.host(NAME)}\r\n".encode())
    channel = knock(atoll.folder / "data")
    assert channel is not None
    for each in (await channel.hear()).sockets:
        each.close()
    channel.say(ask="take")
    while (packet := await channel.hear()).fields.get("say") != "released":
        packet.close()
    channel.close()  # as when it is killed: it has the folder, the ports and the clients, and is gone
    client.sendall(b"\r\n")
    answer = await asyncio.to_thread(client.recv, 1000)
    client.close()
    assert answer.startswith(b"HTTP/1.1 200 OK") and answer.endswith(b"put")
    assert atoll.get(NAME, "/count").text == "1" and atoll.get(NAME, "/count").text == "2"
    assert "this process serves again" in atoll.log()
    await asyncio.to_thread(atoll.replace)
    assert atoll.get(NAME, "/count").text == "3", "and can be replaced again"


def test_replace_without_a_running_node_starts_one(tmp_path: Path) -> None:
    atoll = Atoll(tmp_path / "node", engines=1)
    atoll.process = atoll.spawn("--replace")
    try:
        atoll.wait_until(atoll.is_healthy, 30)
        assert "there is nothing to replace" in atoll.log()
        door = atoll.folder / "data" / DOOR
        assert stat.S_IMODE(door.stat().st_mode) == 0o600
    finally:
        assert atoll.stop() == 0
    assert not door.exists()


def test_sigusr2_upgrades_a_node_in_place_and_systemd_hears_of_it(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        atoll = Atoll(tmp_path / "node", engines=1)
        atoll.environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")}
        atoll.start()
        try:
            assert manager.recv(1000).decode() == f"MAINPID={atoll.pid}\nREADY=1"
            assert atoll.process is not None
            atoll.process.send_signal(signal.SIGUSR2)
            new = int(manager.recv(1000).decode().partition("\n")[0].removeprefix("MAINPID="))
            assert new != atoll.pid
            assert atoll.process.wait(30) == 0
            assert atoll.control("GET", "/health").status == 200
        finally:
            os.kill(new, signal.SIGTERM)
            assert manager.recv(1000) == b"STOPPING=1"


def test_sighup_reloads_what_can_change_and_names_the_rest(tmp_path: Path) -> None:
    config = tmp_path / "atoll.toml"
    config.write_text("[node]\nbody_bytes = 1000\nengines = 1\n")
    atoll = Atoll(tmp_path / "node")
    del atoll.settings["engines"]
    atoll.settings["config"] = config
    atoll.start_new_session = True  # without a terminal, where SIGHUP means to stop
    atoll.start()
    try:
        atoll.deploy("hello", HELLO)
        assert atoll.post("hello", body=b"x" * 1001).status == 413
        config.write_text("[node]\nbody_bytes = 2000\nengines = 2\n")
        atoll.process.send_signal(signal.SIGHUP)  # type: ignore[union-attr]
        atoll.wait_until(lambda: "reloaded: body_bytes" in atoll.log())
        atoll.wait_until(lambda: "need a restart or --replace: engines" in atoll.log())
        assert atoll.post("hello", body=b"x" * 1001).status == 200
        config.write_text("[node]\nbody_bytes = 0\n")
        atoll.process.send_signal(signal.SIGHUP)  # type: ignore[union-attr]
        atoll.wait_until(lambda: "the settings were not reloaded" in atoll.log())
        assert atoll.post("hello", body=b"x" * 1001).status == 200
    finally:
        assert atoll.stop() == 0


@pytest.mark.parametrize(("count", "problem"), [("0", "not a number of sockets"), ("1", "cannot be used")])
def test_sockets_that_cannot_be_used_are_refused(tmp_path: Path, count: str, problem: str) -> None:
    script = f'exec 3</dev/null; LISTEN_FDS={count} LISTEN_PID=$$ exec "$@"'
    command = ["bash", "-c", script, "bash", *COMMAND, "--port=0", f"--data={tmp_path / 'data'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert problem in done.stderr and "hint:" in done.stderr and "Traceback" not in done.stderr
