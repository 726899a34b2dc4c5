"""`atoll errors`: the errors of workers, in groups of one kind each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import echo, paint, say, show_json
from atoll.plain import plain_line

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.command()
@click.argument("worker", required=False)
@click.option(
    "-n", "--limit", default=20, show_default=True, type=click.IntRange(1), metavar="N", help="Show this many groups."
)
@node_options
@json_option
def errors(client: Client, worker: str | None, limit: int, as_json: bool) -> None:
    """Show the errors of all workers, or of WORKER, in groups: how often, since when, where.

    Errors with the same type, the same message but for numbers and quoted texts, and the same place in the code are one
    group. The group seen last comes first. Times are in UTC.

    \b
    Examples:
      atoll errors
      atoll errors hello --limit 5
    """
    found = client.all("/api/errors", "errors", most=limit, worker=worker)
    if as_json:
        show_json(found)
        return
    for each in found:
        times = f"{each['count']} x" if each["count"] > 1 else "once"
        seen = f"{plain_line(each['first_seen'])} to {plain_line(each['last_seen'])}"
        name = plain_line(each["worker"])
        echo(f"{paint(times, bold=True)}  {paint(name, fg='cyan')}  {paint(plain_line(each['message']), fg='red')}")
        place = plain_line(each["frame"]) or "no place is known"
        echo(f"    {place}  {paint(seen, dim=True)}  {plain_line(each['fingerprint'])}")
    if not found:
        say("no errors")
