"""`atoll tenant`: the tenants of a node and their quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import done, fail, say, show_json, show_table
from atoll.manifests.every import quotas

if TYPE_CHECKING:
    from atoll.cli.client import Client

QUOTAS = (
    "workers", "script_bytes", "requests_per_second", "concurrent_calls", "cpu_seconds_per_minute", "max_cpu_ms",
    "max_wall_ms", "max_memory_mb", "max_subrequests", "max_internal_subrequests", *quotas(),
)  # fmt: skip


@click.group()
def tenant() -> None:
    """Create, list, limit and delete the tenants of a node. For operators.

    \b
    Examples:
      atoll tenant create acme --quota workers=20 --host "*.acme.example"
      atoll tenant set acme --quota requests_per_second=100
      atoll workers --tenant acme
    """


def quota_options(command: Any) -> Any:
    quota = click.option(
        "--quota",
        "quotas",
        multiple=True,
        metavar="NAME=N",
        help=f"Set a quota, one of {', '.join(QUOTAS)}; `none` removes it.",
    )
    host = click.option("--host", "hosts", multiple=True, metavar="PATTERN", help="A host that its routes may use.")
    return quota(host(command))


def _body(wanted_quotas: tuple[str, ...], hosts: tuple[str, ...]) -> dict[str, Any]:
    wanted: dict[str, float | None] = {}
    for quota in wanted_quotas:
        name, _, text = quota.partition("=")
        if name not in QUOTAS:
            fail(f"there is no quota `{name}`", f"the quotas are {', '.join(QUOTAS)}")
        try:
            wanted[name] = None if text == "none" else int(text) if text.isdigit() else float(text)
        except ValueError:
            fail(f"--quota is {quota!r}", "write it like --quota workers=20")
    body: dict[str, Any] = {"quotas": wanted} if wanted else {}
    return body | ({"hosts": list(hosts)} if hosts else {})


@tenant.command("create")
@click.argument("name")
@quota_options
@node_options
@json_option
def create(client: Client, name: str, quotas: tuple[str, ...], hosts: tuple[str, ...], as_json: bool) -> None:
    """Create a tenant."""
    made = client.post("/api/tenants", {"name": name, **_body(quotas, hosts)})
    if as_json:
        show_json(made)
    else:
        say(f"created {name}; `atoll token create NAME --scope deploy --tenant {name}` creates a token for it")


@tenant.command("set")
@click.argument("name")
@quota_options
@node_options
@json_option
def change(client: Client, name: str, quotas: tuple[str, ...], hosts: tuple[str, ...], as_json: bool) -> None:
    """Change quotas and hosts of a tenant. Others stay as they are."""
    from atoll.cli.client import segment

    body = _body(quotas, hosts)
    if not body:
        fail("there is nothing to change", "use --quota or --host")
    changed = client.call("PATCH", f"/api/tenants/{segment(name)}", body)
    if as_json:
        show_json(changed)
    else:
        say(f"changed {name}")


@tenant.command("list")
@node_options
@json_option
def list_tenants(client: Client, as_json: bool) -> None:
    """List the tenants with their usage and quotas."""
    found = client.all("/api/tenants", "tenants")
    if as_json:
        show_json(found)
        return
    rows = []
    for each in found:
        bounds = ", ".join(f"{name} {value}" for name, value in each["quotas"].items() if value is not None)
        hosts = "any" if each["hosts"] is None else ", ".join(each["hosts"]) or "none"
        rows.append((each["name"], each["usage"]["workers"], hosts, bounds or "none"))
    show_table(("name", "workers", "hosts", "bounds"), rows, "no tenants")


@tenant.command("delete")
@click.argument("name")
@node_options
@json_option
def delete(client: Client, name: str, as_json: bool) -> None:
    """Delete a tenant and its tokens. It must have no workers and no data left."""
    from atoll.cli.client import segment

    client.delete(f"/api/tenants/{segment(name)}")
    done(f"deleted {name}", as_json, deleted=name)
