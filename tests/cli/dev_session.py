"""A real `atoll dev` for tests: a process that reports events as JSON, so that tests wait for events."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.project.conftest import ESBUILD, ROOT

ATOLL = str(Path(sys.executable).parent / "atoll")
SECONDS = 60


def environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(ROOT / "build/test-cache"),
        "ATOLL_ESBUILD": str(ESBUILD),
        "PATH": os.environ["PATH"],
    }


class Dev:
    def __init__(self, folder: Path, *words: str, program: Sequence[str] = (ATOLL,)) -> None:
        self.folder = folder
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.seen: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [*program, "dev", "--json", *([] if "--port" in words else ["--port", "0"]), *words],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.stderr: list[str] = []
        self._readers = [
            threading.Thread(target=self._read_events, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        try:
            self.url = str(self.wait_for("ready")["url"])
        except AssertionError:
            self.stop()
            raise AssertionError("".join(self.stderr)) from None

    def _read_events(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.put(json.loads(line))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.stderr += self.process.stderr

    def wait_for(self, *names: str) -> dict[str, Any]:
        """The next event with one of these names."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                event = self.events.get(timeout=max(0.01, min(1.0, deadline - time.monotonic())))
            except queue.Empty:
                assert self.process.poll() is None, "".join(self.stderr)
                assert time.monotonic() < deadline, f"no {names}; seen {self.seen}"
                continue
            self.seen.append(event)
            if event["event"] in names:
                return event

    def take_events(self) -> None:
        """The events so far."""
        while not self.events.empty():
            self.seen.append(self.events.get())

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1].strip("/"))

    def save(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def get(self, path: str = "", accept: str = "*/*", host: str = "") -> tuple[int, str]:
        headers = {"Accept": accept} | ({"Host": host} if host else {})
        request = urllib.request.Request(self.url + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def stop(self, number: int = signal.SIGINT) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(SECONDS)
        for reader in self._readers:
            reader.join(SECONDS)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        return code


def deaf(module: str = "atoll.app", number: signal.Signals = signal.SIGINT) -> str:
    """A sitecustomize.py that sends a signal during the import of a module, where errors are printed and ignored."""
    return f"""
import os, sys

class Deaf:
    def __del__(self):
        os.kill(os.getpid(), {number.value})

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            Deaf()

sys.meta_path.insert(0, Finder())
"""
