"""`atoll config`: every setting as a node started here would have it, and where it comes from."""

from __future__ import annotations

import os
from pathlib import Path

import click

from atoll.cli.options import json_option
from atoll.cli.serve import settings_options
from atoll.cli.talk import Failed, show_json, show_table
from atoll.config import CONFIG_FILE, explain
from atoll.errors import StartError


@click.command()
@click.option(
    "--config", "file", type=click.Path(path_type=Path), metavar="FILE", help=f"Settings.  [default: ./{CONFIG_FILE}]"
)
@click.option("--changed", is_flag=True, help="Only those that are not the default.")
@json_option
@settings_options
def config(file: Path | None, changed: bool, as_json: bool, **flags: str | None) -> None:
    """Print each setting, its value and who set it: a line of a file, a variable, a flag, or nobody.

    It takes the flags of `atoll serve` and reads the same file and environment.

    \b
    Examples:
      atoll config
      atoll config --changed
      ATOLL_PORT=9000 atoll config --json
    """
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        explained = explain(file, os.environ, given)
    except StartError as error:
        raise Failed(str(error), error.hint) from None
    shown = [each for each in explained if not changed or each.origin != "default"]
    if as_json:
        show_json([{"name": each.name, "value": _plain(each.value), "origin": each.origin} for each in shown])
        return
    show_table(("name", "value", "origin"), [(each.name, _text(each.value), each.origin) for each in shown], "defaults")


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value if isinstance(value, int | float) else str(value)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
