"""`atoll versions secret`: change secrets in a new version that gets no traffic yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.options import Command, json_option, node_options, worker_named, worker_option
from atoll.cli.secret import empty_option, read_value, read_values
from atoll.cli.talk import paint, say, show_json, show_table, shown_time

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.group("secret")
def version_secret() -> None:
    """Change secrets in a new version that gets no traffic: a copy of the newest version.

    `atoll versions deploy` gives it traffic. `atoll secret` changes secrets at once instead.

    \b
    Examples:
      atoll versions secret put API_KEY
      printenv API_KEY | atoll versions secret put API_KEY --worker shop
      atoll versions secret bulk .env.production --message "new keys"
      atoll versions secret list
    """


def word_options(command: Command) -> Command:
    message = click.option("-m", "--message", default="", metavar="TEXT", help="A message to store with this version.")
    tag = click.option("--tag", default="", metavar="TEXT", help="A tag for this version, such as a commit.")
    return message(tag(command))


def _at(name: str) -> str:
    from atoll.cli.client import segment

    return f"/api/workers/{segment(name)}"


def _store(
    client: Client, worker: str | None, changes: Mapping[str, str | None], message: str, tag: str, as_json: bool
) -> None:
    name = worker_named(worker)
    body = {"secrets": changes, "message": message, "tag": tag}
    found = client.post(f"{_at(name)}/versions/latest/secrets", body)
    if as_json:
        show_json(found)
        return
    say(
        f"stored version {found['number']} of {paint(name, bold=True)} ({found['id']}), without traffic",
        f"{paint('hint:', fg='cyan')} atoll versions deploy {found['number']} gives it all traffic",
    )


@version_secret.command("put")
@click.argument("name")
@empty_option
@word_options
@worker_option
@node_options
@json_option
def put(
    client: Client, name: str, allow_empty: bool, message: str, tag: str, worker: str | None, as_json: bool
) -> None:
    """Set a secret in a new version. A terminal prompts for the value; otherwise the value is all of stdin.

    One newline at the end of stdin is removed. An empty value is rejected: usually it comes from a broken pipe.
    """
    _store(client, worker, {name: read_value(name, allow_empty)}, message, tag, as_json)


@version_secret.command("delete")
@click.argument("name")
@word_options
@worker_option
@node_options
@json_option
def delete(client: Client, name: str, message: str, tag: str, worker: str | None, as_json: bool) -> None:
    """Delete a secret in a new version. Older versions keep it."""
    _store(client, worker, {name: None}, message, tag, as_json)


@version_secret.command("bulk")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@empty_option
@word_options
@worker_option
@node_options
@json_option
def bulk(
    client: Client, file: Path, allow_empty: bool, message: str, tag: str, worker: str | None, as_json: bool
) -> None:
    """Set all secrets in FILE in one new version: NAME=value lines, or one JSON object of strings."""
    _store(client, worker, read_values(file, allow_empty), message, tag, as_json)


@version_secret.command("list")
@click.option("--version", metavar="VERSION", help="Only this version: a number or an id, or `latest`.")
@worker_option
@node_options
@json_option
def list_secrets(client: Client, version: str | None, worker: str | None, as_json: bool) -> None:
    """List the names of secrets of each version that has traffic, and of the newest version."""
    where = _at(worker_named(worker))
    found = [
        {
            "version": each["number"],
            "percentage": each["percentage"],
            "secrets": client.all(f"{where}/versions/{each['id']}/secrets", "secrets"),
        }
        for each in _wanted(client, where, version)
    ]
    if as_json:
        show_json(found)
        return
    rows = [
        (each["version"], f"{each['percentage']:g}%", secret["name"], shown_time(secret["updated_at"]))
        for each in found
        for secret in each["secrets"]
    ]
    show_table(("version", "traffic", "name", "set"), rows, "no secrets")


def _wanted(client: Client, where: str, version: str | None) -> list[dict[str, Any]]:
    from atoll.cli.client import segment

    if version is not None and version != "latest":
        return [client.get(f"{where}/versions/{segment(version)}")]
    newest: dict[str, Any] = client.get(f"{where}/versions", limit=1)["versions"][0]
    shares: list[dict[str, Any]] = [] if version else client.get(where)["traffic"]
    return [newest, *(share for share in shares if share["id"] != newest["id"])]


def tell_lost_secrets(client: Client, name: str, base: dict[str, Any], made: dict[str, Any]) -> None:
    """Warn if a new version lacks secrets that were set in the newest version before it: an upload builds on the
    active version."""
    from atoll.cli.client import segment

    if base["active"]:
        return
    where = _at(name)
    old, new = (
        {each["name"]: each["updated_at"] for each in client.all(f"{where}/versions/{segment(id)}/secrets", "secrets")}
        for id in (base["id"], made["id"])
    )
    lost = [secret for secret, at in old.items() if new.get(secret, "") < at]
    if lost:
        say(
            f"{paint('warning:', fg='yellow')} version {base['number']} has other values of the secrets"
            f" {', '.join(lost)}: an upload has those of the active version",
            f"{paint('hint:', fg='cyan')} set them again: atoll versions secret put {lost[0]}",
        )
