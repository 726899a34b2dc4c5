"""`atoll objects`: list Durable Objects, look into one, run SQL in it, delete it."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import done, echo, fail, show_json, show_table, shown_time
from atoll.plain import plain_line

if TYPE_CHECKING:
    from atoll.cli.client import Client

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def objects() -> None:
    """List Durable Objects, look into one, run SQL in it, and delete it.

    \b
    Examples:
      atoll objects list
      atoll objects list counter Counter
      atoll objects show counter Counter 3c1f…
      atoll objects sql counter Counter 3c1f… "SELECT * FROM visits"
    """


def one_object(command: F) -> F:
    """The arguments that name an object."""
    for argument in (
        click.argument("object_id", metavar="ID"),
        click.argument("class_name", metavar="CLASS"),
        click.argument("worker"),
    ):
        command = argument(command)
    return command


def _at(worker: str, class_name: str, *rest: str) -> str:
    from atoll.cli.client import segment

    return "/".join(["/api/objects", *map(segment, (worker, class_name, *rest))])


@objects.command("list")
@click.argument("worker", required=False)
@click.argument("class_name", metavar="CLASS", required=False)
@node_options
@json_option
def list_objects(client: Client, worker: str | None, class_name: str | None, as_json: bool) -> None:
    """List the classes with objects; with WORKER and CLASS the objects of that class that store something."""
    if worker is None:
        found = client.get("/api/objects")["namespaces"]
        if as_json:
            show_json(found)
            return
        columns = ("worker", "class_name", "storage", "objects", "bytes", "live", "sockets")
        rows = [tuple(each[column] for column in columns) for each in found]
        heads = ("worker", "class", *columns[2:])
        show_table(heads, rows, "no Durable Object classes yet")
        return
    if class_name is None:
        raise click.UsageError("name the class as well: atoll objects list WORKER CLASS")
    listed = client.all(_at(worker, class_name), "objects")
    if as_json:
        show_json(listed)
    else:
        rows = [(each["id"], each["bytes"], each["sockets"]) for each in listed]
        show_table(("id", "bytes", "sockets"), rows, "no object stores anything")


@objects.command("show")
@one_object
@click.option("--keys", type=click.IntRange(1, 100_000), default=100, help="The most keys to show. [default: 100]")
@node_options
@json_option
def show(client: Client, worker: str, class_name: str, object_id: str, keys: int, as_json: bool) -> None:
    """Show what the object ID of CLASS stores: size, alarm, sockets, tables and keys."""
    path = _at(worker, class_name, object_id)
    found = client.get(path, limit=min(keys, 1000))
    while found.get("cursor") and len(found["keys"]) < keys:
        page = client.get(path, limit=min(keys - len(found["keys"]), 1000), cursor=found.pop("cursor"))
        found["keys"] += page["keys"]
        if page.get("cursor"):
            found["cursor"] = page["cursor"]
    if as_json:
        show_json(found)
        return
    echo(f"id       {found['id']}", f"storage  {found['storage']}, {found['bytes']} bytes")
    echo(f"alarm    {shown_time(found['alarm'])}", f"sockets  {found['sockets']}")
    for path_of_facet in found["facets"]:
        echo(f"facet    {' / '.join(map(plain_line, path_of_facet))}")
    if found["tables"]:
        echo("")
        rows = [(plain_line(each["name"]), each["type"], _count(each["rows"])) for each in found["tables"]]
        show_table(("table", "type", "rows"), rows, "")
    if found["keys"]:
        echo("")
        shown = [(plain_line(each["key"]), each["bytes"], _value(each["value"])) for each in found["keys"]]
        show_table(("key", "bytes", "value"), shown, "")
    if found.get("cursor"):
        echo("", f"there are more keys; show them with --keys {10 * keys}")


def _count(rows: int | None) -> str:
    return "" if rows is None else "over 10000" if rows < 0 else str(rows)


def _value(value: str | None) -> str:
    return "(large)" if value is None else plain_line(value.replace("\n", " "))


@objects.command("sockets")
@one_object
@node_options
@json_option
def sockets(client: Client, worker: str, class_name: str, object_id: str, as_json: bool) -> None:
    """List the hibernatable WebSockets of an object, the oldest first."""
    found = client.all(_at(worker, class_name, object_id, "sockets"), "sockets")
    if as_json:
        show_json(found)
        return
    rows = []
    for each in found:
        tags, attached = plain_line(", ".join(each["tags"])), each["attachment_bytes"]
        rows.append((each["number"], tags, attached or 0, shown_time(each["responded_at"])))
    show_table(("number", "tags", "attachment", "last automatic response"), rows, "no hibernatable WebSockets")


@objects.command("alarm")
@one_object
@click.option("--at", metavar="TIME", help="Set it: `now`, or a time such as 2027-01-15T08:00:00Z.")
@click.option("--delete", "deletes", is_flag=True, help="Delete it.")
@node_options
@json_option
def alarm(
    client: Client, worker: str, class_name: str, object_id: str, at: str | None, deletes: bool, as_json: bool
) -> None:
    """Show the alarm of an object, set it or delete it."""
    if at is not None and deletes:
        raise click.UsageError("give either --at TIME or --delete")
    path = _at(worker, class_name, object_id)
    found: str | None = None
    if deletes:
        client.delete(f"{path}/alarm")
    elif at is not None:
        found = client.put(f"{path}/alarm", {"at": _milliseconds(at)})["alarm"]
    else:
        found = client.get(path, limit=1)["alarm"]
    if as_json:
        show_json({"alarm": found})
    else:
        echo(f"alarm at {shown_time(found)}" if found is not None else "no alarm")


def _milliseconds(text: str) -> int | None:
    if text == "now":
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        fail(f"{text!r} is not a time", "use `now`, or a time such as 2027-01-15T08:00:00Z")
    return int(moment.astimezone().timestamp() * 1000)


@objects.command("sql")
@one_object
@click.argument("sql", metavar="[SQL]", required=False)
@click.option("--write", "writes", is_flag=True, help="Allow changes. All statements run in one transaction.")
@node_options
@json_option
def sql(
    client: Client, worker: str, class_name: str, object_id: str, sql: str | None, writes: bool, as_json: bool
) -> None:
    """Run SQL in an object. Without SQL: a console that reads statements, each up to a `;` at the end of a line.

    Statements may only read, unless --write is given. The rows of the last statement are shown.
    """
    path = _at(worker, class_name, object_id, "execute" if writes else "query")
    for text in _statements(writes) if sql is None else [sql]:
        try:
            found = client.post(path, {"sql": text})
        except click.ClickException as error:
            if sql is not None or not sys.stdin.isatty():
                raise
            error.show()
            continue
        if as_json:
            show_json(found)
            continue
        rows = [[_cell(value) for value in row] for row in found["rows"]]
        heads = [plain_line(name) for name in found["columns"]]
        show_table(heads, rows, f"no rows; {found['rows_written']} written")


def _statements(writes: bool) -> Iterator[str]:
    """What is typed, or comes through a pipe."""
    is_typed, text = sys.stdin.isatty(), ""
    if is_typed:
        echo("changes are allowed" if writes else "read-only; --write allows changes", "end with Ctrl-D", err=True)
    while True:
        if is_typed:
            click.echo("   ...> " if text else "  sql> ", nl=False, err=True)
        line = sys.stdin.readline()
        text += line
        if text.strip() and (not line or text.rstrip().endswith(";")):
            yield text
            text = ""
        if not line:
            return


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    return f"<{len(value)} bytes>" if isinstance(value, list) else plain_line(str(value))


@objects.command("delete")
@one_object
@node_options
@json_option
def delete(client: Client, worker: str, class_name: str, object_id: str, as_json: bool) -> None:
    """Delete everything that the object ID of CLASS stores, and its alarm. Its calls fail."""
    client.delete(_at(worker, class_name, object_id))
    done(f"deleted {object_id}", as_json, deleted=object_id)
