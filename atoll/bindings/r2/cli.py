"""`atoll r2`: buckets and objects."""

from __future__ import annotations

import base64
import json
import mimetypes
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from atoll.bindings.r2.around.cli import bucket_at, cors, lifecycle, notification, public
from atoll.cli.options import json_option, node_options
from atoll.cli.talk import ask_first, done, echo, fail, say, show_json, show_table, shown_time, write_raw
from atoll.plain import plain_line

if TYPE_CHECKING:
    from atoll.cli.client import Client

CHUNK = 1 << 16
PART = 32 << 20  # bytes: a longer file is sent in parts of this size
PLACE = "BUCKET/KEY"


@click.group()
def r2() -> None:
    """Make R2 buckets; store, read, list and delete objects.

    \b
    Examples:
      atoll r2 bucket create photos
      atoll r2 object put photos/cat.jpg --file cat.jpg
      atoll r2 object get photos/cat.jpg > cat.jpg
      atoll r2 object list photos --prefix 2027/
      atoll r2 upload photos ./album --prefix 2027/
    """


@r2.group()
def bucket() -> None:
    """Create, list and delete buckets; make them public, set rules and notifications."""


@r2.group("object")
def objects() -> None:
    """Store, read, list and delete objects."""


@r2.group()
def credentials() -> None:
    """Create, list and delete access keys of the S3 endpoint."""


for group in (public, cors, lifecycle, notification):
    bucket.add_command(group)


def _object_at(kind: str, place: str) -> tuple[str, str]:
    """The path of an object, and its key."""
    name, _, key = place.partition("/")
    if not name or not key:
        fail(f"`{place}` names no object", f"write {PLACE}, as photos/cat.jpg")
    return bucket_at(name, kind, key), key


# Buckets


@bucket.command("list")
@node_options
@json_option
def list_buckets(client: Client, as_json: bool) -> None:
    """List the buckets."""
    found = client.all("/api/r2", "buckets")
    if as_json:
        show_json(found)
        return
    rows = [
        (each["name"], f"{each['objects']:,}", f"{each['bytes']:,}", shown_time(each["created_at"])) for each in found
    ]
    show_table(("name", "objects", "bytes", "created"), rows, "no buckets yet: a deploy that binds one makes it")


@bucket.command("create")
@click.argument("name")
@node_options
@json_option
def create_bucket(client: Client, name: str, as_json: bool) -> None:
    """Create an empty bucket."""
    made = client.post("/api/r2", {"name": name})
    done(f"made {name}", as_json, **made)


@bucket.command("info")
@click.argument("name")
@node_options
@json_option
def bucket_info(client: Client, name: str, as_json: bool) -> None:
    """Show how much a bucket holds."""
    facts = client.get(bucket_at(name))
    if as_json:
        show_json(facts)
        return
    made = shown_time(facts["created_at"])
    echo(f"{facts['name']}: {facts['objects']:,} objects, {facts['bytes']:,} bytes, made {made}")


