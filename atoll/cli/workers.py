"""`atoll workers`: the workers of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options, worker_named
from atoll.cli.talk import ask_first, done, show_json, show_table, shown_time

if TYPE_CHECKING:
    from atoll.cli.client import Client


class ListsByDefault(click.Group):
    """`atoll workers --json` is `atoll workers list --json`."""

    takes_argument = False  # the command `list` has one: `atoll versions hello` is `atoll versions list hello`

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_word = bool(args) and not args[0].startswith("-")
        is_list = is_word and self.takes_argument and args[0] not in self.commands
        if not args or is_list or (not is_word and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=ListsByDefault)
def workers() -> None:
    """List, show and delete the workers of a node. Without a command: list.

    \b
    Examples:
      atoll workers
      atoll workers show hello --json
      atoll workers delete hello
    """


@workers.command("list")
@node_options
@json_option
def list_workers(client: Client, as_json: bool) -> None:
    """List the workers of a node."""
    found = client.all("/api/workers", "workers")
    if as_json:
        show_json(found)
        return
    rows = [
        (worker["name"], worker["version"]["number"], shown_time(worker["updated_at"]), worker["url"])
        for worker in found
    ]
    show_table(("name", "version", "deployed", "url"), rows, "no workers yet: `atoll deploy` creates one")


@workers.command("show")
@click.argument("worker", required=False)
@node_options
@json_option
def show_worker(client: Client, worker: str | None, as_json: bool) -> None:
    """Show one worker: address, routes, variables, limits. By default the current project's."""
    from atoll.cli.client import segment

    found = client.get(f"/api/workers/{segment(worker_named(worker))}")
    if as_json:
        show_json(found)
        return
    rows = [(name, _shown(value)) for name, value in found.items()]
    show_table(("field", "value"), rows, "")


@workers.command("delete")
@click.argument("worker")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@node_options
@json_option
def delete_worker(client: Client, worker: str, yes: bool, as_json: bool) -> None:
    """Delete a worker and all its versions. Data it stored is kept."""
    from atoll.cli.client import segment

    ask_first(f"Delete the worker {worker} on {client.target.api}?", yes)
    client.delete(f"/api/workers/{segment(worker)}")
    done(f"deleted {worker}", as_json, deleted=worker)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={inner}" for name, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
