"""`atoll backup` and `atoll restore`: everything a node keeps, to a file and back."""

from __future__ import annotations

import http.client
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import Failed, done, fail

if TYPE_CHECKING:
    from atoll.cli.client import Client

CHUNK = 1 << 20


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--logs/--no-logs", default=True, show_default=True, help="With the logs of workers.")
@node_options
@json_option
def backup(client: Client, file: Path | None, logs: bool, as_json: bool) -> None:
    """Copy everything a running node keeps into FILE, a tar archive (`-`: stdout). Prints its name.

    The node goes on serving meanwhile. The archive holds all code, data and keys: keep it as safe as the node itself.

    \b
    Examples:
      atoll backup
      atoll backup /backups/monday.tar --no-logs
      atoll backup - | zstd > monday.tar.zst
    """
    response = client.send("GET", "/api/backup", query={"logs": "true" if logs else "false"})
    if file == Path("-"):
        if as_json:
            fail("stdout cannot hold the archive and JSON", "name a file, or leave out --json")
        _copy(response, sys.stdout.buffer)
        return
    path = file or Path(_name_of(response))
    if path.exists():
        fail(f"{path} exists already", "name another file")
    part = path.with_name(path.name + ".part")  # half a backup must not look like one
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
        click.echo(str(path))


def _copy(response: http.client.HTTPResponse, out: IO[bytes]) -> None:
    try:
        while chunk := response.read(CHUNK):
            out.write(chunk)
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        fail(f"the node broke off: {str(error) or type(error).__name__}", "try again; its log may say more")


def _name_of(response: http.client.HTTPResponse) -> str:
    found = response.headers.get_filename() or ""
    return Path(found).name or "atoll-backup.tar"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--data", required=True, type=click.Path(path_type=Path), metavar="DIR", help="New folder to restore to.")
@json_option
def restore(file: Path, data: Path, as_json: bool) -> None:
    """Make the folder DIR what the node had when FILE was made; then `atoll serve --data DIR` goes on from there.

    The folder must be new or empty. A backup of a newer Atoll is refused; one of an older Atoll is brought up to date
    when it is served.

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
        click.echo(str(data))
