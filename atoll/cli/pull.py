"""`atoll pull`: the code and settings of a deployed version, as a bundle."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import click

from atoll.cli.options import json_option, node_options, worker_named
from atoll.cli.talk import Failed, echo, fail, paint, say, show_json

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.command()
@click.argument("worker", required=False)
@click.option(
    "--version", "version", default="", metavar="VERSION", help="A number or an id.  [default: the active one]"
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="A new folder.  [default: WORKER-NUMBER]"
)
@node_options
@json_option
def pull(client: Client, worker: str | None, version: str, out: Path | None, as_json: bool) -> None:
    """Download the code and settings of WORKER (by default the current project's) into a new folder.

    The folder is a bundle, as `atoll build` writes it: `atoll deploy DIR` deploys it again. Every module
    and every static asset is checked against its hash. Values of secrets are not part of it. Prints the folder.

    \b
    Examples:
      atoll pull hello
      atoll pull hello --version 3 --out hello-before
    """
    from atoll.cli.client import NO_NODE, segment
    from atoll.project.model import ProjectError
    from atoll.project.pulled import refuse_used, write_pulled

    name = worker_named(worker)
    where = f"/api/workers/{segment(name)}"
    found = client.get(f"{where}/versions/{segment(version)}") if version else client.get(where)["version"]
    if not isinstance(found["number"], int):
        fail(f"{client.target.api} names no version", NO_NODE)
    folder = out or Path(f"{segment(name)}-{found['number']}")
    try:
        refuse_used(folder)
        response = client.send("GET", f"{where}/versions/{segment(str(found['id']))}/bundle")
        manifest = write_pulled(cast(IO[bytes], response), folder)
    except ProjectError as error:
        raise Failed(str(error), error.hint) from None
    except http.client.HTTPException as error:
        raise Failed(f"the node stopped sending: {str(error) or type(error).__name__}", "try again") from None
    modules = [{"path": entry["path"], "sha256": entry["sha256"]} for entry in manifest["modules"]]
    if as_json:
        show_json({"folder": str(folder), "version": found["number"], "modules": modules})
        return
    count = "1 module" if len(modules) == 1 else f"{len(modules)} modules"
    say(f"pulled version {found['number']} of {paint(name, bold=True)}: {count}")
    echo(str(folder))
