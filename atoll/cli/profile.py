"""`atoll profile`: names for nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from atoll.cli.ask import read_token
from atoll.cli.options import json_option, node_options
from atoll.cli.profiles import NodeTarget, address_hint, is_address, read_profiles, write_profiles
from atoll.cli.talk import Failed, done, echo, fail, show_json, show_table, shown_time

if TYPE_CHECKING:
    from atoll.cli.client import Client

UNCHECKED = "--no-check stores it without a check"


@click.group()
def profile() -> None:
    """Name nodes and choose the one that commands use. Profiles are stored in ~/.config/atoll/config.toml.

    \b
    Examples:
      atoll profile add home --api https://atoll.example --token -
      atoll profile use home
      atoll workers --profile home
      eval "$(atoll profile env)"
    """


@profile.command("add")
@click.argument("name")
@click.option("--api", required=True, metavar="URL", help="Address of the node's control API.")
@click.option("--token", metavar="TEXT", help="A token of that node; `-` prompts for it or reads a line of stdin.")
@click.option("--tenant", default="", metavar="NAME", help="The tenant to act for, with a token of all tenants.")
@click.option("--check/--no-check", default=True, help="Check the token with the node first.  [default: yes]")
@json_option
def add(name: str, api: str, token: str | None, tenant: str, check: bool, as_json: bool) -> None:
    """Add or change a profile. The first one becomes the default.

    The node checks the token before anything is stored. `--token -` keeps the token out of the shell's history and does
    not show it while you type. Only you can read the file it is stored in.

    \b
    Examples:
      atoll profile add home --api https://atoll.example --token -
      atoll profile add home --api http://localhost:8080 --token - < admin-token
    """
    if not name.strip():
        fail("the name of the profile is empty", "write it like `atoll profile add home --api https://atoll.example`")
    if not is_address(api):
        fail(f"--api is {api}, which is not a URL", address_hint(api))
    if token is not None and not token.strip():
        fail("--token is empty", "leave it out, or let `--token -` prompt for it")
    target = NodeTarget(api.rstrip("/"), read_token() if token == "-" else token or "", tenant)
    caller = _checked(target) if check else None
    profiles, default = read_profiles()
    fields = {"api": target.api, "token": target.token, "tenant": tenant}
    profiles[name] = {key: value for key, value in fields.items() if value}
    write_profiles(profiles, default or name)
    told = f"{name} is {target.api}" + ("" if default else ", and the default") + f"; {_described(caller, target)}"
    facts: dict[str, object] = {} if caller is None else {"caller": caller}
    done(told, as_json, name=name, api=target.api, default=(default or name) == name, **facts)


def _checked(target: NodeTarget) -> dict[str, Any]:
    """The caller that the node sees. Raises Failed if the node refuses the token or does not answer."""
    from atoll.cli.client import ApiRefusal, Client

    try:
        with Client(target, timeout=10) as client:
            found: dict[str, Any] = client.get("/api/whoami")
            return {key: found[key] for key in ("name", "tenant", "all_tenants", "scopes", "expires_at")}
    except ApiRefusal as refusal:
        if refusal.status == 401 and not target.token:
            raise Failed(
                f"nothing was stored: {target.api} needs a token", f"add --token -, which prompts for it; {UNCHECKED}"
            ) from None
        if refusal.status == 401:
            hint = f"the token may be mistyped, revoked, expired or from another node; {UNCHECKED}"
            raise Failed(f"nothing was stored: {target.api} refuses this token", hint) from None
        if refusal.status == 404 and "whoami" in refusal.message:
            hint = f"check --api, or update the node; {UNCHECKED}"
            raise Failed(f"nothing was stored: {target.api} is not an Atoll node of this version", hint) from None
        raise Failed(f"nothing was stored: {refusal.message}", f"{refusal.hint}; {UNCHECKED}".strip("; ")) from None
    except Failed as failed:
        raise Failed(f"nothing was stored: {failed.message}", f"{failed.hint}; {UNCHECKED}".strip("; ")) from None


def _described(caller: dict[str, Any] | None, target: NodeTarget) -> str:
    if caller is None:
        return "it was not asked" if not target.token else "the token was not checked"
    whose = f"all tenants, acting for `{caller['tenant']}`" if caller["all_tenants"] else f"tenant `{caller['tenant']}`"
    what = f"token `{caller['name']}`" if target.token else "no token is needed on this machine"
    end = f"; expires {shown_time(caller['expires_at'])}" if caller["expires_at"] else ""
    return f"{what}: {whose}, scopes {', '.join(caller['scopes'])}{end}"


@profile.command("list")
@json_option
def list_profiles(as_json: bool) -> None:
    """List the profiles, without their tokens."""
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
    """Make a profile the default."""
    profiles, _ = read_profiles()
    if name not in profiles:
        fail(f"there is no profile `{name}`", f"there are: {', '.join(profiles) or 'none'}")
    write_profiles(profiles, name)
    done(f"commands now use {name}", as_json, default=name)


@profile.command("remove")
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Remove a profile."""
    profiles, default = read_profiles()
    if profiles.pop(name, None) is None:
        fail(f"there is no profile `{name}`", f"there are: {', '.join(profiles) or 'none'}")
    write_profiles(profiles, "" if default == name else default)
    done(f"removed {name}", as_json, removed=name)


@profile.command("env")
@node_options
@json_option
def environment(client: Client, as_json: bool) -> None:
    """Print the variables with which wrangler and Cloudflare's SDKs use a node.

    The account is the tenant of the token, or of --tenant. The output has the token in it: do not store it in a log.

    \b
    Examples:
      eval "$(atoll profile env)" && npx wrangler deploy
      atoll profile env --profile home
    """
    import shlex

    from atoll.api.cloudflare import V4, account_id

    target = client.target
    if not target.token:
        hint = "make one with `atoll token create wrangler --scope deploy`, and store it: `atoll profile add`"
        fail("wrangler needs a token, and this node is used without one", hint)
    tenant = client.get("/api/whoami")["tenant"]
    base = target.api.rstrip("/") + V4
    values = {
        "CLOUDFLARE_API_BASE_URL": base,
        "CLOUDFLARE_BASE_URL": base,
        "CLOUDFLARE_API_TOKEN": target.token,
        "CLOUDFLARE_ACCOUNT_ID": account_id(tenant),
    }
    if as_json:
        show_json(values)
        return
    for name, value in values.items():
        echo(f"export {name}={shlex.quote(value)}")
