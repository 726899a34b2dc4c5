"""`atoll serve`: starts a node from flags, environment and file. The flags are the fields of Settings."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import click

from atoll.cli.interrupt import Interrupt
from atoll.cli.talk import Failed
from atoll.config import FIELDS, Settings, facts_of, flag_name, shown_default
from atoll.config_file import CONFIG_FILE
from atoll.config_loading import load_with_origins
from atoll.engine.process.prestart import FirstEngines, start_stored
from atoll.errors import StartError

EXAMPLE = "hello-world"
METAVARS = {int: "N", float: "SECONDS", str: "TEXT", tuple: "NAMES"}
UNITS = {"days": "DAYS", "hours": "HOURS", "share": "SHARE"}  # by the last word of the setting's name


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """One text option per setting. config.py converts it, so that flags and files give the same error messages."""
    for name in reversed(FIELDS):
        metavar = UNITS.get(name.rpartition("_")[2]) or METAVARS.get(type(FIELDS[name].default), "DIR")
        help_text = f"{facts_of(name).doc}  [default: {shown_default(name)}]"
        command = click.option(flag_name(name), name, metavar=metavar, help=help_text)(command)
    return command


@click.command()
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help=f"Settings.  [default: ./{CONFIG_FILE}]"
)
@click.option("--example/--no-example", default=False, help=f"Deploy the worker {EXAMPLE} if it does not exist.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one line of JSON once the node serves, instead of the greeting."
)
@click.option(
    "--replace",
    is_flag=True,
    help="Take the place of the node that runs on this data folder: no client is refused or loses a request.",
)
@settings_options
def serve(config: Path | None, example: bool, as_json: bool, replace: bool, **flags: str | None) -> None:
    """Start a node and serve workers until it is stopped.

    Each setting can also come from the [node] table of a file or from the environment, where --port is ATOLL_PORT.
    A flag wins over the environment, and the environment over the file.

    \b
    Examples:
      atoll serve
      atoll serve --port 9000 --data /var/lib/atoll
      atoll serve --data /var/lib/atoll --replace
    """
    origins: dict[str, str] = {}
    try:
        given = {name: value for name, value in flags.items() if value is not None}
        settings, origins = load_with_origins(config, os.environ, given)
        how = HowToRun(as_json, replace, lambda: load_with_origins(config, os.environ, given))
        if settings.processes > 1:
            run_processes(settings, replace)
        run(settings, origins, [EXAMPLE] if example else [], how)
    except StartError as error:
        place = f" ({origins[error.setting]})" if error.setting in origins else ""
        raise Failed(f"{error}{place}", error.hint) from None


def run_processes(settings: Settings, replaces: bool) -> None:
    """Does not return."""
    from atoll.cli.processes import serve_processes

    if replaces:
        raise StartError(
            "--replace does not work with several processes", "stop them, one machine after the other, and start them"
        )
    sys.exit(serve_processes(settings, sys.argv[1:]))


class HowToRun(NamedTuple):
    as_json: bool
    replaces: bool
    reload: Callable[[], tuple[Settings, dict[str, str]]]  # reads the settings again


def run(settings: Settings, origins: dict[str, str], examples: list[str], how: HowToRun) -> None:
    gc.disable()  # until it serves: nothing that is imported is ever freed
    with Interrupt() as interrupt, ExitStack() as stack:
        # In other processes, while this one imports. A node that is replaced still serves: its successor asks it first
        start = None if how.replaces else stack.enter_context(FirstEngines(lambda: start_stored(settings)))
        import atoll.front.sockets  # noqa: F401  # imported now: else the first WebSocket waits for it
        from atoll.cli.greeting import greet, greet_script
        from atoll.manifests.every import preload
        from atoll.serving import run as run_node  # the whole node: imported once the settings are valid

        preload()
        engines = stack.pop_all()
    engines.callback(gc.enable)
    with engines:
        if interrupt.came == signal.SIGINT:
            raise click.Abort
        if interrupt.came:
            return
        shown = greet_script if how.as_json else greet
        run_node(
            settings, shown, examples=examples, origins=origins, replaces=how.replaces, reload=how.reload, engines=start
        )
