"""Chromium for tests: one page, driven over its debugging socket. Import the fixtures `browser` and `tab`."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.debian import require
from tests.running import free_port

SECONDS = 30
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> str:
    return require("chromium", *BROWSERS)


class PageLeft(Exception):
    """The browser went to another page before the one that was asked had answered."""


class Tab:
    """A page of a headless browser, driven over its debugging socket by a minimal WebSocket client."""

    def __init__(self, browser: str, folder: Path) -> None:
        port = free_port()
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",  # it would look up hosts of its maker
            "--disable-component-update",
            "--disable-sync",
        ]
        self.process = subprocess.Popen(
            [
                browser,
                *flags,
                f"--user-data-dir={folder}",
                f"--remote-debugging-port={port}",
                "--window-size=1000,700",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.number = 0
        self.events: list[dict[str, Any]] = []  # what the browser told without being asked
        target = self._target(port)
        path = target.split(str(port), 1)[1]
        self.socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        self.socket.sendall(f"{head}Sec-WebSocket-Key: {'A' * 22}==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        self.buffer = self.buffer.split(b"\r\n\r\n", 1)[1]

    def _target(self, port: int) -> str:
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as response:
                    pages = [page for page in json.load(response) if page["type"] == "page"]
                    if pages:
                        return str(pages[0]["webSocketDebuggerUrl"])
            except OSError:
                pass
            assert time.monotonic() < deadline, "the browser does not start"

    def send(self, method: str, **params: Any) -> Any:
        self.number += 1
        data = json.dumps({"id": self.number, "method": method, "params": params}).encode()
        if len(data) < 126:
            size = bytes([0x80 | len(data)])
        else:
            size = (
                b"\xfe" + len(data).to_bytes(2, "big")
                if len(data) < 1 << 16
                else b"\xff" + len(data).to_bytes(8, "big")
            )
        self.socket.sendall(b"\x81" + size + bytes(4) + data)  # a mask of zeros
        while True:
            answer = json.loads(self._frame())
            if answer.get("id") == self.number:
                if "navigated or closed" in str(answer.get("error")):
                    raise PageLeft(method)
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def _frame(self) -> bytes:
        head = self._take(2)
        size = head[1] & 127
        if size >= 126:
            size = int.from_bytes(self._take(2 if size == 126 else 8), "big")
        body = self._take(size)
        return body if head[0] & 0x80 else body + self._frame()

    def _take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            self.buffer += self.socket.recv(65536)
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is awaited."""
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def text(self) -> str:
        return str(self.run("document.body?.innerText ?? ''"))

    def wait_until(self, script: str) -> Any:
        """Wait until an expression in the page is true, and return its value."""
        deadline = time.monotonic() + SECONDS
        while not (value := self._run_unless_left(script)):
            assert time.monotonic() < deadline, (script, self.text())
            time.sleep(0.02)
        return value

    def _run_unless_left(self, script: str) -> Any:
        try:
            return self.run(script)
        except PageLeft:
            return None

    def wait_for(self, words: str) -> str:
        deadline = time.monotonic() + SECONDS
        while words not in (text := self.text()):
            assert time.monotonic() < deadline, text
            time.sleep(0.02)
        return text

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(SECONDS)


@pytest.fixture
def tab(browser: str, tmp_path: Path) -> Iterator[Tab]:
    tab = Tab(browser, tmp_path / "browser")
    yield tab
    tab.close()
