"""From a path to a Project: the config is found, its environment chosen, every field checked and either used or told.

Environments differ in one thing: wrangler leaves vars and bindings out of an environment that does not repeat them, and
a project in its format means that. In atoll.toml an environment inherits everything, unless `strict_env = true`.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import msgspec

from atoll.project.assemble import assemble
from atoll.project.files import CONFIG_ENDINGS, SCRIPTS, dev_variables, find_config, read_config, worker_name
from atoll.project.model import Finding, Level, Project, ProjectError
from atoll.project.shapes import FIELDS, Kind, Verdict

FIELDS_PAGE = "docs/reference/project.md tells what each field holds"
PLAIN_NAMES = {"index", "worker", "main", "server", "app", "mod"}  # the folder says more than such a file
OURS = {"node", "strict_env"}
NAMED = {"durable_objects", "send_email"}  # whose bindings have a `name` where all others have a `binding`
IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)


def read_project(path: Path | None = None, environment: str = "", *, for_dev: bool = False) -> Project:
    """The project at `path` (a script, a config file or a folder; by default here or above). Raises ProjectError."""
    path = Path.cwd() if path is None else path.absolute()
    if not path.exists():
        raise ProjectError(f"there is no {path}", "name a script, a folder or a config file, or run `atoll init`")
    if path.is_file() and path.suffix in SCRIPTS:
        project = _of_script(path, environment)
    elif path.is_file() and path.suffix not in CONFIG_ENDINGS:
        hint = f"scripts end in {', '.join(SCRIPTS)}, configs in {', '.join(CONFIG_ENDINGS)}"
        raise ProjectError(f"{path} is neither a script nor a config", hint)
    else:
        config = find_config(path) if path.is_dir() else path
        if config is None:
            raise ProjectError(
                f"there is no project in {path}", "name a script, write an atoll.toml, or run `atoll init`"
            )
        project = _of_config(config, environment)
    if for_dev:
        values, _ = dev_variables(project.folder, environment)
        project.vars |= values
    return project


def _of_script(path: Path, environment: str) -> Project:
    if environment:
        raise ProjectError(f"{path.name} is a script and has no environments", "write an atoll.toml with [env.…]")
    name = path.parent.name if path.stem in PLAIN_NAMES else path.stem
    return Project(worker_name(name), path.parent, path, compatibility_date=_today())


def _of_config(path: Path, environment: str) -> Project:
    config = read_config(path)
    findings: list[Finding] = []
    fields = _chosen(config, path, environment, findings)
    values = {name: value for name, raw in fields.items() if (value := _checked(name, raw, path, findings)) is not None}
    missing = {
        binding: name
        for name, raw in fields.items()
        if name in FIELDS and FIELDS[name].verdict is Verdict.MISSING
        for binding in bindings_in(name, raw)
    }
    project = Project(
        name=_name(config, fields, path, environment),
        folder=path.parent,
        main=_main(values.get("main"), path, is_made=bool(getattr(values.get("build"), "command", ""))),
        config=path,
        environment=environment,
        findings=findings,
        missing=missing,
    )
    if "compatibility_date" not in values:
        project.compatibility_date = _today()
        text = f"missing: the worker behaves as of today, {project.compatibility_date}"
        findings.append(Finding(Level.NOTE, "compatibility_date", text, "write it down, so that it stays so"))
    assemble(project, values)
    return project


def _chosen(config: dict[str, Any], path: Path, environment: str, findings: list[Finding]) -> dict[str, Any]:
    """The fields that count: those of the top level, or what the environment gives and inherits."""
    known = config.get("env", {})
    if not isinstance(known, dict) or not all(isinstance(own, dict) for own in known.values()):
        raise ProjectError(f"`env` in {path.name} does not fit: it holds no environments", "write [env.staging]")
    if not environment:
        return {name: value for name, value in config.items() if name != "env"}
    if environment not in known:
        names = list(known)
        import difflib

        close = difflib.get_close_matches(environment, names, n=1)
        hint = f"did you mean `{close[0]}`?" if close else f"it has {', '.join(names) or 'none'}"
        raise ProjectError(f"{path.name} has no environment `{environment}`", hint)
    own = known[environment]
    strict = config.get("strict_env", path.name != "atoll.toml")
    fields = {}
    for name, value in config.items():
        kind = FIELDS[name].kind if name in FIELDS else Kind.INHERITED
        if name in own or name in ("env", "name"):
            continue
        if kind is Kind.OWN and strict:
            text = f"stands at the top level only, so the environment `{environment}` goes without it"
            findings.append(Finding(Level.WARNING, name, text, f"repeat it under env.{environment}"))
            continue
        fields[name] = value
    for name, value in own.items():
        if name in FIELDS and FIELDS[name].kind is Kind.TOP:
            text = f"means nothing in the environment `{environment}`"
            findings.append(Finding(Level.WARNING, name, text, "move it to the top level"))
        else:
            fields[name] = value
    return fields


def _name(config: dict[str, Any], fields: dict[str, Any], path: Path, environment: str) -> str:
    """As wrangler has it: an environment appends itself to the name, unless it has one of its own."""
    if "name" in fields:
        return str(fields["name"])
    base = config.get("name")
    base = base if isinstance(base, str) else worker_name(path.parent.name)
    return f"{base}-{environment}" if environment else base


def _main(main: str | None, config: Path, *, is_made: bool) -> Path | None:
    """`is_made`: by a step of the build, so it need not be there yet."""
    if main is None:
        return None
    path = (config.parent / main).absolute()
    if not is_made and not path.is_file():
        raise ProjectError(
            f"`main` in {config.name} is {main}, and there is no such file", "correct it, or build it first"
        )
    return path


def _checked(name: str, raw: Any, path: Path, findings: list[Finding]) -> Any:
    """The value of a field in its shape, or None when it is not used; then that is told."""
    field = FIELDS.get(name)
    if field is None or (name in OURS and path.name != "atoll.toml"):
        import difflib

        close = difflib.get_close_matches(name, FIELDS, n=1)
        hint = f"did you mean `{close[0]}`?" if close else "leave it out"
        findings.append(Finding(Level.WARNING, name, "is no field that Atoll knows, so nothing is done with it", hint))
        return None
    if field.verdict is Verdict.MISSING:
        if raw:  # an empty list asks for nothing
            findings.append(Finding(Level.ERROR, name, f"is not supported: {field.why}"))
        return None
    if field.verdict is Verdict.IGNORED:
        findings.append(Finding(Level.WARNING, name, f"is ignored: {field.why}"))
        return None
    try:
        value = msgspec.convert(raw, field.shape)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        place = f"{name}{where.removesuffix('`')}"
        what = what[:1].lower() + what[1:]
        raise ProjectError(f"`{place}` in {path.name} does not fit: {what}", FIELDS_PAGE) from None
    for place in unknown_keys(raw, value, name):
        findings.append(Finding(Level.WARNING, place, "is no field that Atoll knows, so nothing is done with it"))
    return None if field.verdict is Verdict.QUIET else value


def bindings_in(field: str, raw: Any) -> list[str]:
    """The names in env that a field of bindings asks for, whatever they are bindings of."""
    if isinstance(raw, list):
        return [name for entry in raw for name in bindings_in(field, entry)]
    if not isinstance(raw, dict):
        return []
    if isinstance(raw.get("bindings"), list):
        return bindings_in(field, raw["bindings"])
    name = raw.get("name" if field in NAMED else "binding")
    return [name] if isinstance(name, str) and IDENTIFIER.fullmatch(name) else []


def unknown_keys(raw: Any, value: Any, place: str) -> list[str]:
    """The keys of `raw` that its shape has no place for."""
    if isinstance(raw, list) and isinstance(value, list):
        pairs = zip(raw, value, strict=True)
        return [key for i, pair in enumerate(pairs) for key in unknown_keys(*pair, f"{place}[{i}]")]
    if not isinstance(value, msgspec.Struct) or not isinstance(raw, dict):
        return []
    found = []
    for key, inner in raw.items():
        if key not in value.__struct_fields__:
            found.append(f"{place}.{key}")
        else:
            found += unknown_keys(inner, getattr(value, key), f"{place}.{key}")
    return found


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()
