"""What a binding has in a data folder and in PostgreSQL: the same rows, for `atoll migrate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class MovedTable(NamedTuple):
    """A table of both. `read` and `find` give equal rows in the same order, which is how a move is verified."""

    name: str  # in words
    file: str  # the SQLite file in the data folder
    read: str  # SQL for SQLite
    find: str  # SQL for PostgreSQL
    add: str  # SQL for PostgreSQL that adds one row
    put: Callable[[Any, Sequence[Any]], None] | None  # adds a row with a connection to SQLite; None: it follows
    identity: str = ""  # table and column of PostgreSQL whose numbers go on after the largest: "queues.id"


class MovedContents(Protocol):
    """Contents that are files in a data folder. Both methods check every byte, and return how many were moved."""

    name: str

    async def is_empty(self, connection: Any) -> bool:
        """Whether PostgreSQL has none."""

    async def into_postgres(self, data: Path, connection: Any) -> int: ...

    async def into_folder(self, connection: Any, data: Path) -> int: ...


class MovedPart(NamedTuple):
    """What `atoll migrate` moves of a binding: tables in the order of their references, then contents."""

    tables: tuple[MovedTable, ...] = ()
    contents: tuple[MovedContents, ...] = ()
