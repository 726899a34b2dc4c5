"""`atoll dev` in a real pseudo-terminal: its display, its keys, and the restored terminal at the end."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import socket
import subprocess
import termios
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.cli.dev_session import ATOLL, SECONDS, environment
from tests.cli.test_dev import family
from tests.running import alive, command_line

WORKER = """export default {
  fetch(request) {
    console.log("asked for", new URL(request.url).pathname);
    if (request.url.endsWith("/fail")) throw new TypeError("broken");
    return new Response("one");
  },
  scheduled(controller) {
    console.log("cron", controller.cron);
  },
};
"""
CONFIG = 'name = "app"\nmain = "worker.js"\ncompatibility_date = "2026-01-01"\n[triggers]\ncrons = ["0 0 1 1 *"]\n'
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Screen:
    def __init__(
        self,
        folder: Path,
        words: Sequence[str] = ("dev", "--port", "0"),
        program: Sequence[str] = (ATOLL,),
        **more: str,
    ) -> None:
        self.main, child = pty.openpty()
        self.before = termios.tcgetattr(self.main)
        self.process = subprocess.Popen(
            [*program, *words],
            cwd=folder,
            env={**environment(folder), "TERM": "xterm-256color", **more},
            stdin=child,
            stdout=child,
            stderr=child,
            preexec_fn=lambda: os.login_tty(child),  # its controlling terminal, as a shell sets it
        )
        os.close(child)
        self.raw = ""

    @property
    def text(self) -> str:
        return COLOURS.sub("", self.raw).replace("\r\n", "\n")

    def wait_for(self, pattern: str) -> re.Match[str]:
        deadline = time.monotonic() + SECONDS
        while True:
            found = re.search(pattern, self.text)
            if found is not None:
                return found
            assert time.monotonic() < deadline, self.text
            if select.select([self.main], [], [], 1.0)[0]:
                try:
                    self.raw += os.read(self.main, 65536).decode("utf-8", "replace")
                except OSError:
                    raise AssertionError(f"it ended:\n{self.text}") from None

    def read_rest(self) -> None:
        """The output up to its end."""
        try:
            while data := os.read(self.main, 65536):
                self.raw += data.decode("utf-8", "replace")
        except OSError:  # a terminal without a writer ends with this error
            pass

    def press(self, key: str) -> None:
        os.write(self.main, key.encode())


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    (tmp_path / "atoll.toml").write_text(CONFIG)
    (tmp_path / "worker.js").write_text(WORKER)
    screen = Screen(tmp_path)
    yield screen
    if screen.process.poll() is None:
        screen.process.send_signal(signal.SIGTERM)
        screen.process.wait(SECONDS)
    os.close(screen.main)


def test_what_a_developer_sees_and_presses(screen: Screen, tmp_path: Path) -> None:
    url = screen.wait_for(r"app is on (http://localhost:\d+/), ready in \d+ ms")[1]
    screen.wait_for("o open   r reload   t run crons   q quit")
    assert "\x1b[" in screen.raw
    with urllib.request.urlopen(url + "page") as response:
        assert response.read() == b"one"
    used = r"cpu \d+\.\d ms  wall \d+\.\d ms  memory \d+ MB"
    screen.wait_for(rf"  log   asked for /page\nGET /page  200  {used}  (warm|cold)\n")
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(url + "fail")
    error.value.close()
    screen.wait_for(r"GET /fail  500  exception .*\n  TypeError: broken\n    worker.js:4:46\n(.*\n){2}  > 4 \|")
    screen.press("t")
    screen.wait_for(r"  log   cron 0 0 1 1 \*\nscheduled CRON 0 0 1 1 \*")
    (tmp_path / "worker.js").write_text(WORKER.replace("one", "two"))
    screen.wait_for(r"  reloaded in \d+ ms")
    screen.press("r")
    screen.wait_for(r"  reloaded in \d+ ms\n(.*\n)*  reloaded in \d+ ms")
    (tmp_path / "worker.js").write_text("export default {{")
    screen.wait_for(r"\nerror: (.*\n)+  > 1 \| export default \{\{")
    screen.press("q")
    assert screen.process.wait(SECONDS) == 0
    assert termios.tcgetattr(screen.main)[3] == screen.before[3]  # echo and line mode are restored
    assert "Traceback" not in screen.text


def test_control_c_ends_dev_quietly_and_leaves_nothing_behind(screen: Screen, tmp_path: Path) -> None:
    port = int(screen.wait_for(r"http://localhost:(\d+)/, ready in")[1])
    processes = family(screen.process.pid)
    assert len(processes) >= 3  # the session, an engine and the reader of sources
    before = {path.name for path in tmp_path.iterdir()}
    screen.press("\x03")
    assert screen.process.wait(SECONDS) == 0
    assert "Traceback" not in screen.text and "Aborted" not in screen.text
    assert not [pid for pid in processes if alive(pid)]
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", port))
    assert {path.name for path in tmp_path.iterdir()} == before == {"atoll.toml", "worker.js", ".atoll"}
    assert not [path for path in (tmp_path / ".atoll").rglob("*") if path.name.endswith((".tmp", "-wal", ".sock"))]
    assert termios.tcgetattr(screen.main)[3] == screen.before[3]


def test_an_error_written_to_a_watched_file_is_shown_once(tmp_path: Path) -> None:
    """Otherwise `atoll dev > out.txt` in the project's folder would build forever."""
    (tmp_path / "atoll.toml").write_text(CONFIG)
    (tmp_path / "worker.js").write_text("export default {")
    out = tmp_path / "out.txt"
    with out.open("w") as file:
        process = subprocess.Popen(
            [ATOLL, "dev", "--port", "0"], cwd=tmp_path, env=environment(tmp_path), stdout=file, stderr=file
        )

    def wait_for(text: str) -> None:
        deadline = time.monotonic() + SECONDS
        while text not in out.read_text():
            assert process.poll() is None and time.monotonic() < deadline, out.read_text()
            time.sleep(0.02)

    try:
        wait_for("is on http://localhost")
        wait_for("Expected")
        (tmp_path / "unrelated.txt").write_text("a change that builds again")
        (tmp_path / "new.tmp").write_text(WORKER)
        (tmp_path / "new.tmp").rename(tmp_path / "worker.js")
        wait_for("reloaded")
        assert out.read_text().count("Expected") == 1
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(SECONDS)


