"""`atoll secrets-store`: secrets that several workers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atoll.cli.ask import read_hidden
from atoll.cli.options import json_option, node_options
from atoll.cli.talk import ask_first, done, fail, show_json, show_table

if TYPE_CHECKING:
    from atoll.cli.client import Client

YES = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
NAME = click.option("--name", required=True, metavar="NAME", help="Name of the secret.")
COMMENT = click.option("--comment", default="", metavar="TEXT", help="A comment, shown in lists.")
STORES = "/api/secrets-stores"


@click.group("secrets-store")
def secrets_store() -> None:
    """Keep secrets that several workers share. A worker reads one with `await env.NAME.get()`.

    \b
    Examples:
      atoll secrets-store store create shared
      atoll secrets-store secret create shared --name API_KEY
      atoll secrets-store secret list shared
    """


@secrets_store.group()
def store() -> None:
    """Make, list and delete stores."""


@secrets_store.group()
def secret() -> None:
    """Make, change, list and delete the secrets of a store."""


def _at(store: str, *rest: str) -> str:
    from atoll.cli.client import segment

    return "/".join([STORES, *map(segment, (store, *rest))])


@store.command("create")
@click.argument("name")
@node_options
@json_option
def create_store(client: Client, name: str, as_json: bool) -> None:
    """Make a store. NAME is the `store_id` of a project."""
    made = client.post(STORES, {"name": name})
    done(f"made {name}: bind its secrets with `store_id` {name} of `secrets_store_secrets`", as_json, **made)


@store.command("list")
@node_options
@json_option
def list_stores(client: Client, as_json: bool) -> None:
    """List the stores."""
    found = client.all(STORES, "stores")
    if as_json:
        show_json(found)
        return
    rows = [(each["name"], each["secrets"], each["created_at"]) for each in found]
    show_table(("name", "secrets", "made"), rows, "no stores yet: `atoll secrets-store store create` makes one")


@store.command("delete")
@click.argument("name")
@YES
@node_options
@json_option
def delete_store(client: Client, name: str, yes: bool, as_json: bool) -> None:
    """Delete a store with its secrets."""
    ask_first(f"Delete the secrets store {name} and its secrets on {client.target.api}?", yes)
    client.delete(_at(name))
    done(f"deleted {name}", as_json, deleted=name)


def _put(client: Client, store: str, name: str, comment: str, said: str, as_json: bool) -> None:
    value = read_hidden(f"Value of {name}")
    if not value:
        fail(f"the value of {name} is empty, so nothing was stored", "pipe a value in")
    made = client.put(_at(store, "secrets", name), {"value": value, "comment": comment})
    done(f"{said} {name} in {store}", as_json, **made)


@secret.command("create")
@click.argument("store")
@NAME
@COMMENT
@node_options
@json_option
def create_secret(client: Client, store: str, name: str, comment: str, as_json: bool) -> None:
    """Make a secret in STORE. The value is asked for, or read from stdin, and stored sealed."""
    if any(each["name"] == name for each in client.all(_at(store, "secrets"), "secrets")):
        fail(f"{store} already has a secret {name}", "`atoll secrets-store secret update` changes its value")
    _put(client, store, name, comment, "made", as_json)


@secret.command("update")
@click.argument("store")
@NAME
@COMMENT
@node_options
@json_option
def update_secret(client: Client, store: str, name: str, comment: str, as_json: bool) -> None:
    """Change the value of a secret. Workers see it at their next `get()`."""
    client.get(_at(store, "secrets", name))  # it must exist
    _put(client, store, name, comment, "changed", as_json)


@secret.command("list")
@click.argument("store")
@node_options
@json_option
def list_secrets(client: Client, store: str, as_json: bool) -> None:
    """List the secrets of STORE, without their values."""
    found = client.all(_at(store, "secrets"), "secrets")
    if as_json:
        show_json(found)
        return
    rows = [(each["name"], each["comment"], each["changed_at"]) for each in found]
    show_table(("name", "comment", "changed"), rows, "no secrets yet: `atoll secrets-store secret create` makes one")


@secret.command("delete")
@click.argument("store")
@NAME
@YES
@node_options
@json_option
def delete_secret(client: Client, store: str, name: str, yes: bool, as_json: bool) -> None:
    """Delete a secret. Workers that use it get an error."""
    ask_first(f"Delete the secret {name} of {store} on {client.target.api}?", yes)
    client.delete(_at(store, "secrets", name))
    done(f"deleted {name}", as_json, deleted=name)
