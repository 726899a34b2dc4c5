"""`atoll d1 export`, `import` and `time-travel`: whole databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import ask_first, done, echo, show_json

if TYPE_CHECKING:
    from atoll.cli.client import Client

CHUNK = 256 << 10
NOTED = 64 << 20  # bytes between two notes of progress
WAIT = 3600.0  # seconds


def _at(database: str, *rest: str) -> str:
    from atoll.cli.client import segment

    return "/".join(["/api/d1", segment(database), *rest])


@click.command("export")
@click.argument("database")
@click.option(
    "--output", type=click.Path(dir_okay=False, writable=True, path_type=Path), required=True, help="The file to write."
)
@click.option("--table", "tables", multiple=True, metavar="NAME", help="Only this table. May be given several times.")
@click.option("--no-schema", is_flag=True, help="Only rows.")
@click.option("--no-data", is_flag=True, help="Only tables, indexes, views and triggers.")
@node_options
@json_option
def export(
    client: Client,
    database: str,
    output: Path,
    tables: tuple[str, ...],
    no_schema: bool,
    no_data: bool,
    as_json: bool,
) -> None:
    """Write a database to a file as SQL, which other SQLite programs read. Queries wait meanwhile."""
    import json

    client.timeout = WAIT
    wanted = {"tables": list(tables), "no_schema": no_schema, "no_data": no_data}
    response = client.send(
        "POST", _at(database, "export"), json.dumps(wanted).encode(), {"Content-Type": "application/json"}
    )
    part = output.with_name(output.name + ".part")
    size = 0
    try:
        with part.open("wb") as file:
            while chunk := response.read(CHUNK):
                size += file.write(chunk)
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
    done(f"wrote {output}: {size} bytes", as_json, path=str(output), bytes=size)


def _pieces(file: IO[bytes], size: int, quiet: bool) -> Iterator[bytes]:
    sent = 0
    while chunk := file.read(CHUNK):
        yield chunk
        if not quiet and sent // NOTED != (sent + len(chunk)) // NOTED:
            echo(f"sent {(sent + len(chunk)) >> 20} of {size >> 20} MB", err=True)
        sent += len(chunk)


@click.command("import")
@click.argument("database")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@node_options
@json_option
def load(client: Client, database: str, file: Path, as_json: bool) -> None:
    """Run the SQL of FILE on a database: all of it, or nothing. Queries wait meanwhile."""
    found = send_file(client, database, file, as_json)
    if as_json:
        show_json(found)
        return
    echo(f"ran {found['num_queries']} statements; {found['rows_written']} rows written, {found['size_after']} bytes")
    echo(f"bookmark: {found['final_bookmark']}")


def send_file(client: Client, database: str, file: Path, quiet: bool) -> dict[str, Any]:
    """Import a file."""
    import json

    client.timeout = WAIT
    size = file.stat().st_size
    headers = {"Content-Type": "application/sql", "Content-Length": str(size)}
    with file.open("rb") as opened:
        response = client.send("POST", _at(database, "import"), _pieces(opened, size, quiet), headers)
        found: dict[str, Any] = json.loads(response.read())
    return found


@click.group("time-travel")
def time_travel() -> None:
    """Take a database back to a point in the last 30 days.

    \b
    Examples:
      atoll d1 time-travel info shop
      atoll d1 time-travel info shop --timestamp 2026-11-18T12:00:00Z
      atoll d1 time-travel restore shop --bookmark 6afd9012-…
    """


def _timestamp(command: Any) -> Any:
    return click.option(
        "--timestamp", default="", metavar="TIME", help="A time such as 2026-11-18T12:00:00Z, or seconds since 1970."
    )(command)


@time_travel.command("info")
@click.argument("database")
@_timestamp
@node_options
@json_option
def info(client: Client, database: str, timestamp: str, as_json: bool) -> None:
    """Show the bookmark of a database now, or at a time."""
    found = client.get(_at(database, "time_travel", "bookmark"), timestamp=timestamp)
    if as_json:
        show_json(found)
    else:
        echo(found["bookmark"])


@time_travel.command("restore")
@click.argument("database")
@click.option("--bookmark", default="", metavar="BOOKMARK", help="The point to go back to.")
@_timestamp
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@node_options
@json_option
def restore(client: Client, database: str, bookmark: str, timestamp: str, yes: bool, as_json: bool) -> None:
    """Take a database back to a bookmark or a time. What was written since is undone; this can be undone too."""
    if bool(bookmark) == bool(timestamp):
        raise click.UsageError("give either --bookmark BOOKMARK or --timestamp TIME")
    ask_first(f"Take {database} on {client.target.api} back to {bookmark or timestamp}?", yes)
    path = _at(database, "time_travel", "restore")
    found = client.call("POST", path, query={"bookmark": bookmark, "timestamp": timestamp})
    if as_json:
        show_json(found)
        return
    echo(f"{database} is as it was at {found['bookmark']}")
    echo(f"to undo this: atoll d1 time-travel restore {database} --bookmark {found['previous_bookmark']}")