@bucket.command("delete")
@click.argument("name")
@click.option("--force", is_flag=True, help="Delete its objects too.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@node_options
@json_option
def delete_bucket(client: Client, name: str, force: bool, yes: bool, as_json: bool) -> None:
    """Delete a bucket. One that has objects is deleted only with --force."""
    if force and not yes:
        facts = client.get(bucket_at(name))
        ask_first(f"Delete {name} with {facts['objects']:,} objects on {client.target.api}?", yes)
    client.delete(bucket_at(name) + ("?force=true" if force else ""))
    done(f"deleted {name}", as_json, deleted=name)


# Objects


@objects.command("list")
@click.argument("name", metavar="BUCKET")
@click.option("--prefix", default="", metavar="TEXT", help="Only keys with this prefix.")
@click.option("-n", "--limit", default=0, metavar="N", help="How many.  [default: all]")
@node_options
@json_option
def list_objects(client: Client, name: str, prefix: str, limit: int, as_json: bool) -> None:
    """List objects: size, time and key. Control characters in keys are shown as escapes."""
    found = client.all(bucket_at(name, "objects"), "objects", most=limit or None, prefix=prefix)
    if as_json:
        show_json(found)
        return
    for each in found:
        echo(f"{each['size']:>14,}  {shown_time(each['uploaded_at'])}  {plain_line(each['key'])}")


@objects.command("head")
@click.argument("place", metavar=PLACE)
@node_options
@json_option
def head_object(client: Client, place: str, as_json: bool) -> None:
    """Show an object without its content."""
    facts = client.get(_object_at("facts", place)[0])
    if as_json:
        show_json(facts)
        return
    rows = [(name, value if isinstance(value, str | int) else json.dumps(value)) for name, value in facts.items()]
    show_table(("", ""), [(name, str(value)) for name, value in rows], "")


@objects.command("get")
@click.argument("place", metavar=PLACE)
@click.option("--file", "path", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write it there.")
@node_options
@json_option
def get_object(client: Client, place: str, path: Path | None, as_json: bool) -> None:
    """Write an object to stdout or a file, byte for byte. In a terminal its control characters are shown as escapes.

    JSON has the content as a text, or in base64 when it is not UTF-8; with --file, how many bytes were written.
    """
    at, key = _object_at("objects", place)
    response = client.send("GET", at)
    chunks = iter(partial(response.read, CHUNK), b"")
    if path is not None:
        done(f"wrote {path}", as_json, key=key, bytes=_save(path, chunks))
    elif as_json:
        raw = b"".join(chunks)
        try:
            show_json({"key": key, "value": raw.decode()})
        except UnicodeDecodeError:
            show_json({"key": key, "base64": base64.b64encode(raw).decode()})
    else:
        write_raw(chunks)


def _save(path: Path, chunks: Iterator[bytes]) -> int:
    try:
        with path.open("wb") as file:
            return sum(file.write(chunk) for chunk in chunks)
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}", "choose another file with --file")


@objects.command("put")
@click.argument("place", metavar=PLACE)
@click.option(
    "--file", "path", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="The content.",
)  # fmt: skip
@click.option("--content-type", metavar="TYPE", help="Its content type.  [default: by the name of the file]")
@click.option("--cache-control", metavar="TEXT", help="Its Cache-Control.")
@click.option("--metadata", metavar="JSON", help="Custom metadata, an object of strings.")
@node_options
@json_option
def put_object(
    client: Client,
    place: str,
    path: Path,
    content_type: str | None,
    cache_control: str | None,
    metadata: str | None,
    as_json: bool,
) -> None:
    """Store a file as an object. A file over 32 MB is sent in parts."""
    name, _, key = place.partition("/")
    if not name or not key:
        fail(f"`{place}` names no object", f"write {PLACE}, as photos/cat.jpg")
    headers = {"Content-Type": content_type or _type_of(path)}
    if cache_control is not None:
        headers["Cache-Control"] = cache_control
    if metadata is not None:
        headers["X-Atoll-Metadata"] = json.dumps(_parsed(metadata))
    stored = _send_file(client, name, key, path, headers)
    done(f"stored {stored['size']:,} bytes as {plain_line(key)}", as_json, **stored)


@objects.command("delete")
@click.argument("name", metavar="BUCKET")
@click.argument("keys", nargs=-1, required=True)
@node_options
@json_option
def delete_objects(client: Client, name: str, keys: tuple[str, ...], as_json: bool) -> None:
    """Delete objects."""
    deleted = 0
    for first in range(0, len(keys), 1000):
        deleted += client.post(bucket_at(name, "delete"), list(keys[first : first + 1000]))["deleted"]
    done(f"deleted {deleted} of {len(keys)} objects", as_json, deleted=deleted)


@r2.command("upload")
@click.argument("name", metavar="BUCKET")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--prefix", default="", metavar="TEXT", help="Begin every key with this.")
@node_options
@json_option
def upload(client: Client, name: str, folder: Path, prefix: str, as_json: bool) -> None:
    """Store every file of FOLDER; keys are the paths below it. Links are skipped. A second run stores them again."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    sent = 0
    for number, path in enumerate(files, 1):
        key = prefix + path.relative_to(folder).as_posix()
        stored = _send_file(client, name, key, path, {"Content-Type": _type_of(path)})
        sent += stored["size"]
        if not as_json:
            say(f"{number}/{len(files)}  {stored['size']:>14,}  {plain_line(key)}")
    done(f"stored {len(files):,} objects, {sent:,} bytes", as_json, objects=len(files), bytes=sent)


# Access keys of the S3 endpoint


@credentials.command("create")
@click.argument("name", required=False, default="")
@click.option("--bucket", default="", metavar="BUCKET", help="Only for this bucket.  [default: all]")
@click.option("--read-only", is_flag=True, help="It may not write.")
@node_options
@json_option
def create_credentials(client: Client, name: str, bucket: str, read_only: bool, as_json: bool) -> None:
    """Create an access key for S3 clients. Its secret is shown now and never again. NAME says what it is for."""
    made = client.post("/api/r2-credentials", {"name": name, "bucket": bucket, "read_only": read_only})
    if as_json:
        show_json(made)
        return
    echo(f"AWS_ACCESS_KEY_ID={made['access_key_id']}", f"AWS_SECRET_ACCESS_KEY={made['secret_access_key']}")
    say("keep the secret: it is not shown again")


@credentials.command("list")
@node_options
@json_option
def list_credentials(client: Client, as_json: bool) -> None:
    """List the access keys, without their secrets."""
    found = client.get("/api/r2-credentials")["credentials"]
    if as_json:
        show_json(found)
        return
    rows = [
        (each["access_key_id"], each["name"], each["bucket"] or "all", "read" if each["read_only"] else "read, write")
        for each in found
    ]
    show_table(("access key", "name", "bucket", "may"), rows, "no access keys: `atoll r2 credentials create` makes one")


@credentials.command("delete")
@click.argument("access_key")
@node_options
@json_option
def delete_credentials(client: Client, access_key: str, as_json: bool) -> None:
    """Delete an access key. Requests and links that were signed with it are refused from now on."""
    from atoll.cli.client import segment

    client.delete(f"/api/r2-credentials/{segment(access_key)}")
    done(f"deleted {access_key}", as_json, deleted=access_key)


def _type_of(path: Path) -> str:
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"


def _parsed(metadata: str) -> object:
    try:
        return json.loads(metadata)
    except ValueError:
        fail("--metadata is not JSON", """write an object of strings, as --metadata '{"by": "me"}'""")


def _send_file(client: Client, bucket: str, key: str, path: Path, headers: dict[str, str]) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            first = file.read(PART)
            if len(first) < PART:
                response = client.send("PUT", bucket_at(bucket, "objects", key), first, headers)
                stored: dict[str, Any] = json.loads(response.read())
                return stored
            return _send_parts(client, bucket, key, _parts(first, file), headers)
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}", "check its permissions")


def _parts(first: bytes, file: IO[bytes]) -> Iterator[bytes]:
    part = first
    while part:
        yield part
        part = file.read(PART)


def _send_parts(
    client: Client, bucket: str, key: str, parts: Iterator[bytes], headers: dict[str, str]
) -> dict[str, Any]:
    at = bucket_at(bucket, "uploads", key)
    upload_id = json.loads(client.send("POST", at, b"", headers).read())["upload_id"]
    try:
        sent = []
        for number, part in enumerate(parts, 1):
            query: dict[str, object] = {"upload_id": upload_id, "part": number}
            response = client.send("PUT", at, part, {"Content-Type": "application/octet-stream"}, query)
            sent.append(json.loads(response.read()))
        stored: dict[str, Any] = client.post(
            bucket_at(bucket, "complete", key), {"upload_id": upload_id, "parts": sent}
        )
        return stored
    except BaseException:
        with suppress(click.ClickException):  # the first error counts
            client.send("DELETE", at, query={"upload_id": upload_id}).read()
        raise
