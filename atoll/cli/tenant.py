"""`atoll tenant`: who shares a node, and how much each may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import done, fail, say, show_json, show_table

if TYPE_CHECKING:
    from atoll.cli.client import Client

QUOTAS = (
    "workers", "script_bytes", "requests_per_second", "concurrent_calls", "cpu_seconds_per_minute", "kv_keys",
    "kv_bytes", "queue_bytes", "max_cpu_ms", "max_wall_ms", "max_memory_mb", "max_subrequests",
    "max_internal_subrequests",
)  # fmt: skip


@click.group()
def tenant() -> None:
    """Make, list, bound and delete the tenants of a node. For operators.

    \b
    Examples:
      atoll tenant create acme --quota workers=20 --host "*.acme.example"
      atoll tenant set acme --quota requests_per_second=100
      atoll workers --tenant acme
    """


def quota_options(command: Any) -> Any:
    quota = click.option(
        "--quota", "quotas", multiple=True, metavar="NAME=N", help=f"Bound one of {', '.join(QUOTAS)}; `none` frees it."
    )
    host = click.option("--host", "hosts", multiple=True, metavar="PATTERN", help="A host its routes may have.")
    return quota(host(command))


def _body(quotas: tuple[str, ...], hosts: tuple[str, ...]) -> dict[str, Any]:
    wanted: dict[str, float | None] = {}
    for quota in quotas:
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
    """Make a tenant."""
    made = client.post("/api/tenants", {"name": name, **_body(quotas, hosts)})
    if as_json:
        show_json(made)
    else:
        say(f"made {name}; `atoll token create NAME --scope deploy --tenant {name}` makes a token for it")


@tenant.command("set")
@click.argument("name")
@quota_options
@node_options
@json_option
def change(client: Client, name: str, quotas: tuple[str, ...], hosts: tuple[str, ...], as_json: bool) -> None:
    """Change the quotas and hosts of a tenant; what is not named stays."""
    from atoll.cli.client import segment

    body = _body(quotas, hosts)
    if not body:
        fail("nothing was given to change", "use --quota or --host")
    changed = client.call("PATCH", f"/api/tenants/{segment(name)}", body)
    if as_json:
        show_json(changed)
    else:
        say(f"changed {name}")


@tenant.command("list")
@node_options
@json_option
def list_tenants(client: Client, as_json: bool) -> None:
    """List the tenants, what they use and what they may."""
    found = client.get("/api/tenants")["tenants"]
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
    """Delete a tenant that has nothing any more."""
    from atoll.cli.client import segment

    client.delete(f"/api/tenants/{segment(name)}")
    done(f"deleted {name}", as_json, deleted=name)
