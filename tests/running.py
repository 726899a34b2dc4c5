"""A real `atoll serve` for tests: started like a user's, called over HTTP, stopped by a signal."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GAVE_WAY = "another process serves"  # in the log of the old process
COMMAND = [str(Path(sys.executable).parent / "atoll"), "serve"]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes
    reason: str = ""

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


# Below the ports that the kernel gives to outgoing connections, and a range for each process of the test run, so that
# no one takes a port between the look at it here and its use.
LANE = int(os.environ.get("PYTEST_XDIST_WORKER", "gw9").removeprefix("gw"))
PORTS = itertools.cycle(range(12_000 + LANE * 2_000, 14_000 + LANE * 2_000))


def free_port() -> int:
    for port in PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("unreachable: the ports are a cycle")


class Atoll:
    def __init__(self, folder: Path, **settings: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = int(str(settings.pop("port", free_port())))
        self.settings = {"data": folder / "data", "engines": 2, **settings}
        self.process: subprocess.Popen[bytes] | None = None
        self.command = COMMAND
        self.environment: dict[str, str] | None = None  # None: that of this process
        self.pass_fds: tuple[int, ...] = ()
        self.start_new_session = False
        self.replaced: list[subprocess.Popen[bytes]] = []

    # --- life cycle ---

    def start(self) -> None:
        """Starts it and waits until it serves."""
        self.process = self.spawn()
        self.wait_until(self.is_healthy, 30)

    def spawn(self, *more: str) -> subprocess.Popen[bytes]:
        """Starts a process with its settings, and waits for nothing."""
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in self.settings.items()]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*self.command, f"--port={self.port}", *flags, *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                pass_fds=self.pass_fds,
                start_new_session=self.start_new_session,
            )

    def replace(self) -> None:
        """Starts a process that takes its place, and waits until that one serves. The old one is in `replaced`."""
        assert self.process is not None
        before = self.log().count(GAVE_WAY)
        fresh = self.spawn("--replace")
        self.wait_until(lambda: self.log().count(GAVE_WAY) > before or fresh.poll() is not None, 30)
        assert fresh.poll() is None, f"the new process ended:\n{self.log()}"
        self.replaced.append(self.process)
        self.process = fresh

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Sends it a signal and returns its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        for old in self.replaced:
            old.wait(60)
        return self.process.wait(40)

    def is_healthy(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"atoll serve ended:\n{self.log()}"
        try:
            return self.control("GET", "/health").status == 200
        except OSError:
            return False

    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def engines(self) -> list[int]:
        """The pids of its engines. Their launchers do not count: while one executes node it has no command line."""
        lines = {pid: command_line(pid) for pid in children(self.pid)}
        return [pid for pid, line in lines.items() if b"main.cjs" in line and b"launch.py" not in line]

    def memory_mb(self, pid: int | None = None) -> float:
        status = Path(f"/proc/{pid or self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    @staticmethod
    def wait_until(condition: Any, seconds: float = 10) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "the condition was not met in time"
            time.sleep(0.02)

    # --- requests ---

    def connect(self, timeout: float = 30) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def request(
        self, method: str, host: str, path: str = "/", body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {"Host": host, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read(), response.reason)
        finally:
            connection.close()

    @property
    def control_host(self) -> str:
        return f"localhost:{self.port}"

    def host(self, name: str) -> str:
        return f"{name}.localhost:{self.port}"

    def get(self, name: str, path: str = "/", headers: dict[str, str] | None = None) -> Answer:
        return self.request("GET", self.host(name), path, None, headers)

    def post(self, name: str, path: str = "/", body: Any = b"", headers: dict[str, str] | None = None) -> Answer:
        return self.request("POST", self.host(name), path, body, headers)

    def control(self, method: str, path: str, body: object = None) -> Answer:
        text = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        return self.request(method, f"localhost:{self.port}", path, text, headers)

    def deploy(self, name: str, script: str | None = None, **fields: object) -> dict[str, Any]:
        """Deploys a worker or a new version of it; the deploy must succeed."""
        body: dict[str, object] = {"name": name, **fields}
        if script is not None:
            body["script"] = script
        answer = self.control("POST", "/api/workers", body)
        if answer.status == 409:
            answer = self.control("PUT", f"/api/workers/{name}", body)
        assert answer.status in (200, 201), answer.text
        result: dict[str, Any] = answer.json
        return result

    def logs(self, name: str) -> list[dict[str, Any]]:
        """Invocation records, newest first."""
        answer = self.control("GET", f"/api/workers/{name}/logs").json
        records: list[dict[str, Any]] = answer["logs"] if isinstance(answer, dict) else answer
        return records

    def pool(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.control("GET", "/admin/pool").json
        return answer


def children(pid: int) -> list[int]:
    """Its child processes. /proc/PID/task/*/children is no source: it misses some while another child ends."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue  # it has just ended
            if int(parent) == pid:
                found.append(int(entry.name))
    return sorted(found)


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it has not started or has ended
        return False


class FairClock:
    """Seconds in which some processes have a core or need none: on a busy machine this clock is slower.

    A process that appears later counts from its start. Without the kernel's statistics it is plain time.
    """

    def __init__(self, pids: Callable[[], Iterable[int]]) -> None:
        self._pids = pids
        self._began = time.monotonic()
        self._before = {pid: waited(pid) for pid in pids()}

    @property
    def seconds(self) -> float:
        lost = sum(max(waited(pid) - self._before.get(pid, 0), 0) for pid in self._pids())
        return time.monotonic() - self._began - lost


def waited(pid: int) -> float:
    """Seconds for which the main thread of a process was ready to run but had no core."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0
