"""`atoll logs` and `atoll tail`: the past calls of a worker, and its calls as they happen.

Text from a worker comes last in a line. Its further lines are indented deeper than any line that Atoll writes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.options import Command, json_option, node_options, worker_named
from atoll.cli.talk import echo, echo_json, fail, paint, say, show_json
from atoll.plain import plain_line
from atoll.wire.generated import OUTCOME_NAMES, Level

if TYPE_CHECKING:
    from atoll.cli.client import Client

LEVEL_COLOURS = {"debug": "bright_black", "warn": "yellow", "error": "red"}
OUTCOMES = tuple(OUTCOME_NAMES.values())
LEVELS = tuple(level.name.lower() for level in Level)


def filter_options(command: Command) -> Command:
    """--outcome, --level, --text and --version, with the names of the API."""
    outcome = click.option(
        "--outcome",
        type=click.Choice(OUTCOMES),
        metavar="NAME",
        help=f"Only calls with this outcome: {', '.join(OUTCOMES)}.",
    )
    level = click.option(
        "--level",
        type=click.Choice(LEVELS),
        metavar="NAME",
        help=f"Only calls with a console line of this level or a more serious one: {', '.join(LEVELS)}.",
    )
    text = click.option("--text", metavar="TEXT", help="Only calls with this text in their lines, exception or URL.")
    version = click.option("--version", metavar="VERSION", help="Only calls of this version: a number or an id.")
    return outcome(level(text(version(command))))


def version_id(client: Client, path: str, version: str | None) -> str | None:
    """The id of a version that was named by its id or number."""
    from atoll.cli.client import segment

    if not version or not version.isdigit():
        return version
    return str(client.get(f"{path}/versions/{segment(version)}")["id"])


def show_invocation(record: dict[str, Any], *, lines: bool = True) -> None:
    """One call: its request and outcome, then its exception and, unless `lines` is false, its console lines."""
    good = record["outcome"] == "ok" and record["status"] < 500
    what = f"{record['method']} {record['url']}" if record["event"] == "fetch" else record["event"]
    costs = f"cpu {record['cpu_ms']:.1f} ms, wall {record['wall_ms']:.1f} ms"
    outcome = record["outcome"] if record["outcome"] != "ok" else str(record["status"] or "ok")
    shown = paint(plain_line(outcome), fg="green" if good else "red")
    echo(f"{_time(record)}  {shown}  {plain_line(what)}  {paint(costs, dim=True)}")
    for line in record["logs"] if lines else ():
        level = plain_line(line["level"])
        echo(f"    {paint(level, fg=LEVEL_COLOURS.get(level, 'cyan'))}  {indented(line['message'])}")
    if record.get("truncated"):
        echo("    … the call wrote more than is kept")
    exception = record.get("exception")
    if exception:
        text = exception.get("stack") or f"{exception['type']}: {exception['message']}"
        echo(f"    {paint('exception', fg='red')}  {paint(indented(text), fg='red')}")


def _time(record: dict[str, Any]) -> str:
    return plain_line(record["timestamp"])


def indented(text: str) -> str:
    return text.replace("\n", "\n        ")


@click.command()
@click.argument("worker", required=False)
@click.option(
    "-n",
    "--limit",
    default=50,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Show this many of the newest calls.",
)
@filter_options
@node_options
@json_option
def logs(
    client: Client,
    worker: str | None,
    limit: int,
    outcome: str | None,
    level: str | None,
    text: str | None,
    version: str | None,
    as_json: bool,
) -> None:
    """Show the last calls of WORKER (by default the current project's): outcome, cost, console, exceptions.

    The newest call comes last, as in `atoll tail`, also with --json. Times are in UTC.

    \b
    Examples:
      atoll logs hello
      atoll logs hello --outcome exception
      atoll logs hello --limit 5 --json
    """
    from atoll.cli.client import segment

    path = f"/api/workers/{segment(worker_named(worker))}"
    only = version_id(client, path, version)
    records = client.all(f"{path}/logs", "logs", most=limit, outcome=outcome, level=level, text=text, version=only)
    records.reverse()
    if as_json:
        show_json(records)
        return
    for record in records:
        show_invocation(record)
    if not records:
        say("no calls match" if outcome or level or text or version else "no calls yet")


def show_line(line: dict[str, Any]) -> None:
    """A console line of a running call."""
    level = plain_line(line["level"])
    shown = paint(f"{level:<5}", fg=LEVEL_COLOURS.get(level, "cyan"))
    whose = plain_line(f"{line['method']} {line['url']}".strip() or "top level")
    echo(f"{_time(line)}  {shown}  {paint(whose, dim=True)}  {indented(line['message'])}")


def show_event(kind: str, data: str, *, as_json: bool, lines: bool) -> None:
    """One event of a live stream. With `lines`, console lines are events of their own."""
    event = json.loads(data)
    if as_json and kind == "invocation":
        echo_json(event)
    elif kind == "invocation":
        show_invocation(event, lines=not lines)
    elif kind == "line":
        show_line(event)
    elif kind == "dropped":
        say(f"… {event['count']} more")


@click.command()
@click.argument("worker", required=False)
@filter_options
@node_options
@json_option
def tail(
    client: Client,
    worker: str | None,
    outcome: str | None,
    level: str | None,
    text: str | None,
    version: str | None,
    as_json: bool,
) -> None:
    """Show the calls of WORKER (by default the current project's) as they happen, until Ctrl-C.

    A console line is shown as soon as it is written, and a call when it ends. With a filter or --json there is one
    record per call, with all its lines. Times are in UTC.

    \b
    Examples:
      atoll tail hello
      atoll tail --outcome exception
      atoll tail hello --json | jq .url
    """
    from atoll.cli.client import NO_NODE, segment

    name = worker_named(worker)
    kind = ""
    path = f"/api/workers/{segment(name)}"
    only = version_id(client, path, version)
    lines = not (as_json or outcome or level or text or version)
    query = {"outcome": outcome, "level": level, "text": text, "version": only, "lines": "true" if lines else ""}
    try:
        for line in client.lines(f"{path}/logs/live", **query):
            if line == ": listening":
                say(f"listening to {name} on {client.target.api}; Ctrl-C ends")
            elif line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                show_event(kind, line[6:], as_json=as_json, lines=lines)
    except KeyboardInterrupt:  # the usual end
        return
    except (ValueError, KeyError, TypeError):
        fail(f"{client.target.api} sent an event that no node sends", NO_NODE)
    fail("the node ended the stream", "it is stopping, or the worker was deleted")
