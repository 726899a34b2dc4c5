"""`atoll config`: what a node started here would be set to, and why."""

from __future__ import annotations

import os
from pathlib import Path

import click

from atoll.cli.talk import Failed, show_json, show_table
from atoll.config import FIELDS, env_names, facts_of, load_with_origins, shown_value
from atoll.config_file import CONFIG_FILE
from atoll.errors import StartError


@click.command()
@click.argument("names", nargs=-1, metavar="[SETTING]...")
@click.option(
    "--config", "file", type=click.Path(path_type=Path), metavar="FILE", help=f"Settings.  [default: ./{CONFIG_FILE}]"
)
@click.option("--changed", is_flag=True, help="Only those that are not the default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def config(names: tuple[str, ...], file: Path | None, changed: bool, as_json: bool) -> None:
    """Print the settings `atoll serve` would have here, and where each comes from: default, file or environment.

    \b
    Examples:
      atoll config
      atoll config port data
      ATOLL_PORT=9000 atoll config --changed
    """
    try:
        settings, origins = load_with_origins(file, os.environ, {})
    except StartError as error:
        raise Failed(str(error), error.hint) from None
    wanted = [name.replace("-", "_") for name in names] or list(FIELDS)
    for name in wanted:
        if name not in FIELDS:
            raise Failed(f"there is no setting `{name}`", "`atoll config` lists them all")
    rows = [
        {"name": name, "value": shown_value(getattr(settings, name)), "origin": origins.get(name, "default")}
        for name in wanted
        if not changed or name in origins
    ]
    if as_json:
        more = {name: {"env": list(env_names(name))[-1], "doc": facts_of(name).doc} for name in wanted}
        show_json([row | more[row["name"]] for row in rows])
        return
    cells = [(row["name"], row["value"], row["origin"]) for row in rows]
    show_table(("setting", "value", "origin"), cells, "every setting has its default")
