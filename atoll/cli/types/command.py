"""`atoll types`: what an editor and TypeScript need to know of a worker's globals and its env."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.options import json_option
from atoll.cli.talk import Failed, say, show_json, tell_findings

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
HEAD = """// Written by `atoll types`. Everything a worker finds, and nothing of a browser: tsconfig wants
// "lib": ["esnext"], without "dom" or "webworker". The package @types/node declares what `node:` modules export.
/// <reference lib="esnext" />

"""
# In reading order; a test compares them with the globals of an isolate
PARTS = ("worker", "bindings", "fetch", "events", "observable", "streams", "crypto", "time")


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
@json_option
def types(path: Path | None, environment: str, out: Path | None, env_interface: str, as_json: bool) -> None:
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
    text = global_types() + env_types(project, env_interface)
    try:
        target.write_text(text, "utf-8")
    except OSError as error:
        raise Failed(f"{target} cannot be written: {error.strerror}", "name another file with --out") from None
    fields = env_fields(project)
    say(f"{env_interface} has {len(fields)} fields; add the file to tsconfig's `include`")
    if as_json:
        show_json({"file": str(target), "interface": env_interface, "fields": fields})
    else:
        click.echo(target)


def global_types() -> str:
    """The declarations of all globals, as one file."""
    folder = files("atoll.cli.types") / "globals"
    return HEAD + "\n".join((folder / f"{part}.d.ts").read_text("utf-8") for part in PARTS)


def env_types(project: Project, interface: str) -> str:
    fields = env_fields(project)
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


def env_fields(project: Project) -> dict[str, str]:
    """Name in env -> its type."""
    fields = {name: type_of(value) for name, value in project.vars.items()}
    fields |= dict.fromkeys(project.required_secrets, "string")
    return fields | {binding["name"]: BINDING_TYPES.get(binding["type"], "unknown") for binding in project.bindings}


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
