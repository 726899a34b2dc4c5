"""The command line resolves names under `localhost` itself, because many resolvers do not know them."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.certificates import make_authority, make_certificate, require_openssl
from tests.cli.conftest import StartIn
from tests.upstream import Upstream

CONFIG = 'name = "app"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n'
FILES = {"atoll.toml": CONFIG, "index.js": "export default { fetch: () => new Response('one') };"}
# `atoll` on a machine whose resolver knows only addresses
DEAF = """
import ipaddress, socket
real = socket.getaddrinfo
def resolve(host, *rest, **more):
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
    return real(host, *rest, **more)
socket.getaddrinfo = resolve
from atoll.cli.main import main
main(prog_name="atoll")
"""


def ask(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    home = {"HOME": str(folder), "PATH": os.environ["PATH"]} | more
    command = [sys.executable, "-c", DEAF, *words]
    return subprocess.run(command, cwd=folder, env=home, capture_output=True, text=True, timeout=60, check=False)


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")),
    ],
)
def test_a_name_under_localhost_needs_no_resolver(start_in: StartIn, tmp_path: Path, address: str) -> None:
    dev = start_in(tmp_path / "app", "--host", address, **FILES)
    for host in ("control.localhost", "CONTROL.localhost.", "Control.LocalHost"):
        ran = ask(tmp_path, "workers", "--json", "--api", f"http://{host}:{dev.port}")
        assert ran.returncode == 0, ran.stderr
        assert [worker["name"] for worker in json.loads(ran.stdout)] == ["app"]
    ran = ask(tmp_path, "workers", "--api", f"http://node.invalid:{dev.port}")
    assert ran.returncode == 1 and "name or service not known" in ran.stderr


def test_the_certificate_of_such_a_name_is_checked(tmp_path: Path) -> None:
    require_openssl()
    authority = make_authority(tmp_path)
    make_certificate(tmp_path / "certificates", "node", "node.localhost", authority=authority)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "certificates/node.pem", tmp_path / "certificates/node.key")
    server = Upstream(tls)
    try:
        trusting = {"SSL_CERT_FILE": str(authority)}
        ran = ask(tmp_path, "workers", "--api", f"https://node.localhost:{server.port}", **trusting)
        assert server.seen and server.seen[-1].line.startswith("GET /api/workers"), ran.stderr
        seen = len(server.seen)
        ran = ask(tmp_path, "workers", "--api", f"https://other.localhost:{server.port}", **trusting)
        assert ran.returncode == 1 and "certificate" in ran.stderr and len(server.seen) == seen
    finally:
        server.close()


def test_a_refused_connection_to_such_a_name_has_the_hint_for_this_machine(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ran = ask(tmp_path, "workers", "--api", f"http://shop.localhost:{port}")
    assert (
        ran.returncode == 1 and "connection refused" in ran.stderr and "start a node with `atoll serve`" in ran.stderr
    )
