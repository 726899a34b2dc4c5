"""Opens what a node stores: its folder and its main database, or its copy of the database that nodes share."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from msgspec import Struct

from atoll.config import Settings
from atoll.db.folder import DataFolder
from atoll.db.sqlite import Database
from atoll.errors import StartError
from atoll.manifests.every import shared_files, tables

if TYPE_CHECKING:
    from atoll.cluster.cluster import Cluster  # with the driver of PostgreSQL, which a node by itself does not import

SHARED = "shared-atoll.db"  # cluster/shared_files.py


class Storage(Struct):
    folder: DataFolder
    database: Database
    cluster: Cluster | None = None


async def open_storage(settings: Settings, undo: AsyncExitStack) -> Storage:
    """Raises StartError. `undo` closes everything."""
    folder = DataFolder(settings.data)
    undo.callback(folder.close)
    folder.sweep()
    folder.watch()
    if settings.store == "sqlite":
        if (settings.data / SHARED).exists():
            raise StartError(
                f"the data folder {settings.data} belongs to a node with PostgreSQL, and store is not set",
                "give the node its store again (--store or ATOLL_STORE), or choose another folder with --data",
                "store",
            )
        database = Database(settings.data / "atoll.db")
        undo.push_async_callback(database.close)
        return Storage(folder, database)
    from atoll.cluster.cluster import Cluster

    cluster = Cluster(settings)
    undo.push_async_callback(cluster.close)
    await cluster.open(tables(), shared_files())
    return Storage(folder, cluster.database, cluster)
