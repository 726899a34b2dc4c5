"""One real PostgreSQL for a test process, and a fresh database in it for each test."""

from __future__ import annotations

import asyncio
import atexit
import os
from contextlib import ExitStack
from functools import cache
from importlib import resources
from typing import NamedTuple
from urllib.parse import quote

import asyncpg

from atoll.postgres.migrate import migrate
from atoll.postgres.pool import Postgres
from tests.databases import PASSWORD, Server, postgres

USER = f"ada:{quote(PASSWORD, safe='')}"


@cache
def _server() -> Server:
    """Started once; it ends with the test process."""
    undo = ExitStack()
    server = undo.enter_context(postgres())
    owner = os.getpid()
    atexit.register(lambda: undo.close() if os.getpid() == owner else None)
    return server


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
