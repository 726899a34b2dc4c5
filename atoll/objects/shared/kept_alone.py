"""Objects are in PostgreSQL, or on the disk of a node that is the only one: never in both places.

Nodes share the tables of workers in any case, so a node would run a worker and find none of its objects. A row says
that a node has objects on its own disk, and nobody starts as one of several before it is gone.
"""

from __future__ import annotations

from importlib import resources

from atoll.errors import StartError, StorageFailed
from atoll.postgres.migrate import migrate
from atoll.postgres.pool import Postgres


async def prepare(postgres: Postgres) -> None:
    """Make the tables. Raises StartError."""
    await migrate(postgres, {"objects": resources.files("atoll.objects.shared") / "migrations"})


async def refuse_kept(postgres: Postgres) -> None:
    """StartError if a node has objects on its disk."""
    name = await postgres.value("SELECT name FROM objects_kept_alone LIMIT 1")
    if name is not None:
        raise StartError(
            f"Durable Objects, D1 databases or Workflows are on the disk of the node {name} alone",
            "start that one, with --only-node on; once they are deleted there and it was stopped, others can start",
            "only_node",
        )


async def keep(postgres: Postgres, name: str) -> None:
    """A node that is the only one begins to have objects on its disk. StartError if nodes share some."""
    await prepare(postgres)
    if await postgres.value("SELECT EXISTS (SELECT FROM objects)"):
        raise StartError(
            "nodes share Durable Objects in PostgreSQL, and a node with only_node would not have them",
            "start it without --only-node on",
            "only_node",
        )
    await postgres.run("INSERT INTO objects_kept_alone VALUES ($1) ON CONFLICT DO NOTHING", name)


async def stop_keeping(postgres: Postgres, name: str) -> None:
    """It stops, and has none."""
    try:
        await postgres.run("DELETE FROM objects_kept_alone WHERE name = $1", name)
    except StorageFailed:
        pass  # its next start and stop do it
