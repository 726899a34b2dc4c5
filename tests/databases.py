"""Database servers of Debian packages, for tests: PostgreSQL, MariaDB and Redis on 127.0.0.1, each with TLS."""

from __future__ import annotations

import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.certificates import make_authority, make_certificate, require_openssl
from tests.debian import require
from tests.running import free_port

START_SECONDS = 60
PASSWORD = "pa55 w/ord?"  # with what must be escaped in a URL


class Server(NamedTuple):
    port: int
    tls_port: int
    authority: Path  # PEM


@contextmanager
def postgres() -> Iterator[Server]:
    """A database `shop` of the user `ada`."""
    require("postgresql", "pg_ctlcluster", "initdb")
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb")) or [shutil.which("initdb") or "initdb"]
    binaries = Path(found[-1]).parent
    with server_folder("postgres") as folder:
        (folder / "password").write_text(PASSWORD)
        own(folder, "postgres")
        data = folder / "data"
        words = ["-U", "ada", "--auth=scram-sha-256", f"--pwfile={folder}/password", "-E", "UTF8", "--no-sync"]
        run("postgres", str(binaries / "initdb"), "-D", str(data), *words)
        port = free_port()
        options = {
            "port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": folder, "fsync": "off", "ssl": "on",
            "ssl_cert_file": folder / "db.pem", "ssl_key_file": folder / "db.key",
        }  # fmt: skip
        settings = [f"--{name}={value}" for name, value in options.items()]
        with running("postgres", str(binaries / "postgres"), "-D", str(data), *settings, stop=signal.SIGQUIT):
            wait(port)
            yield Server(port, port, folder / "ca.pem")


@contextmanager
def mariadb() -> Iterator[Server]:
    """A database `shop` of the user `ada`."""
    server = require("mariadb-server", "mariadbd", "/usr/sbin/mariadbd")
    install = require("mariadb-server", "mariadb-install-db")
    with server_folder("mariadb") as folder:
        quoted = PASSWORD.replace("'", "''")
        (folder / "init.sql").write_text(
            "CREATE DATABASE shop;\n"
            f"CREATE USER 'ada'@'%' IDENTIFIED BY '{quoted}';\nGRANT ALL ON shop.* TO 'ada'@'%';\n"
        )
        own(folder, "mysql")
        data = f"--datadir={folder}/data"
        run("mysql", install, data, "--auth-root-authentication-method=normal", "--skip-test-db")
        port = free_port()
        words = [
            "--no-defaults", data, f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder}/socket",
            f"--pid-file={folder}/pid", f"--init-file={folder}/init.sql", "--skip-name-resolve", "--character-set-server=utf8mb4",
            "--innodb-flush-log-at-trx-commit=0",
            f"--ssl-cert={folder}/db.pem", f"--ssl-key={folder}/db.key", f"--ssl-ca={folder}/ca.pem",
        ]  # fmt: skip
        with running("mysql", server, *words):
            wait(port)
            yield Server(port, port, folder / "ca.pem")


@contextmanager
def redis() -> Iterator[Server]:
    program = require("redis-server", "redis-server")
    with server_folder("redis") as folder:
        own(folder, "redis")
        port, tls_port = free_port(), free_port()
        words = [
            "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder), "--requirepass", PASSWORD,
            "--tls-port", str(tls_port), "--tls-cert-file", str(folder / "db.pem"), "--tls-key-file", str(folder / "db.key"),
            "--tls-ca-cert-file", str(folder / "ca.pem"), "--tls-auth-clients", "no",
        ]  # fmt: skip
        with running("redis", program, *words):
            wait(port)
            yield Server(port, tls_port, folder / "ca.pem")


@contextmanager
def server_folder(name: str) -> Iterator[Path]:
    """A folder that a user of a server may enter, with a certificate for 127.0.0.1 and db.example."""
    require_openssl()
    folder = Path(tempfile.mkdtemp(prefix=f"atoll-{name}-"))
    try:
        make_certificate(folder, "db", "127.0.0.1", "db.example", authority=make_authority(folder))
        (folder / "db.key").chmod(0o600)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def own(folder: Path, user: str) -> None:
    """Servers refuse to run as root: give the folder to their own user."""
    if os.geteuid() == 0:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, user, user)


def _as(user: str) -> list[str]:
    return ["runuser", "-u", user, "--"] if os.geteuid() == 0 else []


def run(user: str, *command: str) -> None:
    ran = subprocess.run([*_as(user), *command], capture_output=True, text=True, cwd="/", timeout=START_SECONDS)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@contextmanager
def running(user: str, *command: str, stop: int = signal.SIGKILL) -> Iterator[None]:
    process = subprocess.Popen(
        [*_as(user), *command], cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield
    finally:
        os.killpg(process.pid, stop)  # at once: nobody needs the data
        process.wait(START_SECONDS)


def wait(port: int) -> None:
    """Until the server accepts connections."""
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < until, f"no server on port {port}"
            time.sleep(0.05)
