"""`atoll kv`: namespaces, keys and values."""

from __future__ import annotations

import base64
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from atoll.cli.ask import read_stdin
from atoll.cli.options import json_option, node_options
from atoll.cli.talk import ask_first, done, echo, fail, show_json, show_table, shown_time, write_raw
from atoll.plain import plain_line

if TYPE_CHECKING:
    from atoll.cli.client import Client

CHUNK = 1 << 16


@click.group()
def kv() -> None:
    """Look into KV namespaces, change, fill and empty them.

    \b
    Examples:
      atoll kv namespaces
      atoll kv put counter visits 0
      atoll kv get counter visits
      atoll kv keys counter --prefix user:
      atoll kv export counter > counter.ndjson
    """


def _at(namespace: str, *rest: str) -> str:
    from atoll.cli.client import segment

    return "/".join(["/api/kv", segment(namespace), *(segment(part) for part in rest)])


@kv.command("namespaces")
@node_options
@json_option
def namespaces(client: Client, as_json: bool) -> None:
    """List the namespaces."""
    found = client.all("/api/kv", "namespaces")
    if as_json:
        show_json(found)
        return
    rows = [(space["name"], shown_time(space["created_at"])) for space in found]
    show_table(("name", "created"), rows, "no namespaces yet: a deploy that binds one makes it")


@kv.command("create")
@click.argument("namespace")
@node_options
@json_option
def create(client: Client, namespace: str, as_json: bool) -> None:
    """Create an empty namespace."""
    made = client.post("/api/kv", {"name": namespace})
    done(f"made {namespace}", as_json, **made)


@kv.command("delete-namespace")
@click.argument("namespace")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@node_options
@json_option
def delete_namespace(client: Client, namespace: str, yes: bool, as_json: bool) -> None:
    """Delete a namespace and all its entries."""
    if not yes:
        size = client.get(_at(namespace))
        ask_first(f"Delete {namespace} with {size['keys']} keys on {client.target.api}?", yes)
    client.delete(_at(namespace))
    done(f"deleted {namespace}", as_json, deleted=namespace)


@kv.command("keys")
@click.argument("namespace")
@click.option("--prefix", default="", metavar="TEXT", help="Only keys with this prefix.")
@click.option("-n", "--limit", default=0, metavar="N", help="How many.  [default: all]")
@node_options
@json_option
def keys(client: Client, namespace: str, prefix: str, limit: int, as_json: bool) -> None:
    """List keys, a line each. Control characters in them are shown as escapes; --json has them as they are."""
    found = client.all(_at(namespace, "keys"), "keys", most=limit or None, prefix=prefix)
    if as_json:
        show_json(found)
        return
    for key in found:
        echo(plain_line(key["name"]))


@kv.command("get")
@click.argument("namespace")
@click.argument("key")
@node_options
@json_option
def get(client: Client, namespace: str, key: str, as_json: bool) -> None:
    """Write a value to stdout, byte for byte. In a terminal its control characters are shown as escapes.

    JSON has the value as a text, or in base64 when it is not UTF-8.
    """
    response = client.send("GET", _at(namespace, "values", key))
    if as_json:
        raw = response.read()
        try:
            show_json({"key": key, "value": raw.decode()})
        except UnicodeDecodeError:
            show_json({"key": key, "base64": base64.b64encode(raw).decode()})
        return
    write_raw(iter(partial(response.read, CHUNK), b""))


@kv.command("put")
@click.argument("namespace")
@click.argument("key")
@click.argument("value", required=False)
@click.option("--path", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE", help="The value.")
@click.option("--ttl", type=int, metavar="SECONDS", help="Let it expire after this time, at least 60.")
@click.option("--metadata", metavar="JSON", help="Metadata of the key.")
@node_options
@json_option
def put(
    client: Client,
    namespace: str,
    key: str,
    value: str | None,
    path: Path | None,
    ttl: int | None,
    metadata: str | None,
    as_json: bool,
) -> None:
    """Store VALUE, a file's content, or all of stdin, under KEY. Stdin is stored as it is, with its last newline.

    Empty stdin is refused; an empty VALUE or file is stored.
    """
    if value is not None and path is not None:
        fail("VALUE and --path were both given", "give one of them")
    data = value.encode() if value is not None else path.read_bytes() if path is not None else read_stdin("the value")
    if not data and value is None and path is None:
        fail("stdin was empty, so nothing was stored", 'an empty value is written as `atoll kv put NAMESPACE KEY ""`')
    query: dict[str, object] = {"expiration_ttl": ttl, "metadata": metadata}
    client.send("PUT", _at(namespace, "values", key), data, {"Content-Type": "application/octet-stream"}, query).read()
    done(f"stored {len(data):,} {'byte' if len(data) == 1 else 'bytes'} as {key}", as_json, key=key, bytes=len(data))


@kv.command("delete")
@click.argument("namespace")
@click.argument("keys", nargs=-1, required=True)
@node_options
@json_option
def delete(client: Client, namespace: str, keys: tuple[str, ...], as_json: bool) -> None:
    """Delete keys."""
    deleted = client.post(_at(namespace, "bulk", "delete"), list(keys))["deleted"]
    done(f"deleted {deleted} of {len(keys)} keys", as_json, deleted=deleted)


@kv.command("export")
@click.argument("namespace")
@node_options
def export(client: Client, namespace: str) -> None:
    """Write all entries to stdout, a line of JSON each: what `atoll kv import` takes."""
    response = client.send("GET", _at(namespace, "export"))
    write_raw(iter(partial(response.read, CHUNK), b""))


@kv.command("import")
@click.argument("namespace")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@node_options
@json_option
def import_(client: Client, namespace: str, file: Path | None, as_json: bool) -> None:
    """Store the entries of FILE, or of stdin: lines of JSON as `atoll kv export` writes them."""
    data = file.read_bytes() if file is not None else read_stdin("lines of JSON")
    response = client.send("POST", _at(namespace, "bulk"), data, {"Content-Type": "application/x-ndjson"})
    written = json.loads(response.read())["written"]
    done(f"stored {written} entries", as_json, written=written)
