"""`atoll dashboard`: the address of a node's dashboard, with a code that logs one browser in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import echo, say, show_json

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.command()
@click.option("--open", "opens", is_flag=True, help="Open it in the browser of this machine.")
@node_options
@json_option
def dashboard(client: Client, opens: bool, as_json: bool) -> None:
    """Print the address that opens the dashboard of a node.

    With a token, the address has a code that logs one browser in: within a minute, and once.

    \b
    Examples:
      atoll dashboard
      atoll dashboard --open
      atoll dashboard --profile home
    """
    made = client.post("/api/session/codes")
    url = client.target.api.rstrip("/") + str(made["path"])
    seconds = int(made["expires_in"])
    if opens:
        import webbrowser

        webbrowser.open(url)
    if as_json:
        show_json({"url": url, "expires_in": seconds})
        return
    if seconds:
        say(f"logs one browser in, within {seconds} s")
    echo(url)
