"""The servers in which tests of R2 keep contents. A test file starts those that it uses, once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.bindings.r2.backends import Backend, PostgresBackend, RcloneServer, of_atoll, of_rclone
from tests.bindings.r2.test_s3 import keys_of
from tests.postgres_server import opened_database
from tests.running import Atoll


@pytest.fixture(params=["in_files", "in_postgres"])
def backend(request: pytest.FixtureRequest) -> Backend:
    """Where the index is, with contents beside it, unless a test file has a fixture of its own."""
    return Backend() if request.param == "in_files" else request.getfixturevalue(request.param)


@pytest.fixture
async def in_postgres() -> AsyncIterator[Backend]:
    pool = await opened_database("r2")
    yield PostgresBackend(pool)
    await pool.close()


@pytest.fixture
async def in_postgres_and_rclone(rclone_server: RcloneServer) -> AsyncIterator[Backend]:
    pool = await opened_database("r2")
    yield PostgresBackend(pool, rclone_server.port, rclone_server.key)
    await pool.close()


@pytest.fixture(scope="module")
def rclone_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RcloneServer]:
    server = RcloneServer(tmp_path_factory.mktemp("rclone"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def in_rclone(rclone_server: RcloneServer) -> Backend:
    return of_rclone(rclone_server)


@pytest.fixture(scope="module")
def in_atoll(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    node = Atoll(tmp_path_factory.mktemp("service"), engines=1, s3_host="127.0.0.1")
    node.start()
    try:
        yield of_atoll(node, keys_of)
    finally:
        assert node.stop() == 0
