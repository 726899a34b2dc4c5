"""`atoll types`: TypeScript declarations of a worker's globals and its env."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from atoll.cli.options import config_option, json_option
from atoll.cli.talk import Failed, echo, say, show_json, tell_findings
from atoll.manifests.every import manifests

if TYPE_CHECKING:
    from atoll.project.model import Project

IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
HEAD = """// Written by `atoll types`. All globals of a worker, and none of a browser: tsconfig needs
// "lib": ["esnext"], without "dom" or "webworker". The package @types/node declares what `node:` modules export.
/// <reference lib="esnext" />

"""
# In reading order; a test compares them with the globals of an isolate
PARTS = ("worker", "fetch", "events", "observable", "streams", "crypto", "html_rewriter", "time")


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@config_option
@click.option("-e", "--env", "environment", default="", metavar="NAME", help="An environment of the config.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write.  [default: worker-configuration.d.ts beside the config]",
)
@click.option(
    "--env-interface", default="Env", show_default=True, metavar="NAME", help="Name of the interface for env."
)
@json_option
def types(
    path: Path | None,
    configs: tuple[Path, ...],
    environment: str,
    out: Path | None,
    env_interface: str,
    as_json: bool,
) -> None:
    """Write TypeScript types for env, from the project's bindings and variables, and for all globals of a worker.

    Give --config for other workers too, and service bindings to them get the methods of their classes.

    \b
    Examples:
      atoll types
      atoll types -c shop/wrangler.toml -c auth/wrangler.toml
      atoll types --out src/worker.d.ts --env-interface Bindings
    """
    from atoll.project.model import ProjectError
    from atoll.project.read import has_environment, read_project

    if not IDENTIFIER.fullmatch(env_interface):
        raise Failed(f"--env-interface is {env_interface!r}", "use a valid TypeScript identifier")
    try:
        project = read_project(path, environment, config=configs[0] if configs else None, for_dev=True)
        others = [
            read_project(None, environment if has_environment(config, environment) else "", config=config)
            for config in configs[1:]
        ]
    except ProjectError as error:
        raise Failed(str(error), error.hint) from None
    tell_findings(project, allow_missing=True)
    target = out or project.folder / "worker-configuration.d.ts"
    fields = env_fields(project, others, target.absolute().parent)
    text = global_types() + env_types(fields, env_interface)
    try:
        target.write_text(text, "utf-8")
    except OSError as error:
        raise Failed(f"{target} cannot be written: {error.strerror}", "name another file with --out") from None
    say(f"{env_interface} has {len(fields)} fields; add the file to tsconfig's `include`")
    if as_json:
        show_json({"file": str(target), "interface": env_interface, "fields": fields})
    else:
        echo(target)


def global_types() -> str:
    """The declarations of all globals, as one file."""
    folder, bindings = files("atoll.cli.types") / "globals", files("atoll.bindings")
    parts = [folder / f"{part}.d.ts" for part in PARTS]
    parts[1:1] = [file for kind in manifests() if (file := bindings / kind / f"{kind}.d.ts").is_file()]
    return HEAD + "\n".join(part.read_text("utf-8") for part in parts)


def env_types(fields: dict[str, str], interface: str) -> str:
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


def env_fields(project: Project, others: Sequence[Project] = (), folder: Path | None = None) -> dict[str, str]:
    """Name in env -> its type. Types of other workers are imports of their scripts, relative to `folder`."""
    scripts = {other.name: other.main for other in (project, *others) if other.main is not None}

    def script_of(worker: str) -> str | None:
        script = scripts.get(worker)
        if script is None or folder is None:
            return None
        path = os.path.relpath(script.with_suffix(""), folder)
        return path if path.startswith(".") else f"./{path}"

    fields = {name: type_of(value) for name, value in project.vars.items()}
    fields |= dict.fromkeys(project.required_secrets, "string")
    for entry in project.bindings:
        manifest = manifests()[entry["type"]]
        narrow = manifest.type_of(entry, script_of) if manifest.type_of is not None else None
        fields[entry["name"]] = narrow or manifest.type_name or "unknown"
    return fields


def type_of(value: Any) -> str:
    """A variable's type. Numbers and strings are not narrowed to literals: the next deploy may change them."""
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
