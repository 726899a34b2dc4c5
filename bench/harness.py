"""The servers under test: real process trees that start with their workers and stop at the end of the `with` block."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.running import children

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / "build/peers/node_modules"
WORKERD = PEERS / "@cloudflare/workerd-linux-64/bin/workerd"
START_SECONDS = 60.0


class BenchError(Exception):
    """A server did not start or gave a wrong answer, so its numbers are meaningless."""


def script(name: str) -> str:
    return (HERE / "workers" / f"{name}.js").read_text()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fetch(
    port: int, host: str, path: str = "/", *, method: str = "GET", body: bytes | None = None, timeout: float = 30
) -> tuple[int, bytes]:
    """Sends one request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, body, {"Host": host})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


class Server:
    """One server process and its children, on a port of 127.0.0.1."""

    name = ""

    def __init__(self, workers: Mapping[str, str]) -> None:
        self.workers = workers
        self.port = free_port()
        self.folder = tempfile.TemporaryDirectory(prefix="atoll-bench-")
        self.log = Path(self.folder.name) / "log.txt"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.folder.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self.folder.cleanup()

    def start_process(self) -> None:
        """Start the server without waiting for it."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment(),
                cwd=self.folder.name, start_new_session=True,
            )  # fmt: skip

    def start(self) -> None:
        self.start_process()
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                tail = self.log.read_text(errors="replace")[-2000:]
                self.stop()
                raise BenchError(f"{self.name} did not start:\n{tail}")
            time.sleep(0.02)

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            print(f"warning: {self.name} did not stop when asked to", file=sys.stderr)
        self.process = None

    def is_ready(self) -> bool:
        try:
            fetch(self.port, "localhost", timeout=5)
        except OSError:
            return False
        return True

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def address(self, worker: str) -> tuple[int, str]:
        """The port and the Host header that reach a worker."""
        return self.port, f"{worker}.localhost"

    def expect(self, worker: str, wanted: bytes, path: str = "/", *, body: bytes | None = None) -> None:
        """Fails unless the worker gives this answer: the speed of wrong answers is meaningless."""
        port, host = self.address(worker)
        status, got = fetch(port, host, path, method="GET" if body is None else "POST", body=body)
        if status != 200 or got != wanted:
            raise BenchError(f"{self.name} answered {worker} with {status} {got[:200]!r}, not {wanted[:200]!r}")

    def pids(self) -> list[int]:
        """The server and all its descendants, parents first."""
        assert self.process is not None
        found = [self.process.pid]
        for pid in found:
            found += children(pid)
        return found

    def rss(self) -> int:
        """Resident bytes of the whole tree."""
        return sum(rss_of(pid) for pid in self.pids())


def rss_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def pss_of(pids: Iterable[int]) -> int:
    """Bytes of memory of the processes. A page that several processes share counts in parts."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:  # it ended
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) * 1024
    return total


def first_answer(server: Server, worker: str, wanted: bytes) -> float:
    """Start a server; the seconds from there to the first answer of a worker. Clients may connect early and wait."""
    began = time.monotonic()
    server.start_process()
    assert server.process is not None
    while server.process.poll() is None:
        port, host = server.address(worker)
        try:
            status, body = fetch(port, host)
        except OSError:
            time.sleep(0.002)
            continue
        if (status, body) != (200, wanted):
            raise BenchError(f"{server.name} answered {worker} with {status} {body[:200]!r}")
        return time.monotonic() - began
    raise BenchError(f"{server.name} did not start:\n{server.log.read_text(errors='replace')[-2000:]}")


class Atoll(Server):
    """`atoll serve` with its own data folder; workers are deployed over its HTTP API."""

    name = "atoll"
    program = str(Path(sys.executable).parent / "atoll")

    def __init__(self, workers: Mapping[str, str], **settings: float) -> None:
        super().__init__(workers)
        self.settings = settings

    def older(self, program: str) -> Self:
        """Makes this the older installation whose `atoll` command is given."""
        self.name, self.program = "before", program
        return self

    def command(self) -> list[str]:
        data = str(Path(self.folder.name) / "data")
        return [self.program, "serve", "--port", str(self.port), "--data", data]

    def environment(self) -> dict[str, str]:
        # An installed Atoll has its bytecode on disk: without it a start takes twice as long.
        kept = {key: value for key, value in os.environ.items() if not key.startswith("ATOLL_")}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        return kept | {f"ATOLL_{key.upper()}": f"{value:g}" for key, value in self.settings.items()}

    def is_ready(self) -> bool:
        try:
            return fetch(self.port, "localhost", "/api/workers", timeout=5)[0] == 200
        except OSError:
            return False

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self.deploy(self.workers)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def deploy(self, workers: Mapping[str, str], *, tenant: str = "", **fields: Any) -> None:
        for name, source in workers.items():
            self.post("/api/workers", {"name": name, "script": source, **fields}, tenant)

    def make_tenant(self, name: str) -> None:
        self.post("/api/tenants", {"name": name})

    def post(self, path: str, fields: Mapping[str, Any], tenant: str = "") -> None:
        """Sends one request to the control API, as an operator acting for a tenant."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Content-Type": "application/json"} | ({"X-Atoll-Tenant": tenant} if tenant else {})
        connection.request("POST", path, json.dumps(fields).encode(), headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        if response.status not in (200, 201):
            name = fields.get("name", path)
            raise BenchError(f"atoll refused to make {name}: {response.status} {answer.decode(errors='replace')}")

    def restart(self) -> None:
        """Stops and starts on the same data: every worker is stored, and none is loaded until its first request."""
        self.stop()
        (Path(self.folder.name) / "data" / "recent.json").unlink(missing_ok=True)
        self.start()

    def pool(self) -> dict[str, Any]:
        """The answer of GET /admin/pool; `cached` is the number of loaded workers."""
        status, answer = fetch(self.port, "localhost", "/admin/pool")
        found: dict[str, Any] = json.loads(answer) if status == 200 else {}
        return found

    def engines(self) -> list[int]:
        """The engine processes: node running the engine's main.cjs."""
        return [pid for pid in self.pids()[1:] if "main.cjs" in command_line(pid)]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


