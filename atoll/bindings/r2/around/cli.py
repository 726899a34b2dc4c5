"""`atoll r2 bucket public|cors|lifecycle|notification`: settings of a bucket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import ask_first, done, echo, fail, say, show_json, show_table
from atoll.plain import plain_line

if TYPE_CHECKING:
    from atoll.cli.client import Client


def bucket_at(bucket: str, *rest: str) -> str:
    """The path of a bucket in the API, or of something below it."""
    from atoll.cli.client import segment

    return "/".join(["/api/r2", segment(bucket), *(segment(part) for part in rest)])


@click.group()
def public() -> None:
    """Let anybody read the objects of a bucket, on a host of its own."""


@click.group()
def cors() -> None:
    """Say which web pages may use a bucket."""


@click.group()
def lifecycle() -> None:
    """Delete objects and unfinished uploads after some days."""


@click.group()
def notification() -> None:
    """Send changes of objects to a queue."""


# Public buckets


@public.command("enable")
@click.argument("name", metavar="BUCKET")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@node_options
@json_option
def enable_public(client: Client, name: str, yes: bool, as_json: bool) -> None:
    """Let anybody who knows a key read that object. Objects are not listed."""
    if not yes:
        ask_first(f"Let anybody read the objects of {name} on {client.target.api}?", yes)
    made = json.loads(client.send("PUT", bucket_at(name, "public")).read())
    done(f"{name} is public: {made['url']}", as_json, **made)


@public.command("get")
@click.argument("name", metavar="BUCKET")
@node_options
@json_option
def get_public(client: Client, name: str, as_json: bool) -> None:
    """Show whether a bucket is public, and its address."""
    found = client.get(bucket_at(name, "public"))
    if as_json:
        show_json(found)
    elif found["public"]:
        echo(found["url"])
    else:
        say(f"{name} is not public: `atoll r2 bucket public enable {name}` makes it so")


@public.command("disable")
@click.argument("name", metavar="BUCKET")
@node_options
@json_option
def disable_public(client: Client, name: str, as_json: bool) -> None:
    """Make a bucket private again. Its address does not come back."""
    client.delete(bucket_at(name, "public"))
    done(f"{name} is private", as_json, public=False)


# CORS


@cors.command("set")
@click.argument("name", metavar="BUCKET")
@click.option(
    "--file", "path", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="JSON with the rules.",
)  # fmt: skip
@node_options
@json_option
def set_cors(client: Client, name: str, path: Path, as_json: bool) -> None:
    """Replace the CORS rules. FILE has rules of Cloudflare, of S3, or of the API of Atoll.

    \b
    {"rules": [{"allowed": {"origins": ["https://example.com"], "methods": ["GET"]}}]}
    """
    try:
        rules = cors_rules(json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        hint = """write {"rules": [{"allowed": {"origins": ["https://example.com"], "methods": ["GET"]}}]}"""
        fail(f"{path} has no CORS rules: {error!s:.100}", hint)
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}", "check its permissions")
    body = json.dumps({"rules": rules}).encode()
    client.send("PUT", bucket_at(name, "cors"), body, {"Content-Type": "application/json"}).read()
    done(f"{name} has {len(rules)} CORS rules", as_json, rules=rules)


def cors_rules(found: Any) -> list[dict[str, Any]]:
    """The rules of a file, as the API reads them."""
    listed = found if isinstance(found, list) else found.get("rules") or found.get("CORSRules")
    return [_cors_rule(rule) for rule in listed]


def _cors_rule(rule: dict[str, Any]) -> dict[str, Any]:
    inner = rule.get("allowed", {})
    ours = {
        "id": rule.get("id", rule.get("ID")),
        "allowed_origins": inner.get("origins", rule.get("AllowedOrigins")),
        "allowed_methods": inner.get("methods", rule.get("AllowedMethods")),
        "allowed_headers": inner.get("headers", rule.get("AllowedHeaders")),
        "expose_headers": rule.get("exposeHeaders", rule.get("ExposeHeaders")),
        "max_age_seconds": rule.get("maxAgeSeconds", rule.get("MaxAgeSeconds")),
    }
    taken = {"id", "ID", "allowed", "exposeHeaders", "maxAgeSeconds", "AllowedOrigins", "AllowedMethods"}
    rest = {name: value for name, value in rule.items() if name not in taken | {"AllowedHeaders", "ExposeHeaders"}}
    rest.pop("MaxAgeSeconds", None)  # what is left is of our own API, or refused by it
    return {name: value for name, value in ours.items() if value is not None} | rest


@cors.command("list")
@click.argument("name", metavar="BUCKET")
@node_options
@json_option
def list_cors(client: Client, name: str, as_json: bool) -> None:
    """List the CORS rules of a bucket."""
    found = client.get(bucket_at(name, "cors"))["rules"]
    if as_json:
        show_json(found)
        return
    rows = [
        (
            " ".join(rule["allowed_origins"]),
            " ".join(rule["allowed_methods"]),
            " ".join(rule.get("allowed_headers", [])),
        )
        for rule in found
    ]
    show_table(("origins", "methods", "headers"), rows, "no CORS rules: `atoll r2 bucket cors set` sets them")


@cors.command("delete")
@click.argument("name", metavar="BUCKET")
@node_options
@json_option
def delete_cors(client: Client, name: str, as_json: bool) -> None:
    """Delete the CORS rules of a bucket."""
    client.delete(bucket_at(name, "cors"))
    done(f"{name} has no CORS rules", as_json, rules=[])


# Lifecycle


@lifecycle.command("add")
@click.argument("name", metavar="BUCKET")
@click.argument("rule", metavar="RULE")
@click.option("--prefix", default="", metavar="TEXT", help="Only keys with this prefix.")
@click.option("--expire-days", type=int, metavar="N", help="Delete objects N days after they were stored.")
@click.option("--abort-multipart-days", type=int, metavar="N", help="Abort uploads N days after they began.")
@node_options
@json_option
def add_lifecycle(
    client: Client,
    name: str,
    rule: str,
    prefix: str,
    expire_days: int | None,
    abort_multipart_days: int | None,
    as_json: bool,
) -> None:
    """Add a lifecycle rule. RULE is its name. Rules are applied once an hour."""
    if expire_days is None and abort_multipart_days is None:
        fail("the rule does nothing", "add --expire-days N, or --abort-multipart-days N")
    wanted = {"id": rule, "prefix": prefix, "expire_days": expire_days, "abort_days": abort_multipart_days}
    client.post(bucket_at(name, "lifecycle"), wanted)
    done(f"added {plain_line(rule)}", as_json, **wanted)


@lifecycle.command("list")
@click.argument("name", metavar="BUCKET")
@node_options
@json_option
def list_lifecycle(client: Client, name: str, as_json: bool) -> None:
    """List the lifecycle rules of a bucket."""
    found = client.get(bucket_at(name, "lifecycle"))["rules"]
    if as_json:
        show_json(found)
        return
    rows = [
        (
            plain_line(each["id"]),
            plain_line(each.get("prefix", "")),
            str(each.get("expire_days", "")),
            str(each.get("abort_days", "")),
            "yes" if each.get("enabled", True) else "no",
        )
        for each in found
    ]
    empty = "no lifecycle rules: unfinished uploads are deleted after 7 days, and objects are kept"
    show_table(("rule", "prefix", "expire days", "abort days", "enabled"), rows, empty)


@lifecycle.command("remove")
@click.argument("name", metavar="BUCKET")
@click.argument("rule", metavar="RULE")
@node_options
@json_option
def remove_lifecycle(client: Client, name: str, rule: str, as_json: bool) -> None:
    """Remove a lifecycle rule."""
    client.delete(bucket_at(name, "lifecycle", rule))
    done(f"removed {plain_line(rule)}", as_json, removed=rule)


# Notifications


@notification.command("create")
@click.argument("name", metavar="BUCKET")
@click.option(
    "--event-type", "event_types", multiple=True, required=True, help="What to tell; may be repeated.",
    type=click.Choice(["object-create", "object-delete"]),
)  # fmt: skip
@click.option("--queue", required=True, metavar="QUEUE", help="The queue that gets the messages.")
@click.option("--prefix", default="", metavar="TEXT", help="Only keys with this prefix.")
@click.option("--suffix", default="", metavar="TEXT", help="Only keys with this suffix.")
@node_options
@json_option
def create_notification(
    client: Client, name: str, event_types: tuple[str, ...], queue: str, prefix: str, suffix: str, as_json: bool
) -> None:
    """Send a message to a queue for each object that is stored or deleted."""
    wanted = {"queue": queue, "event_types": list(event_types), "prefix": prefix, "suffix": suffix}
    made = client.post(bucket_at(name, "notifications"), wanted)
    done(f"changes of {name} go to {queue} ({made['id']})", as_json, **made)


@notification.command("list")
@click.argument("name", metavar="BUCKET")
@node_options
@json_option
def list_notifications(client: Client, name: str, as_json: bool) -> None:
    """List the notifications of a bucket."""
    found = client.get(bucket_at(name, "notifications"))["rules"]
    if as_json:
        show_json(found)
        return
    rows = [
        (
            each["id"], each["queue"], " ".join(each["event_types"]), plain_line(each.get("prefix", "")),
            plain_line(each.get("suffix", "")),
        )
        for each in found
    ]  # fmt: skip
    empty = "no notifications: `atoll r2 bucket notification create` makes one"
    show_table(("id", "queue", "events", "prefix", "suffix"), rows, empty)


@notification.command("delete")
@click.argument("name", metavar="BUCKET")
@click.argument("rule", metavar="ID")
@node_options
@json_option
def delete_notification(client: Client, name: str, rule: str, as_json: bool) -> None:
    """Delete a notification. Messages that were stored before are still delivered."""
    client.delete(bucket_at(name, "notifications", rule))
    done(f"deleted {plain_line(rule)}", as_json, deleted=rule)
