"""`atoll dev`, the command."""

from __future__ import annotations

import gc
import re
import time
from dataclasses import replace
from pathlib import Path

import click

from atoll.cli.dev.first import Begun, FirstBuild, FirstEngine
from atoll.cli.interrupt import Interrupt
from atoll.cli.options import json_option, load_project, project_options
from atoll.cli.talk import Failed, paint, say
from atoll.config import Settings
from atoll.errors import StartError

CONTROL_HOST = "control.localhost"
DATA = Path(".atoll") / "dev"
DEFAULT_PORT = 8787
TRIED_PORTS = 50


@click.command()
@project_options
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help=f"Port to listen on; 0 takes any free one.  [default: {DEFAULT_PORT}]",
)
@click.option("--host", metavar="TEXT", help="Address to listen on.  [default: localhost]")
@json_option
def dev(
    path: Path | None, environment: str, allow_missing_bindings: bool, port: int | None, host: str | None, as_json: bool
) -> None:
    """Run the project at PATH (a script, a folder or a config file; by default here) and follow its files.

    It runs on the engine of `atoll serve` with the same limits. A save is live in a blink and loses no request; what
    the worker stored stays, in .atoll/dev. Errors are shown with the code around them, here and in the browser, until
    they are gone. Every call is a line: method, path, status, CPU time, wall time, cold or warm.

    \b
    Keys:
      o  open it in the browser
      r  build and load it anew
      t  run its crons now
      q  quit, as Ctrl-C does

    \b
    Examples:
      atoll dev
      atoll dev worker.ts --port 3000
      atoll dev --env staging
      curl "http://localhost:8787/cdn-cgi/handler/scheduled?cron=*+*+*+*+*"
    """
    began, clock = time.monotonic(), time.time()
    gc.disable()  # until it serves: nothing of what is imported is ever thrown away
    project = load_project(path, environment, allow_missing=allow_missing_bindings, for_dev=True)
    wanted = port if port is not None else project.dev_port
    settings = Settings(
        host=host or project.dev_ip,
        port=DEFAULT_PORT if wanted is None else wanted,
        data=project.folder / DATA,
        control_hosts=(CONTROL_HOST,),
        engines=1,  # one person asks: the second engine would only cost time at the start
        spares=2,
        drain_seconds=2.0,
        worker_clock="live",  # for a worker with the switch: all code here is one person's
    )
    with Interrupt() as interrupt, FirstBuild(project, clock) as build, FirstEngine(settings) as engine:
        from atoll.cli.dev.run import run_session  # the whole node: a quarter of a second, while the others work

        try:
            if wanted is None:
                settings = replace(settings, port=free_port(settings.host))
            run_session(path, environment, settings, Begun(began, build, engine, interrupt), as_json=as_json)
        except StartError as error:
            raise _told(error) from None


def _told(error: StartError) -> Failed:
    """What keeps a node from starting, in words that fit a project."""
    if found := re.search(r"another Atoll \(process (\w+)\)", str(error)):
        return Failed(f"`atoll dev` runs this project already, as process {found[1]}", "use that one, or stop it first")
    return Failed(str(error), error.hint.replace("atoll serve", "atoll dev"))


def free_port(host: str) -> int:
    """The usual port, or the next that is free; who holds the usual one is said."""
    from atoll.front.server import listen

    reason: StartError | None = None
    for port in range(DEFAULT_PORT, DEFAULT_PORT + TRIED_PORTS):
        try:
            listen(host, port).close()
        except StartError as error:
            reason = reason or error
            continue
        if reason is not None:
            say(f"{paint('note:', fg='cyan')} {reason}, so this is on {port}")
        return port
    assert reason is not None
    raise reason