class RawEcho(Server):
    """uvloop and httptools with nothing behind them: the upper bound for any Python server."""

    name = "raw"

    def __init__(self) -> None:
        super().__init__({})

    def command(self) -> list[str]:
        return [sys.executable, str(HERE / "raw_echo.py"), str(self.port)]

    def expect(self, worker: str, wanted: bytes, path: str = "/", *, body: bytes | None = None) -> None:
        """It reads every request completely and always gives the same answer."""


class Workerd(Server):
    """workerd from npm, one socket per worker; with `routed`, one socket and a worker that routes by host."""

    name = "workerd"

    def __init__(self, workers: Mapping[str, str], *, routed: bool = False) -> None:
        super().__init__(workers)
        self.routed = routed
        self.ports = {name: self.port if routed else free_port() for name in workers}
        if not routed:
            self.port = next(iter(self.ports.values()))

    def address(self, worker: str) -> tuple[int, str]:
        return self.ports[worker], f"{worker}.localhost"

    def command(self) -> list[str]:
        folder = Path(self.folder.name)
        services = [self.service(name, source) for name, source in self.workers.items()]
        sockets = [self.socket(name, port, name) for name, port in self.ports.items()]
        if self.routed:
            bindings = ", ".join(f'(name = "{name}", service = "{name}")' for name in self.workers)
            services.append(self.service("router", script("router"), f", bindings = [{bindings}]"))
            sockets = [self.socket("http", self.port, "router")]
        config = folder / "config.capnp"
        config.write_text(
            'using Workerd = import "/workerd/workerd.capnp";\n'
            f"const config :Workerd.Config = (\n  services = [{', '.join(services)}],\n"
            f"  sockets = [{', '.join(sockets)}]\n);\n"
        )
        return [str(WORKERD), "serve", str(config)]

    def service(self, name: str, source: str, more: str = "") -> str:
        (Path(self.folder.name) / f"{name}.js").write_text(source)
        module = f'(name = "worker", esModule = embed "{name}.js")'
        return f'(name = "{name}", worker = (modules = [{module}], compatibilityDate = "2025-01-01"{more}))'

    @staticmethod
    def socket(name: str, port: int, service: str) -> str:
        return f'(name = "{name}", address = "127.0.0.1:{port}", http = (), service = "{service}")'


class ScriptServer(Server):
    """A runtime that serves one worker by a few lines of its own."""

    programs: tuple[str, ...] = ()  # where npm may have put it
    code = ""

    @classmethod
    def program(cls) -> Path | None:
        return next((found for path in cls.programs for found in PEERS.glob(path)), None)

    def command(self) -> list[str]:
        [(name, source)] = self.workers.items()
        folder = Path(self.folder.name)
        (folder / f"{name}.mjs").write_text(source)
        (folder / "serve.mjs").write_text(f'import worker from "./{name}.mjs";\n{self.code % self.port}\n')
        return [str(self.program()), "run", *self.arguments(), str(folder / "serve.mjs")]

    def arguments(self) -> list[str]:
        return []


class Deno(ScriptServer):
    name = "deno"
    programs = ("@deno/linux-*/deno",)
    code = 'Deno.serve({ hostname: "127.0.0.1", port: %d }, (request) => worker.fetch(request));'

    def arguments(self) -> list[str]:
        return ["--allow-net", "--no-lock", "--no-config"]


class Bun(ScriptServer):
    name = "bun"
    programs = ("@oven/bun-linux-*/bin/bun",)
    code = 'Bun.serve({ hostname: "127.0.0.1", port: %d, fetch: (request) => worker.fetch(request) });'


def runtimes(workers: Mapping[str, str]) -> Iterable[Server]:
    """Each runtime that `make bench-peers` has installed, with one worker."""
    if WORKERD.exists():
        yield Workerd(workers)
    for kind in (Deno, Bun):
        if kind.program() is not None:
            yield kind(workers)


def peers(workers: Mapping[str, str], *, routed: bool = False) -> Iterable[Server]:
    """Servers to compare with: always the raw echo, and workerd if `make bench-peers` has installed it."""
    yield RawEcho()
    if WORKERD.exists():
        yield Workerd(workers, routed=routed)
