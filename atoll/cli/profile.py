"""`atoll profile`: names for nodes."""

from __future__ import annotations

import sys

import click

from atoll.cli.options import json_option
from atoll.cli.profiles import is_address, read_profiles, write_profiles
from atoll.cli.talk import done, fail, show_json, show_table


@click.group()
def profile() -> None:
    """Name nodes, and choose the one commands speak to. They are kept in ~/.config/atoll/config.toml.

    \b
    Examples:
      atoll profile add home --api https://atoll.example --token …
      atoll profile use home
      atoll workers --profile home
    """


@profile.command("add")
@click.argument("name")
@click.option("--api", required=True, metavar="URL", help="Address of the node's control API.")
@click.option("--token", default="", metavar="TEXT", help="A token of that node; `-` reads it from stdin.")
@click.option("--tenant", default="", metavar="NAME", help="Whose workers, for a token of all tenants.")
@json_option
def add(name: str, api: str, token: str, tenant: str, as_json: bool) -> None:
    """Add a node, or change what is known of it. The first one becomes the default."""
    if not is_address(api):
        fail(f"--api is {api}, which is no URL", "write it like https://atoll.example")
    if token == "-":
        token = sys.stdin.readline().strip()
    profiles, default = read_profiles()
    fields = {"api": api.rstrip("/"), "token": token, "tenant": tenant}
    profiles[name] = {key: value for key, value in fields.items() if value}
    write_profiles(profiles, default or name)
    told = f"{name} is {api}" + ("" if default else ", and the default")
    done(told, as_json, name=name, api=fields["api"], default=(default or name) == name)


@profile.command("list")
@json_option
def list_profiles(as_json: bool) -> None:
    """List the nodes; tokens are not shown."""
    profiles, default = read_profiles()
    rows = [
        {"name": name, "api": fields.get("api", ""), "token": "token" in fields, "default": name == default}
        for name, fields in profiles.items()
    ]
    if as_json:
        show_json(rows)
        return
    cells = [(row["name"], row["api"], "yes" if row["token"] else "no", "*" if row["default"] else "") for row in rows]
    show_table(("name", "api", "token", "default"), cells, "no profiles yet: `atoll profile add NAME --api URL`")


@profile.command("use")
@click.argument("name")
@json_option
def use(name: str, as_json: bool) -> None:
    """Make a node the default."""
    profiles, _ = read_profiles()
    if name not in profiles:
        fail(f"there is no profile `{name}`", f"there are: {', '.join(profiles) or 'none'}")
    write_profiles(profiles, name)
    done(f"commands speak to {name} now", as_json, default=name)


@profile.command("remove")
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Forget a node."""
    profiles, default = read_profiles()
    if profiles.pop(name, None) is None:
        fail(f"there is no profile `{name}`", f"there are: {', '.join(profiles) or 'none'}")
    write_profiles(profiles, "" if default == name else default)
    done(f"forgot {name}", as_json, removed=name)
