"""`atoll versions` and `atoll rollback`: what a worker was, and going back to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options, worker_named
from atoll.cli.talk import paint, say, show_json, show_table

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.command()
@click.argument("worker", required=False)
@node_options
@json_option
def versions(client: Client, worker: str | None, as_json: bool) -> None:
    """List the versions of WORKER (by default the project's here), newest first.

    \b
    Examples:
      atoll versions hello
      atoll versions --json
    """
    from atoll.cli.client import segment

    found = client.get(f"/api/workers/{segment(worker_named(worker))}/versions")["versions"]
    if as_json:
        show_json(found)
        return
    rows = [
        (
            "*" if version["active"] else "",
            version["number"],
            version["created_at"][:19],
            version["author"],
            version["tag"],
            version["message"].partition("\n")[0],
        )
        for version in found
    ]
    show_table(("", "version", "deployed", "by", "tag", "message"), rows, "no versions")


@click.command()
@click.argument("version", required=False)
@click.option("-w", "--worker", metavar="NAME", help="Name or id of the worker.  [default: the project's here]")
@click.option("-m", "--message", default="", metavar="TEXT", help="Why.")
@node_options
@json_option
def rollback(client: Client, version: str | None, worker: str | None, message: str, as_json: bool) -> None:
    """Answer with an older version again: VERSION by its number or id, or the one before the active one.

    It takes over as a deploy does: calls that run finish with the version they have.

    \b
    Examples:
      atoll rollback
      atoll rollback 3 --worker shop --message "prices were wrong"
    """
    from atoll.cli.client import segment

    name = worker_named(worker)
    body = {"message": message, **({"version": version} if version else {})}
    found = client.post(f"/api/workers/{segment(name)}/rollback", body)
    if as_json:
        show_json(found)
    else:
        say(f"{paint(found['name'], bold=True)} answers with version {found['version']['number']} again")
        click.echo(found["url"])
