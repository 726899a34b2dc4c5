"""`atoll hyperdrive`: the databases that workers connect to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atoll.cli.ask import read_text
from atoll.cli.options import json_option, node_options
from atoll.cli.talk import ask_first, done, show_json, show_table

if TYPE_CHECKING:
    from atoll.cli.client import Client

STRING = click.option(
    "--connection-string", required=True, metavar="URL", help="postgres://… or mysql://…; - reads it from stdin."
)


@click.group()
def hyperdrive() -> None:
    """Name the databases that workers connect to.

    \b
    Examples:
      atoll hyperdrive create shop --connection-string postgres://ada:secret@db.internal/shop
      atoll hyperdrive list
      atoll hyperdrive delete shop --yes
    """


def _at(name: str) -> str:
    from atoll.cli.client import segment

    return f"/api/hyperdrive/{segment(name)}"


def _given(text: str) -> str:
    return read_text("the connection string").strip() if text == "-" else text


@hyperdrive.command("create")
@click.argument("name")
@STRING
@node_options
@json_option
def create(client: Client, name: str, connection_string: str, as_json: bool) -> None:
    """Name a database. The connection string is stored sealed."""
    made = client.post("/api/hyperdrive", {"name": name, "connection_string": _given(connection_string)})
    done(f"made {name}: bind it with `id` {name} of `hyperdrive`", as_json, **made)


@hyperdrive.command("update")
@click.argument("name")
@STRING
@node_options
@json_option
def update(client: Client, name: str, connection_string: str, as_json: bool) -> None:
    """Change the connection string. Workers that are loaded keep the old user and password until they load again."""
    made = client.put(_at(name), {"connection_string": _given(connection_string)})
    done(f"changed {name}", as_json, **made)


@hyperdrive.command("list")
@node_options
@json_option
def list_databases(client: Client, as_json: bool) -> None:
    """List the databases, without their passwords."""
    found = client.all("/api/hyperdrive", "databases")
    if as_json:
        show_json(found)
        return
    rows = [
        (each["name"], each["scheme"], f"{each['host']}:{each['port']}", each["database"], each["user"],
         "TLS" if each["tls"] else "")
        for each in found
    ]  # fmt: skip
    empty = "no databases yet: `atoll hyperdrive create` names one"
    show_table(("name", "kind", "where", "database", "user", ""), rows, empty)


@hyperdrive.command("delete")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@node_options
@json_option
def delete(client: Client, name: str, yes: bool, as_json: bool) -> None:
    """Forget a database. Its content is not touched."""
    ask_first(f"Forget the database {name} on {client.target.api}?", yes)
    client.delete(_at(name))
    done(f"deleted {name}", as_json, deleted=name)
