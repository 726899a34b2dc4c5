"""`atoll types`: what an editor and TypeScript need to know of a worker's globals and its env."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.talk import Failed, say, tell_findings

if TYPE_CHECKING:
    from atoll.project.model import Project

BINDING_TYPES = {
    "kv": "KVNamespace",
    "queue": "Queue",
    "service": "Fetcher",
    "ratelimit": "RateLimit",
    "version_metadata": "WorkerVersionMetadata",
}
IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("-e", "--env", "environment", default="", metavar="NAME", help="An environment of the config.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write.  [default: worker-configuration.d.ts beside the config]",
)
@click.option("--env-interface", default="Env", show_default=True, metavar="NAME", help="Name of the interface.")
def types(path: Path | None, environment: str, out: Path | None, env_interface: str) -> None:
    """Write the types of env, made from the bindings and variables of the project, and of all globals of a worker.

    \b
    Examples:
      atoll types
      atoll types --out src/worker.d.ts --env-interface Bindings
    """
    from atoll.project.model import ProjectError
    from atoll.project.read import read_project

    if not IDENTIFIER.fullmatch(env_interface):
        raise Failed(f"--env-interface is {env_interface!r}", "use a name that TypeScript takes")
    try:
        project = read_project(path, environment, for_dev=True)
    except ProjectError as error:
        raise Failed(str(error), error.hint) from None
    tell_findings(project, allow_missing=True)
    target = out or project.folder / "worker-configuration.d.ts"
    text = (files("atoll.cli.types") / "globals.d.ts").read_text("utf-8") + env_types(project, env_interface)
    try:
        target.write_text(text, "utf-8")
    except OSError as error:
        raise Failed(f"{target} cannot be written: {error.strerror}", "name another file with --out") from None
    say(f"{env_interface} has {len(project.vars) + len(project.bindings)} fields; add the file to tsconfig's `include`")
    click.echo(target)


def env_types(project: Project, interface: str) -> str:
    fields = {name: type_of(value) for name, value in project.vars.items()}
    fields |= dict.fromkeys(project.required_secrets, "string")
    fields |= {binding["name"]: BINDING_TYPES.get(binding["type"], "unknown") for binding in project.bindings}
    lines = [f"  {name if IDENTIFIER.fullmatch(name) else json.dumps(name)}: {kind};" for name, kind in fields.items()]
    return "\n".join(
        [
            "",
            "// From the config: run `atoll types` again when it changes.",
            f"interface {interface} {{",
            *lines,
            "}",
            "",
        ]
    )


def type_of(value: Any) -> str:
    """A variable's type; numbers and texts are not narrowed, since the next deploy may change them."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return f"({' | '.join(sorted({type_of(item) for item in value})) or 'unknown'})[]"
    if isinstance(value, dict):
        return "{ " + " ".join(f"{json.dumps(key)}: {type_of(inner)};" for key, inner in value.items()) + " }"
    return "null"