def test_the_key_o_opens_a_browser_if_there_is_one(screen: Screen, tmp_path: Path) -> None:
    screen.wait_for("ready in")
    screen.press("o")
    screen.wait_for(r"no browser found: open http://localhost:\d+/ yourself")
    screen.press("q")
    assert screen.process.wait(SECONDS) == 0
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened.tmp; mv {tmp_path}/opened.tmp {tmp_path}/opened\n')
    browser.chmod(0o755)
    second = Screen(tmp_path, BROWSER=str(browser))
    try:
        url = second.wait_for(r"app is on (http://localhost:\d+/)")[1]
        second.press("o")
        deadline = time.monotonic() + SECONDS
        while not (tmp_path / "opened").exists():
            assert time.monotonic() < deadline, second.text
        assert (tmp_path / "opened").read_text() == f"{url}\n"
    finally:
        second.process.send_signal(signal.SIGTERM)
        second.process.wait(SECONDS)
        os.close(second.main)


def test_control_c_before_dev_serves_leaves_nothing_behind(screen: Screen, tmp_path: Path) -> None:
    """During imports, the build and the start of its engine."""
    deadline = time.monotonic() + SECONDS
    while len(processes := family(screen.process.pid)) < 2:
        assert time.monotonic() < deadline
    screen.press("\x03")
    assert screen.process.wait(SECONDS) in (0, 130)
    while [pid for pid in processes if alive(pid)]:
        assert time.monotonic() < deadline
    assert "Traceback" not in screen.text


def test_dev_reports_and_survives_a_crash_of_its_engine(screen: Screen) -> None:
    url = screen.wait_for(r"app is on (http://localhost:\d+/)")[1]
    for pid in family(screen.process.pid):
        if b"main.cjs" in command_line(pid):
            os.kill(pid, signal.SIGKILL)
    screen.wait_for(r"error: engine 1 ended: killed by signal 9; it restarts in \d")
    with urllib.request.urlopen(url, timeout=SECONDS) as response:
        assert response.read() == b"one"
    screen.wait_for(r"GET /  200  .* cold\n")
