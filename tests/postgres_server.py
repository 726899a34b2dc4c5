"""One real PostgreSQL for a test process, and a fresh database in it for each test."""

from __future__ import annotations

import asyncio
import atexit
import glob
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import asyncpg

from atoll.postgres.migrate import migrate
from atoll.postgres.pool import Postgres
from tests import databases
from tests.databases import PASSWORD, Server, postgres
from tests.debian import require
from tests.running import free_port

USER = f"ada:{quote(PASSWORD, safe='')}"


@cache
def _server() -> Server:
    """Started once; it ends with the test process."""
    undo = ExitStack()
    server = undo.enter_context(postgres())
    owner = os.getpid()
    atexit.register(lambda: undo.close() if os.getpid() == owner else None)
    return server


class StoppableServer:
    """A PostgreSQL of its own, which a test stops and starts again."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"
        self._folder = folder
        self._binaries = Path(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[-1]).parent
        (folder / "password").write_text(PASSWORD)
        databases.own(folder, "postgres")
        words = ["-U", "ada", "--auth=scram-sha-256", f"--pwfile={folder}/password", "-E", "UTF8", "--no-sync"]
        databases.run("postgres", str(self._binaries / "initdb"), "-D", str(folder / "data"), *words)
        self._undo = ExitStack()

    def start(self) -> None:
        options = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self._folder}
        words = [f"--{name}={value}" for name, value in options.items()]
        program = str(self._binaries / "postgres"), "-D", str(self._folder / "data"), *words
        self._undo.enter_context(databases.running("postgres", *program, stop=signal.SIGQUIT))
        databases.wait(self.port)

    def stop(self) -> None:
        """As a crash: connections are cut at once, and what was committed is there after the next start."""
        self._undo.close()


@contextmanager
def stoppable_server() -> Iterator[StoppableServer]:
    require("postgresql", "pg_ctlcluster", "initdb")
    with databases.server_folder("postgres") as folder:
        server = StoppableServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()


class Place(NamedTuple):
    url: str
    port: int
    database: str


_made = iter(range(1, 1_000_000))


async def fresh_database() -> Place:
    """An empty database. Skips the test, saying why, if PostgreSQL cannot be had."""
    server = _server()
    name = f"test{next(_made)}"
    connection = await _connect(f"postgresql://{USER}@127.0.0.1:{server.port}/postgres")
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    return Place(f"postgresql://{USER}@127.0.0.1:{server.port}/{name}", server.port, name)


async def _connect(url: str) -> asyncpg.Connection[asyncpg.Record]:
    """A connection, once the server has started."""
    while True:
        try:
            return await asyncpg.connect(url)
        except asyncpg.CannotConnectNowError:
            await asyncio.sleep(0.02)


async def opened_database(*kinds: str) -> Postgres:
    """A pool on an empty database with the tables of the cluster and of some bindings."""
    place = await asyncio.ensure_future(fresh_database())
    pool = Postgres(place.url)
    await pool.open()
    folders = {kind: resources.files(f"atoll.bindings.{kind}") / "postgres_migrations" for kind in kinds}
    await migrate(pool, {"cluster": resources.files("atoll.cluster") / "migrations", **folders})
    return pool
