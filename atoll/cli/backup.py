"""`atoll backup` and `atoll restore`: everything a node keeps, to a file and back."""

from __future__ import annotations

import http.client
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import Failed, done, echo, fail

if TYPE_CHECKING:
    from atoll.cli.client import Client

CHUNK = 1 << 20


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--logs/--no-logs", default=True, show_default=True, help="Include the logs of workers.")
@node_options
@json_option
def backup(client: Client, file: Path | None, logs: bool, as_json: bool) -> None:
    """Back up everything a running node stores to FILE, a tar archive (`-` for stdout). Prints the file's name.

    The node keeps serving. The archive holds all code, data and keys: keep it as safe as the node itself.

    \b
    Examples:
      atoll backup
      atoll backup /backups/monday.tar --no-logs
      atoll backup - | zstd > monday.tar.zst
    """
    if file == Path("-") and sys.stdout.isatty():
        fail("a terminal cannot take the archive", "write it to a file or a pipe: `atoll backup - > backup.tar`")
    response = client.send("GET", "/api/backup", query={"logs": "true" if logs else "false"})
    if file == Path("-"):
        if as_json:
            fail("stdout cannot take both the archive and JSON", "name a file, or leave out --json")
        _copy(response, sys.stdout.buffer)
        return
    path = file or Path(_name_of(response))
    if path.exists():
        fail(f"{path} exists already", "name another file")
    part = path.with_name(path.name + ".part")  # an incomplete archive must not look like a backup
    try:
        with part.open("xb") as out:
            part.chmod(0o600)
            _copy(response, out)
        part.rename(path)
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror}", "name another file") from None
    finally:
        part.unlink(missing_ok=True)
    done(f"{path.stat().st_size:,} bytes", as_json, file=str(path), bytes=path.stat().st_size)
    if not as_json:
        echo(str(path))


def _copy(response: http.client.HTTPResponse, out: IO[bytes]) -> None:
    try:
        while chunk := response.read(CHUNK):
            out.write(chunk)
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        fail(f"the node stopped sending: {str(error) or type(error).__name__}", "try again; the node's log may say why")


def _name_of(response: http.client.HTTPResponse) -> str:
    found = response.headers.get_filename() or ""
    return Path(found).name or "atoll-backup.tar"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--data", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder to restore to, new or empty."
)
@json_option
def restore(file: Path, data: Path, as_json: bool) -> None:
    """Restore the backup FILE into the folder DIR. `atoll serve --data DIR` then serves it.

    The folder must be new or empty. A backup from a newer Atoll is refused. One from an older Atoll is migrated when
    the node starts.

    \b
    Examples:
      atoll restore monday.tar --data ./restored
      zstd -dc monday.tar.zst | atoll restore - --data ./restored
    """
    from atoll.errors import StartError
    from atoll.observe.backup import restore as bring_back

    try:
        with sys.stdin.buffer if file == Path("-") else file.open("rb") as archive:
            manifest = bring_back(archive, data)
    except OSError as error:
        raise Failed(f"{error.filename or file}: {error.strerror}", "name a file that `atoll backup` made") from None
    except StartError as error:
        raise Failed(str(error), error.hint) from None
    told = f"{len(manifest.files)} files of Atoll {manifest.atoll}; start it with: atoll serve --data {data}"
    done(told, as_json, data=str(data), files=len(manifest.files), atoll=manifest.atoll)
    if not as_json:
        echo(str(data))
