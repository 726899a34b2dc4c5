"""From a path to a Project: finds the config, chooses the environment, and uses or reports every field.

The formats differ in one thing. In wrangler's, an environment has only the vars and bindings that it repeats. In
atoll.toml an environment inherits everything, unless `strict_env = true`.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import msgspec

from atoll.manifests.config_fields import FieldVerdict, Finding, FindingLevel
from atoll.project.assemble import assemble
from atoll.project.files import CONFIG_ENDINGS, SCRIPTS, dev_variables, find_config, read_config
from atoll.project.model import Project, ProjectError
from atoll.project.redirect import NOTES, check_environment, finding_about_age, redirected
from atoll.project.shapes import FIELDS, Kind
from atoll.project.subfields import finding_about, findings_inside, unknown
from atoll.project.tools import tool_of
from atoll.workers import worker_name

FIELDS_PAGE = "see docs/reference/project.md for each field"
PLAIN_NAMES = {"index", "worker", "main", "server", "app", "mod"}  # the folder's name says more than these
OURS = {"node", "strict_env"}
INSTEAD = {"route": "routes", "routes": "route"}  # two spellings of one field
IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)


def read_project(
    path: Path | None = None,
    environment: str = "",
    *,
    config: Path | None = None,
    for_dev: bool = False,
    as_built: bool = False,
) -> Project:
    """The project at `path`: a script, a config file or a folder; by default the current folder or one above it.

    A script is the entry of the project it is in: it replaces `main` of the nearest config from its folder upwards, and
    nothing else. `config` names another config. A script without any config is a project by itself. With `as_built`, a
    config that a build tool made replaces the project's own (redirect.py).

    Raises ProjectError.
    """
    path = Path.cwd() if path is None and config is None else path
    entry = _entry(path.absolute(), config) if path is not None else None
    made = redirected(path.absolute()) if as_built and path is not None and path.is_dir() else None
    if made is not None:
        return _of_tool(*made, environment, for_dev=for_dev)
    found = _config_at(config.absolute()) if config is not None else find_config(entry.parent) if entry else None
    if found is None and entry is None:
        assert path is not None
        found = _config_at(path.absolute())
    if found is not None:
        project = _of_config(found, environment, entry)
        if as_built and config is None and entry is None and found.name != "atoll.toml":
            project.tool = tool_of(found.parent)
    else:
        assert entry is not None
        project = _of_script(entry, environment)
    if for_dev:
        values, _ = dev_variables(project.folder, environment)
        project.vars |= values
    return project


def _entry(path: Path, config: Path | None) -> Path | None:
    """The script that `path` is; None for a folder or a config file."""
    if not path.exists():
        raise ProjectError(f"there is no {path}", "name a script, a folder or a config file, or run `atoll init`")
    if path.is_file() and path.suffix in SCRIPTS:
        return path
    if path.is_file() and path.suffix not in CONFIG_ENDINGS:
        hint = f"scripts end in {', '.join(SCRIPTS)}, configs in {', '.join(CONFIG_ENDINGS)}"
        raise ProjectError(f"{path} is neither a script nor a config", hint)
    if config is not None:
        hint = "with --config, PATH must be a script or left out"
        raise ProjectError(f"{path} and --config {config} both name a project", hint)
    return None


def _config_at(path: Path) -> Path:
    """The config file `path`, or the one of a folder, in it or above."""
    found = find_config(path) if path.is_dir() else path if path.is_file() else None
    if found is not None:
        return found
    if path.is_dir():
        raise ProjectError(f"there is no project in {path}", "name a script, write an atoll.toml, or run `atoll init`")
    raise ProjectError(f"there is no {path}", "name a config file or its folder")


def has_environment(config: Path, environment: str) -> bool:
    """Whether the project of this config file or folder has the environment. Raises ProjectError."""
    known = read_config(_config_at(config.absolute())).get("env")
    return isinstance(known, dict) and environment in known


def _of_script(path: Path, environment: str) -> Project:
    if environment:
        raise ProjectError(f"{path.name} has no config, so it has no environments", "write an atoll.toml with [env.…]")
    name = path.parent.name if path.stem in PLAIN_NAMES else path.stem
    return Project(worker_name(name), path.parent, path, compatibility_date=_today())


def _of_tool(path: Path, place: Path, environment: str, *, for_dev: bool) -> Project:
    """The project in the folder `place`, as the config `path` of its build tool describes it."""
    config = read_config(path)
    check_environment(config, path, environment)
    project = _of_fields({name: value for name, value in config.items() if name not in NOTES}, path, "")
    # Notes are about what people write in a config. The tool writes every field.
    project.findings = [each for each in project.findings if each.level is not FindingLevel.NOTE]
    project.findings += [found] if (found := finding_about_age(path, place)) is not None else []
    project.home, project.tool = place, tool_of(place)
    if for_dev:
        project.vars |= dev_variables(place, environment)[0] or dev_variables(path.parent, environment)[0]
    return project


def _of_config(path: Path, environment: str, entry: Path | None = None) -> Project:
    return _of_fields(read_config(path), path, environment, entry)


def _of_fields(config: dict[str, Any], path: Path, environment: str, entry: Path | None = None) -> Project:
    findings: list[Finding] = []
    fields = _chosen(config, path, environment, findings)
    values = {name: value for name, raw in fields.items() if (value := _checked(name, raw, path, findings)) is not None}
    missing = {
        binding: name
        for name, raw in fields.items()
        if name in FIELDS and FIELDS[name].verdict is FieldVerdict.MISSING
        for binding in bindings_in(name, raw)
    }
    project = Project(
        name=_name(config, fields, path, environment),
        folder=path.parent,
        main=entry or _main(values.get("main"), path),
        is_entry_named=entry is not None,
        config=path,
        environment=environment,
        findings=findings,
        missing=missing,
    )
    if "compatibility_date" not in values:
        project.compatibility_date = _today()
        text = f"missing: the worker behaves as of today, {project.compatibility_date}"
        findings.append(
            Finding(FindingLevel.NOTE, "compatibility_date", text, "set it, so that the behaviour stays the same")
        )
    assemble(project, values)
    return project


def _chosen(config: dict[str, Any], path: Path, environment: str, findings: list[Finding]) -> dict[str, Any]:
    """The fields that apply: those of the top level, or those that the environment sets and inherits."""
    known = config.get("env", {})
    if not isinstance(known, dict) or not all(isinstance(own, dict) for own in known.values()):
        raise ProjectError(f"`env` in {path.name} is invalid: it is not a table of environments", "write [env.staging]")
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
        if name in own or INSTEAD.get(name) in own or name in ("env", "name"):
            continue
        if kind is Kind.OWN and strict:
            text = f"is set at the top level only, so the environment `{environment}` does not have it"
            findings.append(Finding(FindingLevel.WARNING, name, text, f"repeat it under env.{environment}"))
            continue
        fields[name] = value
    for name, value in own.items():
        if name in FIELDS and FIELDS[name].kind is Kind.TOP:
            text = f"has no effect in the environment `{environment}`"
            findings.append(Finding(FindingLevel.WARNING, name, text, "move it to the top level"))
        else:
            fields[name] = value
    return fields


def _name(config: dict[str, Any], fields: dict[str, Any], path: Path, environment: str) -> str:
    """As in wrangler: the environment is appended to the name, unless the environment sets a name of its own."""
    if "name" in fields:
        return str(fields["name"])
    base = config.get("name")
    base = base if isinstance(base, str) else worker_name(path.parent.name)
    return f"{base}-{environment}" if environment else base


def _main(main: str | None, config: Path) -> Path | None:
    """It need not exist yet: a build step may make it (build.py)."""
    return (config.parent / main).absolute() if main is not None else None


def _checked(name: str, raw: Any, path: Path, findings: list[Finding]) -> Any:
    """The value of a field in its shape. None if it is not used; then `findings` says why."""
    field = FIELDS.get(name)
    if field is None or (name in OURS and path.name != "atoll.toml"):
        findings.append(unknown(name, FIELDS))
        return None
    if field.verdict is not FieldVerdict.USED:
        finding = finding_about(name, raw, field)
        findings += [finding] if finding is not None else []
        return None
    try:
        value = msgspec.convert(raw, field.shape)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        place = f"{name}{where.removesuffix('`')}"
        what = what[:1].lower() + what[1:]
        raise ProjectError(f"`{place}` in {path.name} is invalid: {what}", FIELDS_PAGE) from None
    findings += findings_inside(name, raw, value)
    return value


def bindings_in(field: str, raw: Any) -> list[str]:
    """The names in env that a field of bindings defines, for any kind of binding."""
    if isinstance(raw, list):
        return [name for entry in raw for name in bindings_in(field, entry)]
    if not isinstance(raw, dict):
        return []
    if isinstance(raw.get("bindings"), list):
        return bindings_in(field, raw["bindings"])
    name = raw.get("binding")
    return [name] if isinstance(name, str) and IDENTIFIER.fullmatch(name) else []


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()
