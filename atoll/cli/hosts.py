"""`atoll hosts`: hosts that stay reserved for the tenant that last used them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import done, show_json, show_table, shown_time

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.group()
def hosts() -> None:
    """List and release reserved hosts: a host stays reserved for the tenant that last used it.

    \b
    Examples:
      atoll hosts list
      atoll hosts release '*shop.localhost'
    """


@hosts.command("list")
@node_options
@json_option
def list_hosts(client: Client, as_json: bool) -> None:
    """List the reserved hosts of your tenant, or of all tenants with an operator's token."""
    found: list[dict[str, Any]] = []
    cursor = "0"
    while cursor:
        page = client.get(f"/api/reserved-hosts?limit=1000&cursor={quote(cursor)}")
        found += page["hosts"]
        cursor = page.get("cursor", "")
    if as_json:
        show_json(found)
        return
    rows = [(each["host"], each["tenant"] or "(deleted)", shown_time(each["reserved_until"])) for each in found]
    show_table(("host", "tenant", "until"), rows, "no reserved hosts")


@hosts.command("release")
@click.argument("host")
@node_options
@json_option
def release(client: Client, host: str, as_json: bool) -> None:
    """Release a host, so that any tenant can use it."""
    from atoll.cli.client import segment

    client.delete(f"/api/reserved-hosts/{segment(host)}")
    done(f"released {host}", as_json, released=host)
