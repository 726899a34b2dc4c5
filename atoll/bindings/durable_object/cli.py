"""`atoll objects`: list Durable Objects, and delete one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import done, show_json, show_table

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.group()
def objects() -> None:
    """List Durable Objects, and delete one.

    \b
    Examples:
      atoll objects list
      atoll objects list counter Counter
      atoll objects delete counter Counter 3c1f…
    """


@objects.command("list")
@click.argument("worker", required=False)
@click.argument("class_name", metavar="CLASS", required=False)
@node_options
@json_option
def list_objects(client: Client, worker: str | None, class_name: str | None, as_json: bool) -> None:
    """List the classes with objects; with WORKER and CLASS the objects of that class that store something."""
    from atoll.cli.client import segment

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
    path = f"/api/objects/{segment(worker)}/{segment(class_name)}"
    listed, cursor = [], ""
    while True:
        page = client.get(f"{path}?cursor={cursor}")
        listed += page["objects"]
        cursor = page.get("cursor", "")
        if not cursor:
            break
    if as_json:
        show_json(listed)
    else:
        rows = [(each["id"], each["bytes"], each["sockets"]) for each in listed]
        show_table(("id", "bytes", "sockets"), rows, "no object stores anything")


@objects.command("delete")
@click.argument("worker")
@click.argument("class_name", metavar="CLASS")
@click.argument("object_id", metavar="ID")
@node_options
@json_option
def delete(client: Client, worker: str, class_name: str, object_id: str, as_json: bool) -> None:
    """Delete everything that the object ID of CLASS stores, and its alarm. Its calls fail."""
    from atoll.cli.client import segment

    client.delete(f"/api/objects/{segment(worker)}/{segment(class_name)}/{segment(object_id)}")
    done(f"deleted {object_id}", as_json, deleted=object_id)
