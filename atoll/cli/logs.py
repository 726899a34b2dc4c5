"""`atoll logs` and `atoll tail`: the calls of a worker, those that were and those that come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.options import json_option, node_options, worker_named
from atoll.cli.talk import fail, paint, say, show_json

if TYPE_CHECKING:
    from atoll.cli.client import Client

LEVEL_COLOURS = {"debug": "bright_black", "warn": "yellow", "error": "red"}


def show_invocation(record: dict[str, Any], *, lines: bool = True) -> None:
    """One call: what was asked and how it ended, then what it said, unless that was shown before, and threw."""
    good = record["outcome"] == "ok" and record["status"] < 500
    what = f"{record['method']} {record['url']}" if record["event"] == "fetch" else record["event"]
    costs = f"cpu {record['cpu_ms']:.1f} ms, wall {record['wall_ms']:.1f} ms"
    outcome = record["outcome"] if record["outcome"] != "ok" else str(record["status"] or "ok")
    time = record["timestamp"][11:23]
    click.echo(f"{time}  {paint(outcome, fg='green' if good else 'red')}  {what}  {paint(costs, dim=True)}")
    for line in record["logs"] if lines else ():
        level = line["level"]
        click.echo(f"    {paint(level, fg=LEVEL_COLOURS.get(level, 'cyan'))}  {indented(line['message'])}")
    if record.get("truncated"):
        click.echo("    … more was said than is kept")
    exception = record.get("exception")
    if exception:
        text = exception.get("stack") or f"{exception['type']}: {exception['message']}"
        click.echo(f"    {paint(indented(text), fg='red')}")


def indented(text: str) -> str:
    return text.replace("\n", "\n    ")


@click.command()
@click.argument("worker", required=False)
@click.option("-n", "--limit", default=50, show_default=True, metavar="N", help="How many calls, the newest.")
@node_options
@json_option
def logs(client: Client, worker: str | None, limit: int, as_json: bool) -> None:
    """Show the last calls of WORKER (by default the project's here), oldest first: outcome, cost, console, exceptions.

    \b
    Examples:
      atoll logs hello
      atoll logs hello --limit 5 --json
    """
    from atoll.cli.client import segment

    records = client.get(f"/api/workers/{segment(worker_named(worker))}/logs", limit=limit)["logs"]
    if as_json:
        show_json(records)
        return
    for record in reversed(records):
        show_invocation(record)
    if not records:
        say("no calls yet")


def show_line(line: dict[str, Any]) -> None:
    """A console line of a call that goes on."""
    level = paint(f"{line['level']:<5}", fg=LEVEL_COLOURS.get(line["level"], "cyan"))
    whose = paint(f"{line['method']} {line['url']}".strip() or "top level", dim=True)
    click.echo(f"{line['timestamp'][11:23]}  {level}  {indented(line['message'])}  {whose}")


def show_event(kind: str, data: str, *, as_json: bool, lines: bool) -> None:
    """One event of a live stream; `lines`: the console was told line by line."""
    if as_json and kind == "invocation":
        click.echo(data)
    elif kind == "invocation":
        show_invocation(json.loads(data), lines=not lines)
    elif kind == "line":
        show_line(json.loads(data))
    elif kind == "dropped":
        say(f"… {json.loads(data)['count']} more")


@click.command()
@click.argument("worker", required=False)
@click.option("--outcome", metavar="NAME", help="Only calls that ended so: ok, exception, exceeded_cpu, …")
@click.option("--level", metavar="NAME", help="Only calls that said something at least so serious: log, warn, error.")
@click.option("--text", metavar="TEXT", help="Only calls that said or failed with these words.")
@node_options
@json_option
def tail(
    client: Client, worker: str | None, outcome: str | None, level: str | None, text: str | None, as_json: bool
) -> None:
    """Show the calls of WORKER (by default the project's here) as they happen, until Ctrl-C.

    What a call writes to the console is shown as it is said, and the call when it is over. With a filter, or as JSON,
    there is one record per call, with all that it said.

    \b
    Examples:
      atoll tail hello
      atoll tail --outcome exception
      atoll tail hello --json | jq .url
    """
    from atoll.cli.client import segment

    name = worker_named(worker)
    kind = ""
    lines = not (as_json or outcome or level or text)
    query = {"outcome": outcome, "level": level, "text": text, "lines": "true" if lines else ""}
    try:
        for line in client.lines(f"/api/workers/{segment(name)}/logs/live", **query):
            if line == ": listening":
                say(f"listening to {name} on {client.target.api}; Ctrl-C ends")
            elif line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                show_event(kind, line[6:], as_json=as_json, lines=lines)
    except KeyboardInterrupt:  # how it is meant to end
        return
    fail("the node ended the stream", "it stops, or the worker was deleted")
