"""Connections that end while nobody, or somebody, uses them."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from atoll.errors import StorageAway
from tests.postgres_server import opened_database


async def test_a_restarted_server_costs_a_read_nothing_and_a_transaction_an_error() -> None:
    pool = await opened_database()
    killed = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = $1"
    database = await pool.value("SELECT current_database()")
    other = await asyncpg.connect(pool._address)
    await other.fetch(killed, database)
    try:
        for _ in range(5):
            await asyncio.gather(*(pool.value("SELECT 1") for _ in range(4)))  # several idle connections
            await other.fetch(killed, database)
            assert await pool.value("SELECT 1") == 1
        with pytest.raises(StorageAway):
            async with pool.transaction() as connection:
                await other.fetch(killed, database)
                await connection.execute("SELECT 1")
    finally:
        await other.close()
        await pool.close()
