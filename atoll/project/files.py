"""The files of a project: which config counts, and what the formats mean. TOML, JSON with comments, dotenv."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from atoll.project.model import ProjectError

CONFIGS = ("atoll.toml", "wrangler.json", "wrangler.jsonc", "wrangler.toml")  # the first that is there counts
CONFIG_ENDINGS = (".toml", ".json", ".jsonc")
SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")

# Strings are matched first, so that what looks like a comment inside one stays. A comment is skipped whole or not at
# all ((?>…)): a bracket inside one ends nothing.
JSONC = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=(?>(?:\s|//[^\n]*|/\*.*?\*/)*)[}\]])', re.DOTALL)
DOTENV = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*
    (?:'([^']*)'|"((?:[^"\\]|\\.)*)"|`([^`]*)`|([^#\n]*?))[ \t]*(?:\#[^\n]*)?$""",
    re.MULTILINE | re.VERBOSE,
)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def find_config(folder: Path) -> Path | None:
    """The config of a project folder, or of the nearest folder above it that has one."""
    for place in (folder, *folder.parents):
        for name in CONFIGS:
            path = place / name
            if path.is_file() and not _only_of_the_node(path):
                return path
    return None


def _only_of_the_node(path: Path) -> bool:
    """An atoll.toml may hold nothing but the settings of `atoll serve`."""
    return path.name == "atoll.toml" and not set(read_config(path)) - {"node"}


def read_config(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProjectError(f"{path} is not UTF-8: {error}", "save it as UTF-8") from None
    except OSError as error:
        raise ProjectError(f"{path} cannot be read: {error.strerror}", "check its name and permissions") from None
    try:
        config = _toml(path, text) if path.suffix == ".toml" else json.loads(JSONC.sub(_blank, text))
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}:{error.colno}"
        raise ProjectError(f"{where} is not JSON: {error.msg}", "comments and trailing commas are fine") from None
    if not isinstance(config, dict):
        raise ProjectError(f"{path} holds no object", 'write {"name": "…", "main": "…"}')
    return config


def _toml(path: Path, text: str) -> Any:
    import tomllib  # here: a project with wrangler.jsonc starts the sooner without it

    try:
        return _without_dates(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ProjectError(f"{path} is not TOML: {error}", "see https://toml.io for the format") from None


def _without_dates(value: Any) -> Any:
    """TOML knows days and times, which are text everywhere else: `compatibility_date = 2026-01-31` without quotes."""
    if isinstance(value, dict):
        return {name: _without_dates(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_dates(inner) for inner in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _blank(match: re.Match[str]) -> str:
    """A comment or trailing comma as spaces, so that errors keep their line and column."""
    text = match[0]
    return text if text.startswith('"') else re.sub(r"[^\n]", " ", text)


def read_dotenv(path: Path) -> dict[str, str]:
    try:
        text = path.read_text("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectError(f"{path} cannot be read: {error}", "save it as UTF-8, one NAME=value a line") from None
    values = {}
    for name, single, double, ticked, plain in DOTENV.findall(text):
        unescaped = re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), double, flags=re.DOTALL)
        values[name] = single or unescaped or ticked or plain
    return values


def dev_variables(folder: Path, environment: str) -> tuple[dict[str, str], list[Path]]:
    """What `.dev.vars` says, or else the `.env` files; and which files were read. For development only."""
    names = [f".dev.vars.{environment}"] if environment else []
    for name in (*names, ".dev.vars"):
        if (folder / name).is_file():
            return read_dotenv(folder / name), [folder / name]
    names = [".env", ".env.local"]
    if environment:
        names += [f".env.{environment}", f".env.{environment}.local"]
    found = [folder / name for name in names if (folder / name).is_file()]
    values: dict[str, str] = {}
    for path in found:
        values |= read_dotenv(path)
    return values, found


def worker_name(text: str) -> str:
    """A name that can be a host, made of a file's or a folder's."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].strip("-") or "worker"


def picked(values: Mapping[str, object]) -> dict[str, Any]:
    """Without what was not given."""
    return {name: value for name, value in values.items() if value not in (None, "")}
