"""Runs a worker once, in Atoll or in workerd, and returns its answer."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Self

from bench.harness import WORKERD
from tests.running import Atoll, free_port

STATUS = ("pass", "fail", "timeout", "notrun", "precondition")
LIMITS = {"cpu_ms": 15_000, "wall_ms": 55_000, "memory_mb": 256, "subrequests": 10_000, "internal_subrequests": 10_000}
START_SECONDS = 30.0


@dataclass
class Outcome:
    """The result of one test file: how the harness ended, and the state and message of each test by name."""

    path: str
    status: str
    results: dict[str, tuple[str, str | None]]

    def passed(self, name: str) -> bool:
        return name in self.results and self.results[name][0] == "pass"

    @classmethod
    def of(cls, path: str, status: int, body: bytes) -> Outcome:
        if status != 200:
            return cls(path, f"error: {status} {body[:300].decode(errors='replace')}", {})
        found = json.loads(body)
        return cls(path, found["status"], {name: (STATUS[state], text) for name, state, text in found["results"]})


class InAtoll:
    """One node. Each test is deployed, called once and removed."""

    name = "Atoll"

    def __init__(self, wasm: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.atoll = Atoll(
            Path(self.folder.name), script_bytes=50_000_000, egress_allow="127.0.0.0/8,localhost,*.localhost,::1"
        )
        self.switches = {"allow_wasm_compile": wasm}
        self.numbers = count()

    def __enter__(self) -> Self:
        self.atoll.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.atoll.stop()
        self.folder.cleanup()

    def run(self, path: str, source: str) -> Outcome:
        name = f"wpt-{next(self.numbers)}"
        fields = {"name": name, "script": source, "limits": LIMITS, "switches": self.switches}
        answer = self.atoll.control("POST", "/api/workers", fields)
        if answer.status != 201:
            return Outcome(path, f"error: {answer.json['error']['message']}", {})
        try:
            answer = self.atoll.get(name)
        except (OSError, http.client.HTTPException) as error:
            return Outcome(path, f"error: {error!r}", {})
        finally:
            self.atoll.control("DELETE", f"/api/workers/{name}")
        return Outcome.of(path, answer.status, answer.body)


class InWorkerd(AbstractContextManager["InWorkerd"]):
    """A process for each test, with today's compatibility date."""

    name = "workerd"

    def __exit__(self, *_: object) -> None:
        pass

    @staticmethod
    def version() -> str:
        return subprocess.run([WORKERD, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]

    def run(self, path: str, source: str) -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            port = free_port()
            config = Path(folder) / "config.capnp"
            (Path(folder) / "test.js").write_text(source)
            config.write_text(
                'using Workerd = import "/workerd/workerd.capnp";\nconst config :Workerd.Config = (\n'
                '  services = [(name = "test", worker = (serviceWorkerScript = embed "test.js", '
                f'compatibilityDate = "{self.version()}")),\n'
                '    (name = "internet", network = (allow = ["public", "private", "local"]))],\n'
                f'  sockets = [(name = "http", address = "127.0.0.1:{port}", http = (), service = "test")]\n);\n'
            )
            with subprocess.Popen(
                [WORKERD, "serve", "--experimental", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            ) as process:
                try:
                    return Outcome.of(path, *ask(port, process))
                except (OSError, http.client.HTTPException) as error:
                    process.kill()
                    assert process.stderr is not None
                    told = process.stderr.read()[:300].decode(errors="replace")
                    return Outcome(path, f"error: {error!r} {told}", {})
                finally:
                    process.kill()


def ask(port: int, process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """Sends one GET as soon as the server listens."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), 1):
                break
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    try:
        connection.request("GET", "/", headers={"Host": "wpt.localhost"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def peer(name: str | None) -> AbstractContextManager[InWorkerd | None]:
    return InWorkerd() if name == "workerd" else nullcontext()
