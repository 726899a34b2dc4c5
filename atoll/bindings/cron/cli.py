"""`atoll cron`: next runs, past runs, and a manual run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options, worker_named
from atoll.cli.talk import echo, fail, say, show_json, show_table, shown_time

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.group()
def cron() -> None:
    """See when the crons of a worker run and how they ran, and run one now.

    \b
    Examples:
      atoll cron list hello
      atoll cron run hello
      atoll cron run hello --cron "0 3 * * *" --time 1790000000000
    """


def _at(worker: str | None) -> str:
    from atoll.cli.client import segment

    return f"/api/workers/{segment(worker_named(worker))}/crons"


@cron.command("list")
@click.argument("worker", required=False)
@node_options
@json_option
def list_crons(client: Client, worker: str | None, as_json: bool) -> None:
    """Show when each cron of WORKER (by default the project's here) runs next, and its last runs."""
    found = client.get(_at(worker))
    if as_json:
        show_json(found)
        return
    rows = [(each["cron"], shown_time(each["next_run"])) for each in found["crons"]]
    show_table(("cron", "next run"), rows, "no crons: add them under [triggers] and deploy")
    if found["runs"]:
        echo()
        runs = [
            (shown_time(run["started_at"]), run["cron"], run["outcome"], run["message"]) for run in found["runs"][:20]
        ]
        show_table(("ran", "cron", "outcome", "message"), runs, "")


@cron.command("run")
@click.argument("worker", required=False)
@click.option(
    "--cron", "expression", metavar="TEXT", help="Cron expression for the handler.  [default: the worker's first]"
)
@click.option("--time", type=int, metavar="MS", help="Scheduled time for the handler, since 1970.  [default: now]")
@node_options
@json_option
def run(client: Client, worker: str | None, expression: str | None, time: int | None, as_json: bool) -> None:
    """Run the scheduled handler of WORKER (by default the project's here) now, and wait for it."""
    body = {name: value for name, value in {"cron": expression, "scheduled_time": time}.items() if value is not None}
    ran = client.post(f"{_at(worker)}/run", body)
    if as_json:
        show_json(ran)
    elif ran["outcome"] == "ok":
        say("ran: ok")
    if ran["outcome"] != "ok":
        fail(f"it ended with {ran['outcome']}: {ran['message']}", "`atoll logs` shows its console lines")
