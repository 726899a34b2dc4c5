"""`atoll email`: deliver a message to a worker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options, worker_named
from atoll.cli.talk import fail, say, show_json

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.group()
def email() -> None:
    """Deliver a message to the email handler of a worker.

    \b
    Examples:
      atoll email send message.eml --worker inbox --from ada@example.com --to inbox@example.com
    """


@email.command("send")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--worker", metavar="NAME", help="The worker.  [default: the project's here]")
@click.option("--from", "sender", required=True, metavar="ADDRESS", help="The sender of the envelope.")
@click.option("--to", "recipient", required=True, metavar="ADDRESS", help="The recipient of the envelope.")
@node_options
@json_option
def send(client: Client, file: Path, worker: str | None, sender: str, recipient: str, as_json: bool) -> None:
    """Deliver the message in FILE (`-` for stdin) to the email handler of a worker, and wait for it."""
    import json

    from atoll.cli.client import segment

    path = f"/api/workers/{segment(worker_named(worker))}/email"
    envelope: dict[str, object] = {"from": sender, "to": recipient}
    answer = client.send("POST", path, _content(file), {"Content-Type": "message/rfc822"}, envelope)
    handled = json.loads(answer.read())
    if as_json:
        show_json(handled)
    if handled["rejected"] is not None:
        fail(f"the worker rejected the message: {handled['rejected']}")
    if handled["outcome"] != "ok":
        fail(f"it ended with {handled['outcome']}: {handled['message']}", "`atoll logs` shows its console lines")
    if not as_json:
        say("delivered")


def _content(file: Path) -> bytes:
    import sys

    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        fail(
            f"{file} cannot be read: {error.strerror}",
            "give the path of a message, such as one that a mail client saved",
        )
