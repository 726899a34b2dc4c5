"""`atoll workflows`: workflows and their instances."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import ask_first, done, echo, fail, show_json, show_table, shown_time
from atoll.plain import plain_line

if TYPE_CHECKING:
    from atoll.cli.client import Client

LATEST = "latest"


@click.group()
def workflows() -> None:
    """List workflows, start instances of them, see their steps, and steer them.

    An INSTANCE is an id, or `latest`.

    \b
    Examples:
      atoll workflows trigger orders '{"item": "cat"}'
      atoll workflows describe orders latest
      atoll workflows send-event orders latest paid '{"amount": 12}'
    """


def _at(workflow: str, *rest: str) -> str:
    from atoll.cli.client import segment

    return "/".join(["/api/workflows", *map(segment, (workflow, *rest))])


def _instance(client: Client, workflow: str, instance: str) -> str:
    if instance != LATEST:
        return instance
    found = client.get(_at(workflow, "instances") + "?limit=1")["instances"]
    if not found:
        fail(f"the workflow {workflow} has no instances", f"start one: atoll workflows trigger {workflow}")
    return str(found[0]["id"])


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        fail(f"{what} is not JSON: {error}", """quote it for the shell: '{"item": "cat"}'""")


@workflows.command("list")
@node_options
@json_option
def list_workflows(client: Client, as_json: bool) -> None:
    """List the workflows."""
    found = client.all("/api/workflows", "workflows")
    if as_json:
        show_json(found)
        return
    rows = [(each["name"], each["worker"], each["class_name"], each["instances"]) for each in found]
    show_table(("name", "worker", "class", "instances"), rows, "no workflows yet: a deploy with `workflows` makes them")


@workflows.command("delete")
@click.argument("workflow")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@node_options
@json_option
def delete(client: Client, workflow: str, yes: bool, as_json: bool) -> None:
    """Delete a workflow with all its instances."""
    ask_first(f"Delete {workflow} with all its instances on {client.target.api}?", yes)
    client.delete(_at(workflow))
    done(f"deleted {workflow}", as_json, deleted=workflow)


@workflows.command("instances")
@click.argument("workflow")
@click.option("--status", default="", help="Only instances with this status.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many.")
@node_options
@json_option
def instances(client: Client, workflow: str, status: str, limit: int, as_json: bool) -> None:
    """List instances, the newest first."""
    more = f"&status={status}" if status.isalpha() else ""
    found = client.get(_at(workflow, "instances") + f"?limit={limit}{more}")["instances"]
    if as_json:
        show_json(found)
        return
    rows = [
        (each["id"], each["status"], shown_time(each["created_at"]), shown_time(each["ended_at"])) for each in found
    ]
    show_table(("id", "status", "created", "ended"), rows, "no instances")


@workflows.command("describe")
@click.argument("workflow")
@click.argument("instance", default=LATEST)
@node_options
@json_option
def describe(client: Client, workflow: str, instance: str, as_json: bool) -> None:
    """Show an instance with its steps."""
    found = client.get(_at(workflow, "instances", _instance(client, workflow, instance)))
    if as_json:
        show_json(found)
        return
    echo(f"{found['id']}: {found['status']}, created {shown_time(found['queued'])}")
    if found["error"] is not None:
        echo(f"error: {found['error']['name']}: {plain_line(found['error']['message'])}")
    elif found["output"] is not None:
        echo(f"output: {plain_line(json.dumps(found['output']))}")
    rows = [_row(step) for step in found["steps"] if step["type"] != "termination"]
    show_table(("step", "kind", "state", "attempts", "began", "ended"), rows, "no steps yet")


def _row(step: dict[str, Any]) -> tuple[object, ...]:
    kind, attempts = step["type"], len(step.get("attempts", ()))
    is_over = step["finished"] if kind != "step" else step["success"] is not None
    state = "failed" if is_over and step["error"] is not None else "done" if is_over else "open"
    ended = shown_time(step["end"]) if is_over else ""
    return plain_line(step["name"]), kind, state, attempts or "", shown_time(step["start"]), ended


@workflows.command("trigger")
@click.argument("workflow")
@click.argument("params", default="{}")
@click.option("--id", "id", default="", help="The id of the instance; else a random one.")
@node_options
@json_option
def trigger(client: Client, workflow: str, params: str, id: str, as_json: bool) -> None:
    """Start an instance. PARAMS is JSON."""
    body = {"params": _json(params, "PARAMS"), **({"id": id} if id else {})}
    made = client.post(_at(workflow, "instances"), body)
    done(f"started {made['id']}", as_json, **made)


@workflows.command("send-event")
@click.argument("workflow")
@click.argument("instance")
@click.argument("type")
@click.argument("payload", default="null")
@node_options
@json_option
def send_event(client: Client, workflow: str, instance: str, type: str, payload: str, as_json: bool) -> None:
    """Send an event of a TYPE to an instance. PAYLOAD is JSON."""
    at = _at(workflow, "instances", _instance(client, workflow, instance), "events")
    state = client.post(at, {"type": type, "payload": _json(payload, "PAYLOAD")})
    done(f"sent {type} to {state['id']}", as_json, **state)


def _change(client: Client, workflow: str, instance: str, do: str, as_json: bool, body: Any = None) -> None:
    state = client.post(_at(workflow, "instances", _instance(client, workflow, instance), do), body or {})
    done(f"{state['id']}: {state['status']}", as_json, **state)


@workflows.command("pause")
@click.argument("workflow")
@click.argument("instance")
@node_options
@json_option
def pause(client: Client, workflow: str, instance: str, as_json: bool) -> None:
    """Pause an instance, once the steps that run are done."""
    _change(client, workflow, instance, "pause", as_json)


@workflows.command("resume")
@click.argument("workflow")
@click.argument("instance")
@node_options
@json_option
def resume(client: Client, workflow: str, instance: str, as_json: bool) -> None:
    """Let a paused instance go on."""
    _change(client, workflow, instance, "resume", as_json)


@workflows.command("terminate")
@click.argument("workflow")
@click.argument("instance")
@node_options
@json_option
def terminate(client: Client, workflow: str, instance: str, as_json: bool) -> None:
    """End an instance."""
    _change(client, workflow, instance, "terminate", as_json)


@workflows.command("restart")
@click.argument("workflow")
@click.argument("instance")
@click.option("--from", "step", default="", metavar="STEP", help="The name of the step to begin with; else the first.")
@node_options
@json_option
def restart(client: Client, workflow: str, instance: str, step: str, as_json: bool) -> None:
    """Run an instance anew."""
    _change(client, workflow, instance, "restart", as_json, {"from": {"name": step}} if step else None)
