"""The access log of a real node: which requests get a line, where lines go, and how an operator turns them on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.raw_websocket import handshake
from tests.running import Atoll

WORKER = """export default { async fetch(request) {
  const { pathname } = new URL(request.url);
  if (pathname === "/stream") {
    const { readable, writable } = new IdentityTransformStream();
    const writer = writable.getWriter();
    (async () => { for (let i = 0; i < 4; i++) await writer.write(new Uint8Array(1000)); await writer.close(); })();
    return new Response(readable);
  }
  if (pathname === "/hang") await scheduler.wait(20_000);
  if (pathname === "/throw") throw new Error("broken");
  if (request.headers.get("Upgrade") === "websocket") {
    const [client, server] = Object.values(new WebSocketPair());
    server.accept();
    return new Response(null, { status: 101, webSocket: client });
  }
  return new Response("hello");
} }"""


def entries(path: Path, count: int) -> list[dict[str, Any]]:
    """The lines of the file, once there are so many."""

    def read() -> list[str]:
        return path.read_text().splitlines() if path.exists() else []

    Atoll.wait_until(lambda: len(read()) >= count, 20)
    return [json.loads(line) for line in read()]


def test_each_request_gets_a_line_with_what_became_of_it(new_atoll: Callable[..., Atoll], tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    atoll = new_atoll(engines=1, access_log=path, access_log_format="json")
    atoll.deploy("told", WORKER)
    assert atoll.get("told", "/a?b=c", {"User-Agent": "tester", "Referer": "http://r.test/"}).text == "hello"
    assert len(atoll.get("told", "/stream").body) == 4000
    assert atoll.get("told", "/throw").status == 500
    assert atoll.request("HEAD", atoll.host("told"), "/head").status == 200
    assert atoll.get("nobody", "/").status == 404
    with atoll.connect() as broken:
        broken.sendall(b"GET / HTTP/9.9\r\nHost: told.localhost\r\n\r\n")
        assert broken.recv(4096).startswith(b"HTTP/1.1 505")
    with atoll.connect() as left:
        left.sendall(b"GET /hang HTTP/1.1\r\nHost: told.localhost\r\n\r\n")
        Atoll.wait_until(lambda: atoll.control("GET", "/admin/pool").json["in_flight"] > 0)
    handshake(atoll, "told").close()
    Atoll.wait_until(lambda: "/hang" in path.read_text() and '"status":101' in path.read_text())
    found = entries(path, 8)
    by_path = {each["path"]: each for each in found if each["host"].startswith("told.") or not each["host"]}
    first = by_path["/a?b=c"]
    assert first["status"] == 200 and first["bytes"] == 5 and first["worker"] == "told" and first["complete"]
    assert first["user_agent"] == "tester" and first["referer"] == "http://r.test/" and first["client"] == "127.0.0.1"
    assert 0 < first["duration_ms"] < 20_000 and first["tenant"] == "default" and first["version"]
    assert by_path["/stream"]["bytes"] == 4000 and by_path["/stream"]["complete"]
    assert by_path["/throw"]["status"] == 500
    assert by_path["/head"]["bytes"] == 0
    assert by_path["/hang"]["status"] == 499 and not by_path["/hang"]["complete"]
    assert by_path["/"]["status"] == 101
    unknown = next(each for each in found if each["host"].startswith("nobody."))
    assert unknown["status"] == 404 and unknown["worker"] == ""
    assert by_path["GET / HTTP/9.9"]["status"] == 505 and by_path["GET / HTTP/9.9"]["method"] == ""
    control = next(each for each in found if each["path"] == "/api/workers")
    assert control["method"] == "POST" and control["worker"] == "" and control["status"] in (200, 201)


def test_static_assets_have_lines_too(new_atoll: Callable[..., Atoll], tmp_path: Path) -> None:
    path, site = tmp_path / "access.log", tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<p>small")
    (site / "large.bin").write_bytes(b"x" * 3_000_000)
    (tmp_path / "wrangler.toml").write_text(
        'name = "filed"\ncompatibility_date = "2026-01-01"\n[assets]\ndirectory = "site"\n'
    )
    atoll = new_atoll(engines=1, access_log=path, access_log_format="json")
    command = [atoll.command[0], "deploy", "--api", f"http://localhost:{atoll.port}"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    for _ in range(3):  # the second answer is kept in memory
        assert atoll.get("filed", "/").text == "<p>small"
    assert len(atoll.get("filed", "/large.bin").body) == 3_000_000
    Atoll.wait_until(lambda: "/large.bin" in path.read_text())
    found = [each for each in entries(path, 4) if each["worker"] == "filed"]
    assert [each["bytes"] for each in found if each["path"] == "/"] == [8, 8, 8]
    assert [each["bytes"] for each in found if each["path"] == "/large.bin"] == [3_000_000]


def test_the_log_is_turned_on_reopened_and_turned_off_without_a_restart(
    new_atoll: Callable[..., Atoll], tmp_path: Path
) -> None:
    path, config = tmp_path / "access.log", tmp_path / "atoll.toml"
    config.write_text("[node]\n")
    atoll = new_atoll(engines=1, config=config)
    atoll.deploy("later", WORKER)
    atoll.get("later", "/before")
    config.write_text(f'[node]\naccess_log = "{path}"\n')
    os.kill(atoll.pid, signal.SIGHUP)
    Atoll.wait_until(lambda: "handover: reloaded: access_log" in atoll.log())
    atoll.get("later", "/during")
    Atoll.wait_until(lambda: '"GET /during HTTP/1.1" 200 5 "-" "' in path.read_text())
    path.rename(tmp_path / "moved")
    os.kill(atoll.pid, signal.SIGUSR1)
    Atoll.wait_until(path.exists)
    config.write_text('[node]\naccess_log = "/nowhere/access.log"\n')
    os.kill(atoll.pid, signal.SIGHUP)
    Atoll.wait_until(lambda: "access_log '/nowhere/access.log' cannot be opened" in atoll.log())
    atoll.get("later", "/still")
    Atoll.wait_until(lambda: "/still" in path.read_text())
    config.write_text("[node]\n")
    os.kill(atoll.pid, signal.SIGHUP)
    Atoll.wait_until(lambda: atoll.log().count("handover: reloaded: access_log") == 2)
    atoll.get("later", "/after")
    assert atoll.stop() == 0
    assert "/before" not in path.read_text() and "/after" not in path.read_text()
    assert "/during" in (tmp_path / "moved").read_text()


def test_lines_go_to_standard_output_and_none_is_lost_at_the_end(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1, access_log="stdout", node_log_format="json", node_log_level="warning")
    atoll.deploy("out", WORKER)
    for number in range(50):
        atoll.get("out", f"/{number}")
    assert atoll.stop() == 0
    lines = [line for line in atoll.log().splitlines() if '"GET /' in line]
    assert sum(f'"GET /{number} HTTP/1.1" 200 5 ' in line for line in lines for number in range(50)) == 50


def test_a_file_that_cannot_be_opened_refuses_the_start(new_atoll: Callable[..., Atoll], tmp_path: Path) -> None:
    ran = subprocess.run(
        [str(Atoll(tmp_path / "a").command[0]), "serve", "--port", "0", "--data", tmp_path / "data",
         "--access-log", tmp_path / "none" / "access.log"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 1 and "No such file or directory" in ran.stderr
    assert "hint: name a file in a folder that exists" in ran.stderr and "Traceback" not in ran.stderr


def test_the_log_of_the_node_can_be_json(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1, node_log_format="json")
    os.kill(atoll.pid, signal.SIGHUP)
    Atoll.wait_until(lambda: "reloaded" in atoll.log())
    found = [json.loads(line) for line in atoll.log().splitlines() if line.startswith('{"time"')]
    reloaded = next(each for each in found if each["message"].startswith("reloaded: no setting"))
    assert reloaded["level"] == "info" and reloaded["logger"] == "atoll.handover"
    assert reloaded["time"].endswith("Z") and set(reloaded) == {"time", "level", "logger", "message"}
