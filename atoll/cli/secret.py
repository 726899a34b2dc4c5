"""`atoll secret`: what a worker needs and nobody else may read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options, worker_named, worker_option
from atoll.cli.talk import done, fail, say, show_json, show_table

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.group()
def secret() -> None:
    """Set, list and delete the secrets of a worker. A change is live at once, as a new version; values never come back.

    \b
    Examples:
      atoll secret put API_KEY
      echo "$KEY" | atoll secret put API_KEY --worker shop
      atoll secret list
      atoll secret bulk .env.production
      atoll secret rotate-key
    """


def _at(worker: str | None, *rest: str) -> str:
    from atoll.cli.client import segment

    return "/".join(["/api/workers", segment(worker_named(worker)), "secrets", *map(segment, rest)])


@secret.command("put")
@click.argument("name")
@worker_option
@node_options
@json_option
def put(client: Client, name: str, worker: str | None, as_json: bool) -> None:
    """Set a secret. The value is asked for, or read from stdin when that is no terminal."""
    if sys.stdin.isatty():
        value = click.prompt(f"Value of {name}", hide_input=True, err=True)
    else:
        value = sys.stdin.read().removesuffix("\n")
    changed = client.put(_at(worker, name), {"value": value})
    if as_json:
        show_json(changed)
    else:
        say(f"{name} is set, live with version {changed['version_number']}")


@secret.command("list")
@worker_option
@node_options
@json_option
def list_secrets(client: Client, worker: str | None, as_json: bool) -> None:
    """List the names of secrets."""
    found = client.get(_at(worker))["secrets"]
    if as_json:
        show_json(found)
        return
    show_table(("name", "set"), [(each["name"], each["updated_at"][:19]) for each in found], "no secrets")


@secret.command("delete")
@click.argument("name")
@worker_option
@node_options
@json_option
def delete(client: Client, name: str, worker: str | None, as_json: bool) -> None:
    """Delete a secret."""
    client.delete(_at(worker, name))
    done(f"deleted {name}", as_json, deleted=name)


@secret.command("bulk")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@worker_option
@node_options
@json_option
def bulk(client: Client, file: Path, worker: str | None, as_json: bool) -> None:
    """Set all secrets of FILE: NAME=value lines, or one JSON object of texts."""
    from atoll.project.files import read_dotenv

    if file.suffix == ".json":
        try:
            values = json.loads(file.read_text("utf-8"))
        except ValueError as error:
            fail(f"{file} is not JSON: {error}")
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            fail(f"{file} is no object of texts", 'write {"NAME": "value"}')
    else:
        values = read_dotenv(file)
    for name, value in values.items():
        client.put(_at(worker, name), {"value": value})
    done(f"{len(values)} secrets are set", as_json, set=list(values))


@secret.command("rotate-key")
@node_options
@json_option
def rotate_key(client: Client, as_json: bool) -> None:
    """Seal all secrets of the node with a new root key. For its admins; nothing stops meanwhile."""
    made = client.post("/api/secrets/rotate-key")
    done(f"{made['secrets']} secrets are sealed with root key {made['key_id']}", as_json, **made)
