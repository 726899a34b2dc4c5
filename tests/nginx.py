"""The nginx of deploy/nginx, run for real in front of a node."""

from __future__ import annotations

import contextlib
import http.client
import re
import shlex
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.certificates import make_authority, make_certificate, require_openssl
from tests.debian import require
from tests.running import Answer, Atoll, free_port

CONFIG = Path(__file__).parents[1] / "deploy/nginx/atoll.conf"


def require_nginx() -> None:
    """Install nginx if we may; otherwise skip the test, and say why."""
    require_openssl()
    require("nginx-light", "nginx")


def documented_flags() -> list[str]:
    """The flags of `atoll serve`, as the file instructs its reader."""
    said = re.search(r"atoll serve (.*)", CONFIG.read_text())
    assert said is not None
    return shlex.split(said[1])


@contextlib.contextmanager
def nginx(folder: Path, name: str, who: str, *, node: int, port: int, plain: int) -> Iterator[None]:
    """Run nginx on two ports, with the certificate of the folder. `who` says who may use the control host."""
    text = CONFIG.read_text().replace("127.0.0.1:8080", f"127.0.0.1:{node}").replace("deny all;", who)
    text = re.sub(r"listen 80\b", f"listen 127.0.0.1:{plain}", text)
    text = re.sub(r"listen 443\b", f"listen 127.0.0.1:{port}", text)
    text = text.replace("/etc/ssl/atoll/fullchain.pem", f"{folder}/site.pem")
    text = text.replace("/etc/ssl/atoll/privkey.pem", f"{folder}/site.key")
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / f"{name}.conf").write_text(
        f"daemon off; pid {folder}/{name}.pid; error_log {folder}/error.log; worker_rlimit_nofile 16384; "
        f"events {{ worker_connections 8192; }} http {{ access_log off; {paths} {text} }}"
    )
    process = subprocess.Popen(["nginx", "-p", str(folder), "-c", f"{folder}/{name}.conf"], stderr=subprocess.PIPE)
    try:
        Atoll.wait_until(lambda: _listens(port), 10)
        yield
    finally:
        process.terminate()
        process.wait(10)
        assert process.stderr is not None
        process.stderr.close()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class BehindNginx(Atoll):
    """A node that is reached through nginx, over TLS. Its control host is open to this machine."""

    def __init__(self, folder: Path, **settings: object) -> None:
        super().__init__(folder, **settings)
        self.command = [*self.command, *documented_flags()]
        self.outside = free_port()
        self._nginx = contextlib.ExitStack()
        make_certificate(folder, "site", "*.workers.example", authority=make_authority(folder))
        self._trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))

    def start(self) -> None:
        super().start()
        ports = {"node": self.port, "port": self.outside, "plain": free_port()}
        self._nginx.enter_context(nginx(self.folder, "nginx", "allow 127.0.0.1; deny all;", **ports))

    def stop(self, *args: int) -> int:
        self._nginx.close()
        return super().stop(*args)

    def is_healthy(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"atoll serve ended:\n{self.log()}"
        try:  # past nginx, which is not there yet
            return super().request("GET", f"localhost:{self.port}", "/health").status == 200
        except OSError:
            return False

    @property
    def token(self) -> str:
        """Of the operator."""
        return (self.folder / "data/admin-token").read_text().strip()

    @property
    def control_host(self) -> str:
        return "control.workers.example"

    def host(self, name: str) -> str:
        return f"{name}.workers.example"

    def connect(self, timeout: float = 30) -> socket.socket:
        raw = socket.create_connection(("127.0.0.1", self.outside), timeout)
        return self._trust.wrap_socket(raw, server_hostname="any.workers.example")

    def request(
        self, method: str, host: str, path: str = "/", body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("unused", timeout=60)
        connection.sock = self.connect(60)
        try:
            connection.request(method, path, body, {"Host": host, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read(), response.reason)
        finally:
            connection.close()
