"""`atoll token`: tokens of the control API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import done, echo, say, show_json, show_table, shown_time

if TYPE_CHECKING:
    from atoll.cli.client import Client

SCOPES = ("read", "deploy", "logs", "admin")


@click.group()
def token() -> None:
    """Create, list and revoke tokens for the control API of a node.

    \b
    Examples:
      atoll token create ci --scope deploy
      atoll token create laptop --scope admin --all-tenants
      atoll token list
      atoll token revoke TOKEN_ID
    """


@token.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(SCOPES),
    metavar="NAME",
    help="A scope of the token: read, deploy, logs, admin. Repeatable.",
)
@click.option("--all-tenants", is_flag=True, help="Valid for all tenants, not only for one.")
@click.option("--days", type=float, metavar="N", help="Lifetime of the token.  [default: it does not expire]")
@node_options
@json_option
def create(
    client: Client, name: str, scopes: tuple[str, ...], all_tenants: bool, days: float | None, as_json: bool
) -> None:
    """Create a token and print it. It cannot be shown again."""
    body: dict[str, object] = {"name": name, "scopes": list(scopes), "all_tenants": all_tenants}
    if days is not None:
        body["expires_in"] = days * 86_400
    made = client.post("/api/tokens", body)
    if as_json:
        show_json(made)
        return
    say(f"created {made['id']}; the token cannot be shown again")
    echo(made["token"])


@token.command("list")
@node_options
@json_option
def list_tokens(client: Client, as_json: bool) -> None:
    """List the tokens, without their text."""
    found = client.all("/api/tokens", "tokens")
    if as_json:
        show_json(found)
        return
    rows = [
        (
            each["id"],
            each["name"],
            each["tenant"] or "(all)",
            ",".join(each["scopes"]),
            shown_time(each["expires_at"]),
            shown_time(each["used_at"]),
        )
        for each in found
    ]
    show_table(("id", "name", "tenant", "scopes", "expires", "used"), rows, "no tokens")


@token.command("revoke")
@click.argument("token_id")
@node_options
@json_option
def revoke(client: Client, token_id: str, as_json: bool) -> None:
    """Revoke a token by its id. The node refuses it from then on."""
    from atoll.cli.client import segment

    client.delete(f"/api/tokens/{segment(token_id)}")
    done(f"revoked {token_id}", as_json, revoked=token_id)
