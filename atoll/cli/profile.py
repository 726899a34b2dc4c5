"""`atoll profile`: names for nodes."""

from __future__ import annotations

import sys

import click

from atoll.cli.profiles import read_profiles, write_profiles
from atoll.cli.talk import fail, say, show_json, show_table


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
def add(name: str, api: str, token: str, tenant: str) -> None:
    """Add a node, or change what is known of it. The first one becomes the default."""
    if not api.startswith(("http://", "https://")):
        fail(f"--api is {api}, which is no URL", "write it like https://atoll.example")
    if token == "-":
        token = sys.stdin.readline().strip()
    profiles, default = read_profiles()
    fields = {"api": api.rstrip("/"), "token": token, "tenant": tenant}
    profiles[name] = {key: value for key, value in fields.items() if value}
    write_profiles(profiles, default or name)
    say(f"{name} is {api}" + ("" if default else ", and the default"))


@profile.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
def use(name: str) -> None:
    """Make a node the default."""
    profiles, _ = read_profiles()
    if name not in profiles:
        fail(f"there is no profile `{name}`", f"there are: {', '.join(profiles) or 'none'}")
    write_profiles(profiles, name)
    say(f"commands speak to {name} now")


@profile.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Forget a node."""
    profiles, default = read_profiles()
    if profiles.pop(name, None) is None:
        fail(f"there is no profile `{name}`", f"there are: {', '.join(profiles) or 'none'}")
    write_profiles(profiles, "" if default == name else default)
    say(f"forgot {name}")
