"""`atoll routes`: which hosts and paths lead to which worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import show_json, show_table

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.command()
@node_options
@json_option
def routes(client: Client, as_json: bool) -> None:
    """List the hosts and paths that lead to workers. They come from `routes` in each worker's config.

    \b
    Examples:
      atoll routes
      atoll routes --json
    """
    found = client.all("/api/routes", "routes")
    if as_json:
        show_json(found)
        return
    rows = [(route["pattern"], route["worker"], route["kind"]) for route in found]
    show_table(("pattern", "worker", "kind"), rows, "no routes: there are no workers yet")
