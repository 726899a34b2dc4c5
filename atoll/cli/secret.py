"""`atoll secret`: values that only a worker can read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from atoll.cli.ask import read_hidden
from atoll.cli.options import Command, json_option, node_options, worker_named, worker_option
from atoll.cli.talk import done, fail, say, show_json, show_table, shown_time

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.group()
def secret() -> None:
    """Set, list and delete the secrets of a worker. A change is live at once, as a new version.

    \b
    Examples:
      atoll secret put API_KEY
      printenv API_KEY | atoll secret put API_KEY --worker shop
      atoll secret list
      atoll secret bulk .env.production
      atoll secret rotate-key
    """


def _at(worker: str | None, *rest: str) -> str:
    from atoll.cli.client import segment

    return "/".join(["/api/workers", segment(worker_named(worker)), "secrets", *map(segment, rest)])


EMPTY = "--allow-empty stores an empty secret"


def empty_option(command: Command) -> Command:
    return click.option("--allow-empty", is_flag=True, help="Allow empty values.")(command)


def read_value(name: str, allow_empty: bool) -> str:
    """The value of a secret, from a prompt or stdin."""
    value = read_hidden(f"Value of {name}", allow_empty=allow_empty)
    if not value.strip("\r\n") and not allow_empty:
        fail(f"the value of {name} is empty, so nothing was stored", f"pipe a value in; {EMPTY}")
    return value


def read_values(file: Path, allow_empty: bool) -> dict[str, str]:
    """The secrets in a file: NAME=value lines, or one JSON object of strings."""
    from atoll.project.files import read_dotenv

    if file.suffix == ".json":
        try:
            values = json.loads(file.read_text("utf-8-sig"))
        except ValueError as error:
            fail(f"{file} is not JSON: {error}", 'write {"NAME": "value"}')
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            fail(f"{file} is not a JSON object of strings", 'write {"NAME": "value"}')
    else:
        values = read_dotenv(file)
    if not values:
        fail(f"{file} has no secrets", "write a line NAME=value for each")
    empty = [name for name, value in values.items() if not value]
    if empty and not allow_empty:
        fail(f"{', '.join(empty)} in {file} is empty, so nothing was stored", EMPTY)
    return dict(values)


@secret.command("put")
@click.argument("name")
@empty_option
@worker_option
@node_options
@json_option
def put(client: Client, name: str, allow_empty: bool, worker: str | None, as_json: bool) -> None:
    """Set a secret. A terminal prompts for the value and does not show it; otherwise the value is all of stdin.

    One newline at the end of stdin is removed. An empty value is rejected: usually it comes from a broken pipe.
    """
    changed = client.put(_at(worker, name), {"value": read_value(name, allow_empty)})
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
    found = client.all(_at(worker), "secrets")
    if as_json:
        show_json(found)
        return
    show_table(("name", "set"), [(each["name"], shown_time(each["updated_at"])) for each in found], "no secrets")


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
@empty_option
@worker_option
@node_options
@json_option
def bulk(client: Client, file: Path, allow_empty: bool, worker: str | None, as_json: bool) -> None:
    """Set all secrets in FILE: NAME=value lines, or one JSON object of strings. Empty values are rejected."""
    values = read_values(file, allow_empty)
    for name, value in values.items():
        client.put(_at(worker, name), {"value": value})
    done(f"{len(values)} secrets are set", as_json, set=list(values))


@secret.command("rotate-key")
@node_options
@json_option
def rotate_key(client: Client, as_json: bool) -> None:
    """Encrypt all secrets of the node with a new root key. For admins; the node keeps serving."""
    made = client.post("/api/secrets/rotate-key")
    done(f"{made['secrets']} secrets are encrypted with root key {made['key_id']}", as_json, **made)
