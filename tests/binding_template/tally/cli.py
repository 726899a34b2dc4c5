"""`atoll tallies`: list them, and set them to 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import done, show_json, show_table

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.group()
def tallies() -> None:
    """List tallies and set them to 0."""


@tallies.command("list")
@node_options
@json_option
def list_tallies(client: Client, as_json: bool) -> None:
    """List the tallies."""
    found = client.get("/api/tallies")["tallies"]
    if as_json:
        show_json(found)
        return
    show_table(("name", "count"), [(each["name"], each["count"]) for each in found], "no tallies yet")


@tallies.command("reset")
@click.argument("tally")
@node_options
@json_option
def reset(client: Client, tally: str, as_json: bool) -> None:
    """Set TALLY to 0."""
    from atoll.cli.client import segment

    client.delete(f"/api/tallies/{segment(tally)}")
    done(f"reset {tally}", as_json, reset=tally)
