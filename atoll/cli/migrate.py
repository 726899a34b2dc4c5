"""`atoll migrate`: what nodes share, from a data folder into PostgreSQL, and back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from atoll.cli.options import json_option
from atoll.cli.talk import Failed, done, echo

T = TypeVar("T")

store_option = click.option(
    "--store",
    envvar="ATOLL_STORE",
    metavar="URL",
    help="Address of PostgreSQL. Better in the environment, as ATOLL_STORE: other users can read flags.",
)


@click.group()
def migrate() -> None:
    """Move what a node stores into PostgreSQL, for several nodes, or back into a folder.

    Everything is compared row by row before it counts, and the source is only read. Stop the nodes first.

    \b
    Examples:
      atoll migrate into-postgres --data /var/lib/atoll
      atoll migrate into-folder --data ./alone --root-key ./root-key
    """


@migrate.command("into-postgres")
@click.option("--data", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Data folder of a node.")
@store_option
@click.option("--leave-behind", is_flag=True, help="Move the rest if the folder has data that nodes cannot share.")
@json_option
def into_postgres(data: Path, store: str | None, leave_behind: bool, as_json: bool) -> None:
    """Move the data folder DIR of a stopped node into an empty PostgreSQL: all of it or nothing.

    \b
    Examples:
      atoll migrate into-postgres --data /var/lib/atoll
      atoll migrate into-postgres --data /var/lib/atoll --leave-behind --json
    """
    from atoll.cluster.moving.into_postgres import into_postgres as move
    from atoll.control.store.vault import VARIABLE, Vault
    from atoll.db.folder import KEY_FILE

    variable = os.environ.get(VARIABLE)
    has_key = bool(variable) or (data / KEY_FILE).exists()

    async def run() -> Any:
        vault = Vault(data, variable) if has_key else None
        return await move(_named(store), data, _tell(as_json), vault, leave_behind=leave_behind)

    moved = _run(run())
    if not as_json:
        for each in moved.stays:
            echo(f"stays in the folder: {each}", err=True)
        echo(f"Start nodes with ATOLL_STORE and empty data folders that have the file {data / KEY_FILE}.", err=True)
    done(f"{moved.rows:,} rows moved and compared", as_json, rows=moved.rows, stays=moved.stays)


@migrate.command("into-folder")
@click.option("--data", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder to make.")
@click.option(
    "--root-key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file root-key of a node. Not needed if ATOLL_ROOT_KEY is set.",
)
@store_option
@json_option
def into_folder(data: Path, root_key: Path | None, store: str | None, as_json: bool) -> None:
    """Move what nodes share into a new data folder DIR, for a node without PostgreSQL: all of it or nothing.

    \b
    Examples:
      atoll migrate into-folder --data ./alone --root-key /var/lib/atoll/root-key
    """
    from atoll.cluster.moving.into_folder import into_folder as move
    from atoll.control.store.vault import VARIABLE, Vault

    def make_vault(folder: Path) -> Vault:
        return Vault(folder, os.environ.get(VARIABLE))

    rows = _run(move(_named(store), data, root_key, make_vault, _tell(as_json)))
    done(f"{rows:,} rows moved and compared; start it with: atoll serve --data {data}", as_json, rows=rows)


def _named(store: str | None) -> str:
    if not store:
        raise Failed(
            "no PostgreSQL is named", "set ATOLL_STORE=postgresql://user:password@host/database, or give --store"
        )
    return store


def _tell(as_json: bool) -> Any:
    def tell(name: str, rows: int) -> None:
        if not as_json:
            echo(f"{rows:>12,}  {name}", err=True)

    return tell


def _run(act: Coroutine[Any, Any, T]) -> T:
    from atoll.errors import StartError

    try:
        return asyncio.run(act)
    except StartError as error:
        raise Failed(str(error), error.hint) from None
