"""The README's tour, word for word: the commands work at the first try, in an empty home and in this order.

The test runs in its own network namespace, so that the ports in the tour are free.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.dev_session import SECONDS
from tests.project.conftest import ROOT

# Commands that keep running, each in its own terminal, and their output when they are ready.
STAYING = {"atoll dev": "ready in", "atoll serve": "is serving on", "atoll tail": "listening to"}
LOOPBACK_UP = """
import fcntl, socket, struct
with socket.socket() as probe:
    fcntl.ioctl(probe, 0x8914, struct.pack("16sh", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running
"""
PRIVATE_NETWORK = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]


def steps() -> list[tuple[str, str]]:
    """The commands of the tour, each with the output shown below it."""
    tour = re.search(r"^## A tour\n(.*?)^## ", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert tour is not None
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", tour[1], re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            else:
                command, output = found[-1]
                found[-1] = (command, output + line + "\n")
    return found


class User:
    """Types commands in an empty home; a command that keeps running gets its own terminal."""

    def __init__(self, home: Path) -> None:
        self.folder = home
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.env = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8"}
        self.terminals: list[subprocess.Popen[bytes]] = []

    def types(self, command: str, wanted: str) -> None:
        if command.startswith("cd "):
            self.folder /= command[3:]
        elif ready := next((words for start, words in STAYING.items() if command.startswith(start)), None):
            self.starts(command, ready)
        else:
            self.runs(command, wanted)

    def starts(self, command: str, ready: str) -> None:
        log = self.folder / f"../{command.split()[1]}.log"
        with log.open("wb") as output:
            terminal = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.env, stdout=output, stderr=output,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.terminals.append(terminal)
        deadline = time.monotonic() + SECONDS
        while ready not in (said := log.read_text()):
            assert terminal.poll() is None and time.monotonic() < deadline, f"$ {command}\n{said}"
            time.sleep(0.02)

    def runs(self, command: str, wanted: str) -> None:
        """The command must succeed and print what the README shows; a saved change may take a moment."""
        deadline = time.monotonic() + SECONDS
        while True:
            ran = subprocess.run(
                ["bash", "-c", command], cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
            )
            if ran.returncode == 0 and (not wanted or ran.stdout.strip() == wanted.strip()):
                return
            again = command.startswith("curl") and time.monotonic() < deadline
            assert again, f"$ {command}\n{ran.stdout}{ran.stderr}\nwanted:\n{wanted}"

    def leaves(self) -> None:
        for terminal in reversed(self.terminals):
            terminal.send_signal(signal.SIGINT)
            terminal.wait(SECONDS)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the tour uses curl")
def test_the_tour_of_the_readme_works_as_written(tmp_path: Path) -> None:
    if os.environ.get("ATOLL_TOUR") != "inside":
        probe = subprocess.run([*PRIVATE_NETWORK, "true"], capture_output=True, check=False)
        if probe.returncode != 0:
            pytest.skip("no network of its own can be made here, and the ports of the tour may be taken")
        again = f"exec {sys.executable} -m pytest -q -x -p no:cacheprovider {__file__}"
        inside = f"{sys.executable} -c '{LOOPBACK_UP}' && {again}"
        ran = subprocess.run(
            [*PRIVATE_NETWORK, "bash", "-c", inside],
            cwd=ROOT,
            env={**os.environ, "ATOLL_TOUR": "inside"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout[-4000:]
        return
    user = User(tmp_path)
    try:
        for command, wanted in steps():
            user.types(command, wanted)
    finally:
        user.leaves()
    assert (tmp_path / "tail.log").read_text().count("GET http://hello.localhost:8080/?name=Ada") == 2
    assert "cpu " in (tmp_path / "dev.log").read_text()


def test_the_tour_has_every_step_of_the_inner_and_the_outer_loop() -> None:
    words = {command.split()[1] for command, _ in steps() if command.startswith("atoll ")}
    assert {"init", "dev", "serve", "profile", "deploy", "tail", "versions", "rollback", "logs"} <= words
