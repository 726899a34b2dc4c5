"""Start, stop, restart, update: the work of an operator."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.running import COMMAND, Atoll, free_port

HELLO = 'export default { fetch() { return new Response("Hello!"); } }'


def test_workers_survive_a_restart(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll()
    before = atoll.deploy("kept", HELLO, env={"A": "1"}, routes=["kept.example.com/*"])
    assert atoll.stop() == 0
    atoll.start()
    assert atoll.get("kept").text == "Hello!"
    assert atoll.request("GET", "kept.example.com").text == "Hello!"
    after = atoll.control("GET", "/api/workers/kept").json
    assert {key: after[key] for key in ("id", "env", "created_at")} == {
        key: before[key] for key in ("id", "env", "created_at")
    }


def test_workers_survive_a_kill_nine(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll()
    atoll.deploy("kept", HELLO)
    atoll.stop(signal.SIGKILL)
    atoll.start()
    assert atoll.get("kept").text == "Hello!"


def test_sigterm_lets_calls_in_flight_finish_and_exits_with_zero(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll()
    atoll.deploy(
        "slow",
        "export default { async fetch() { await new Promise((r) => setTimeout(r, 700)); return new Response('done'); } }",
    )
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(atoll.get("slow").text))
    thread.start()
    atoll.wait_until(lambda: atoll.pool()["in_flight"] == 1)
    assert atoll.stop() == 0
    thread.join()
    assert answers == ["done"]
    left = {path.name for path in (atoll.folder / "data").iterdir()}
    assert not [name for name in left if name.endswith(".tmp") or "sock" in name], left


def test_a_drain_is_bounded(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(drain_seconds=0.5)
    atoll.deploy(
        "slow",
        "export default { async fetch() { await new Promise((r) => setTimeout(r, 20000)); return new Response('done'); } }",
    )
    client = atoll.connect()
    client.sendall(f"GET / HTTP/1.1\r\nHost: {atoll.host('slow')}\r\n\r\n".encode())
    atoll.wait_until(lambda: atoll.pool()["in_flight"] == 1)
    started = time.monotonic()
    assert atoll.stop() == 0
    assert time.monotonic() - started < 15, "the drain does not wait for the 20 s of the call"
    client.close()


def test_a_second_start_on_a_taken_port_fails_with_a_clear_error(
    new_atoll: Callable[..., Atoll], tmp_path: Path
) -> None:
    atoll = new_atoll()
    for data in (tmp_path / "other", atoll.folder / "data"):
        command = [*COMMAND, f"--port={atoll.port}", f"--data={data}"]
        second = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert second.returncode == 1
        assert f"error: port {atoll.port} is taken" in second.stderr and str(atoll.pid) in second.stderr
        assert "hint:" in second.stderr and "Traceback" not in second.stderr
    assert atoll.is_healthy()


def test_a_second_start_on_the_same_folder_fails_with_a_clear_error(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll()
    command = [*COMMAND, "--port=0", f"--data={atoll.folder / 'data'}"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert second.returncode == 1
    assert "data folder" in second.stderr and "hint:" in second.stderr


def test_an_example_that_this_node_refuses_is_an_error_with_a_hint(tmp_path: Path) -> None:
    """The example's host is a control host here, so no worker may have it."""
    flags = ["--port=0", f"--data={tmp_path / 'data'}", "--engines=1", "--control-hosts=hello-world.localhost"]
    done = subprocess.run([*COMMAND, "--example", *flags], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "error: the example hello-world was refused" in done.stderr and "hint:" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_node_answers_only_when_its_example_is_there(tmp_path: Path) -> None:
    port = free_port()
    flags = [f"--port={port}", f"--data={tmp_path / 'data'}", "--engines=1", "--example"]
    request = f"GET / HTTP/1.1\r\nHost: hello-world.localhost:{port}\r\n\r\n".encode()
    with subprocess.Popen([*COMMAND, *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            while True:  # the earliest client that is let in
                try:
                    client = socket.create_connection(("127.0.0.1", port), 30)
                    break
                except ConnectionRefusedError:
                    assert process.poll() is None
            with client:
                client.sendall(request)
                assert client.recv(100).startswith(b"HTTP/1.1 200 OK")
        finally:
            process.terminate()


def test_a_worker_cannot_take_a_host_of_the_node(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1, s3_host="off")
    script = "export default { fetch: () => new Response('mine') }"
    atoll.deploy("s3", script)
    assert atoll.get("s3").text == "mine"
    atoll.stop()
    del atoll.settings["s3_host"]
    atoll.start()  # the operator turns the endpoint on
    assert "the worker s3 does not answer on s3.localhost: the node has that host" in atoll.log()
    assert atoll.control("PUT", "/api/workers/s3", {"script": script}).status == 200  # it may have routes
    assert atoll.control("DELETE", "/api/workers/s3").status in (200, 204)
    refused = atoll.control("POST", "/api/workers", {"name": "s3", "script": script})
    assert refused.status == 400 and "this node answers on s3.localhost itself" in refused.json["error"]["message"]
    assert "choose another name" in refused.json["error"]["hint"]


def test_an_update_under_load_drops_no_request_and_mixes_no_versions(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll()

    def version(n: int) -> dict[str, object]:
        main = (
            'import { n } from "./n.js"; const mine = n;'
            "export default { async fetch(r, env) { const a = mine; await new Promise((r) => setTimeout(r, 1));"
            "return Response.json([a, n, env.N]); } }"
        )
        return {"main": "main.js", "modules": {"main.js": main, "n.js": f"export const n = {n};"}, "env": {"N": n}}

    atoll.deploy("switch", **version(0))
    done = threading.Event()
    seen: list[list[int]] = []
    bad: list[str] = []

    def load() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", atoll.port, timeout=30)
        while not done.is_set():
            connection.request("GET", "/", headers={"Host": atoll.host("switch")})
            response = connection.getresponse()
            body = response.read()
            if response.status != 200 or len(set(eval(body))) != 1:  # a list of three equal numbers
                bad.append(f"{response.status} {body[:100]!r}")
            else:
                seen.append(eval(body))
        connection.close()

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for n in range(1, 16):
        assert atoll.control("PUT", "/api/workers/switch", version(n)).status == 200
        assert atoll.get("switch").json == [n, n, n], "after the answer to the deploy, the new version serves"
    done.set()
    for thread in threads:
        thread.join()
    assert bad == []
    assert len({row[0] for row in seen}) > 5


def test_idle_workers_are_unloaded_and_reloaded_on_demand(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(idle_seconds=0.5)
    atoll.deploy("idle", "let n = 0; export default { fetch() { return new Response(String(++n)); } }")
    assert atoll.get("idle").text == "1"
    atoll.wait_until(lambda: atoll.pool()["cached"] == 0)
    assert atoll.get("idle").text == "1", "the isolate is new"


def test_many_workers_share_few_isolates(new_atoll: Callable[..., Atoll]) -> None:
    """A short run of bench/density.py: least recently used workers make room, and all answers are correct."""
    atoll = new_atoll(max_loaded=20)
    for i in range(100):
        atoll.deploy(f"w{i}", f"export default {{ fetch() {{ return new Response('{i}'); }} }}")
    for i in [*range(100), *range(99, -1, -7)]:
        assert atoll.get(f"w{i}").text == str(i)
    pool = atoll.pool()
    assert pool["cached"] <= 20 and pool["evictions"] >= 80


def test_nothing_leaks_when_workers_come_and_go(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1)
    [engine] = atoll.engines()

    def churn(count: int) -> float:
        for _ in range(count):
            atoll.deploy("churn", HELLO)
            atoll.get("churn")
        time.sleep(0.3)
        return atoll.memory_mb(engine)

    settled = churn(60)
    grown = churn(120) - settled
    assert grown < 25, f"the engine grew by {grown:.0f} MB over 120 deploys"
