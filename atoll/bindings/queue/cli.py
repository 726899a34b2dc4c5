"""`atoll queues`: list queues, send messages, pause and purge."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.ask import read_text
from atoll.cli.options import json_option, node_options
from atoll.cli.talk import ask_first, done, fail, say, show_json, show_table

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.group()
def queues() -> None:
    """See what waits in queues, send messages, pause and empty them.

    \b
    Examples:
      atoll queues list
      atoll queues send jobs '{"resize": "cat.png"}'
      atoll queues pause jobs
      atoll queues purge jobs --yes
    """


def _at(queue: str, *rest: str) -> str:
    from atoll.cli.client import segment

    return "/".join(["/api/queues", segment(queue), *rest])


@queues.command("list")
@node_options
@json_option
def list_queues(client: Client, as_json: bool) -> None:
    """List the queues, their consumers, and how many messages wait."""
    found = client.all("/api/queues", "queues")
    if as_json:
        show_json(found)
        return
    rows = [
        (queue["name"], queue["consumer"] or ("HTTP" if queue["pulls"] else "nobody"),
         queue["waiting"], queue["delayed"], queue["leased"],
         "paused" if queue["paused"] else "")
        for queue in found
    ]  # fmt: skip
    show_table(("name", "consumer", "waiting", "delayed", "taken", ""), rows, "no queues yet: a deploy makes them")


@queues.command("create")
@click.argument("queue")
@node_options
@json_option
def create(client: Client, queue: str, as_json: bool) -> None:
    """Create a queue."""
    made = client.post("/api/queues", {"name": queue})
    done(f"made {queue}", as_json, **made)


@queues.command("delete")
@click.argument("queue")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@node_options
@json_option
def delete(client: Client, queue: str, yes: bool, as_json: bool) -> None:
    """Delete a queue with its messages."""
    ask_first(f"Delete the queue {queue} on {client.target.api}?", yes)
    client.delete(_at(queue))
    done(f"deleted {queue}", as_json, deleted=queue)


@queues.command("send")
@click.argument("queue")
@click.argument("body", required=False)
@click.option("--text", "as_text", is_flag=True, help="BODY is a text, not JSON.")
@click.option("--delay", type=int, default=0, metavar="SECONDS", help="Deliver it after this delay.")
@node_options
@json_option
def send(client: Client, queue: str, body: str | None, as_text: bool, delay: int, as_json: bool) -> None:
    """Send a message: BODY as JSON, or the JSON on stdin."""
    raw = body if body is not None else read_text("the message")
    if not raw and body is None:
        fail("stdin was empty, so nothing was sent", "pipe a message in, or give it: `atoll queues send QUEUE BODY`")
    value: Any = raw
    if not as_text:
        try:
            value = json.loads(raw)
        except ValueError as error:
            fail(f"the message is not JSON: {error}", "send a text with --text")
    kind = "text" if as_text else "json"
    sent = client.post(
        _at(queue, "messages"), {"messages": [{"body": value, "content_type": kind, "delay_seconds": delay}]}
    )
    if as_json:
        show_json(sent)
    else:
        say(f"sent to {queue}")


@queues.command("pause")
@click.argument("queue")
@node_options
@json_option
def pause(client: Client, queue: str, as_json: bool) -> None:
    """Pause delivery. Messages are kept until it is resumed."""
    client.post(_at(queue, "pause"))
    done(f"{queue} is paused", as_json, queue=queue, paused=True)


@queues.command("resume")
@click.argument("queue")
@node_options
@json_option
def resume(client: Client, queue: str, as_json: bool) -> None:
    """Resume delivery."""
    client.post(_at(queue, "resume"))
    done(f"{queue} delivers again", as_json, queue=queue, paused=False)


@queues.command("allow-pull")
@click.argument("queue")
@click.option("--off", is_flag=True, help="Let no consumer pull.")
@click.option("--batch-size", type=int, help="Messages of a pull that names no number.")
@click.option("--retries", type=int, help="Deliveries after the first.")
@click.option("--retry-delay", type=int, metavar="SECONDS", help="Until a message that is to be retried is due.")
@click.option("--visibility", type=int, metavar="SECONDS", help="For how long a pulled message is hidden.")
@click.option("--dead-letters", metavar="QUEUE", help="Where messages go after the last retry.")
@node_options
@json_option
def allow_pull(
    client: Client,
    queue: str,
    off: bool,
    batch_size: int | None,
    retries: int | None,
    retry_delay: int | None,
    visibility: int | None,
    dead_letters: str | None,
    as_json: bool,
) -> None:
    """Let a program pull the messages over HTTP, instead of a worker that consumes them."""
    wanted = {
        "batch_size": batch_size, "max_retries": retries, "retry_delay": retry_delay,
        "visibility_timeout_ms": None if visibility is None else visibility * 1000, "dead_letter_queue": dead_letters,
    }  # fmt: skip
    given = {name: value for name, value in wanted.items() if value is not None}
    if off and given:
        fail("--off takes no settings", f"`atoll queues allow-pull {queue} --off`")
    if off:
        client.delete(_at(queue, "pull"))
        done(f"nobody pulls from {queue} any more", as_json, queue=queue, pulls=False)
        return
    client.put(_at(queue, "pull"), given)
    done(f"{queue} can be pulled from", as_json, queue=queue, pulls=True)


@queues.command("purge")
@click.argument("queue")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@node_options
@json_option
def purge(client: Client, queue: str, yes: bool, as_json: bool) -> None:
    """Delete every message that no consumer has."""
    ask_first(f"Delete all messages of {queue} on {client.target.api}?", yes)
    purged = client.post(_at(queue, "purge"))["purged"]
    done(f"deleted {purged} messages", as_json, queue=queue, purged=purged)
