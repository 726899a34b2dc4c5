"""`atoll config`: the settings a node would start with here, or those of a running node, and their origins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from atoll.cli.options import json_option, node_options
from atoll.cli.talk import Failed, show_json, show_table
from atoll.config import FIELDS, env_names, facts_of, shown_value
from atoll.config_file import CONFIG_FILE
from atoll.config_loading import load_with_origins
from atoll.errors import StartError

if TYPE_CHECKING:
    from atoll.cli.client import Client


@click.command()
@click.argument("names", nargs=-1, metavar="[SETTING]...")
@click.option(
    "--config", "file", type=click.Path(path_type=Path), metavar="FILE", help=f"Settings.  [default: ./{CONFIG_FILE}]"
)
@click.option("--node", is_flag=True, help="Show the settings of the running node. --api and --profile imply it.")
@click.option("--changed", is_flag=True, help="Show only settings that differ from their default.")
@node_options
@json_option
@click.pass_context
def config(
    ctx: click.Context,
    client: Client,
    names: tuple[str, ...],
    file: Path | None,
    node: bool,
    changed: bool,
    as_json: bool,
) -> None:
    """Print settings and where each comes from: default, file, environment or flag.

    By default these are the settings that `atoll serve` would use here; with --node, those of the running node.

    \b
    Examples:
      atoll config
      atoll config port data
      ATOLL_PORT=9000 atoll config --changed
      atoll config --profile home cpu_ms
    """
    named = any(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in ("api", "profile"))
    if (node or named) and file is not None:
        raise Failed(
            "--config names a local file, but a running node has its own settings",
            "leave out --config, or --node, --api and --profile",
        )
    rows = client.get("/api/config")["settings"] if node or named else _here(file)
    known = [row["name"] for row in rows]
    wanted = [name.replace("-", "_") for name in names] or known
    for name in wanted:
        if name not in known:
            raise Failed(f"there is no setting `{name}`", "`atoll config` lists them all")
    rows = [row for row in rows if row["name"] in wanted and not (changed and row["origin"] == "default")]
    if as_json:
        show_json(rows)
        return
    cells = [(row["name"], row["value"], row["origin"]) for row in rows]
    show_table(("setting", "value", "origin"), cells, "every setting has its default")


def _here(file: Path | None) -> list[dict[str, Any]]:
    """The settings a node would start with here, in the form of GET /api/config."""
    try:
        settings, origins = load_with_origins(file, os.environ, {})
    except StartError as error:
        raise Failed(str(error), error.hint) from None
    return [
        {
            "name": name,
            "value": shown_value(settings.value(name)),
            "origin": origins.get(name, "default"),
            "env": list(env_names(name))[-1],
            "doc": facts_of(name).doc,
        }
        for name in FIELDS
    ]
