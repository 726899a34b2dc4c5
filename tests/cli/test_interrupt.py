"""Ctrl-C, SIGTERM and SIGHUP before a command serves: none is lost, no traceback, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.dev_session import ATOLL, SECONDS, deaf, environment
from tests.cli.test_dev import family
from tests.cli.test_terminal import CONFIG, WORKER, Screen
from tests.running import alive, command_line

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "atoll.toml").write_text(CONFIG)
    (tmp_path / "worker.js").write_text(WORKER)
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ATOLL, *words],
        cwd=folder,
        env={**environment(folder), "PYTHONPATH": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.mark.parametrize("number", SIGNALS)
def test_dev_keeps_a_signal_that_arrives_during_an_import(project: Path, number: signal.Signals) -> None:
    (project / "sitecustomize.py").write_text(deaf(number=number))
    ran = run(project, "dev", "--port", "0")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@pytest.mark.parametrize("number", SIGNALS)
def test_serve_keeps_a_signal_that_arrives_during_an_import(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "sitecustomize.py").write_text(deaf(number=number))
    ran = run(tmp_path, "serve", "--port", "0", "--data", "data")
    assert (ran.returncode, ran.stdout, ran.stderr) == (130 if number == signal.SIGINT else 0, "", "")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("module", ["click", "atoll.cli.talk", "atoll.cli.dev.command"])
def test_control_c_before_a_command_is_imported_ends_it_silently(project: Path, module: str) -> None:
    (project / "sitecustomize.py").write_text(deaf(module))
    ran = run(project, "dev", "--port", "0")
    assert (ran.returncode, ran.stdout, ran.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("number", SIGNALS)
def test_an_endless_build_step_is_interrupted(project: Path, number: signal.Signals) -> None:
    """The processes that it started end too."""
    step = "sh -c 'echo $$ > step.tmp; mv step.tmp step; exec sleep 1000'; true"
    with (project / "atoll.toml").open("a") as config:
        config.write(f'[build]\ncommand = """{step}"""\n')
    dev = subprocess.Popen(
        [ATOLL, "dev", "--port", "0"],
        cwd=project,
        env=environment(project),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until((project / "step").exists)
        dev.send_signal(number)
        said = dev.communicate(timeout=SECONDS)
    finally:
        dev.kill()
        dev.wait()
    assert "error" not in "".join(said) and "Traceback" not in "".join(said)
    assert dev.returncode == 0
    assert not alive(int((project / "step").read_text()))


def test_closing_the_terminal_stops_a_node(tmp_path: Path) -> None:
    screen = Screen(tmp_path, words=("serve", "--port", "0", "--data", "data"))
    try:
        screen.wait_for(r"http://localhost:\d+")
        os.close(screen.main)
        assert screen.process.wait(SECONDS) == 0
    finally:
        screen.process.kill()
        screen.process.wait()
    assert nothing_temporary(tmp_path)


def test_closing_the_terminal_does_not_stop_a_node_that_ignores_it(tmp_path: Path) -> None:
    """As with `nohup`, which sends the output to a file too."""
    ignoring = ("sh", "-c", 'trap "" HUP; exec "$0" "$@" > out 2>&1', ATOLL)
    screen = Screen(tmp_path, words=("serve", "--port", "0", "--data", "data"), program=ignoring)
    try:
        wait_until(lambda: (tmp_path / "out").exists() and "http://localhost:" in (tmp_path / "out").read_text())
        os.close(screen.main)
        with pytest.raises(subprocess.TimeoutExpired):
            screen.process.wait(1)
        screen.process.send_signal(signal.SIGTERM)
        assert screen.process.wait(SECONDS) == 0
    finally:
        screen.process.kill()
        screen.process.wait()
    assert nothing_temporary(tmp_path)


def nothing_temporary(folder: Path) -> bool:
    return not [path for path in (folder / "data").rglob("*") if path.name.endswith((".tmp", "-wal", ".sock"))]


def test_control_c_during_the_snapshot_build_is_not_an_error(tmp_path: Path) -> None:
    screen = Screen(tmp_path, words=("serve", "--port", "0", "--data", "data"))
    try:
        wait_until(lambda: any(b"\0snapshot\0" in command_line(pid) for pid in family(screen.process.pid)))
        screen.press("\x03")
        screen.read_rest()
        assert screen.process.wait(SECONDS) == 0
        assert "error" not in screen.text and "Traceback" not in screen.text
    finally:
        screen.process.kill()
        os.close(screen.main)
