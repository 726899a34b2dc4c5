"""The files of a project: finds its config and parses TOML, JSON with comments, and dotenv."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from atoll.project.model import ProjectError

CONFIGS = ("atoll.toml", "wrangler.json", "wrangler.jsonc", "wrangler.toml")  # the first one that exists is used
CONFIG_ENDINGS = (".toml", ".json", ".jsonc")
SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")

# Strings are matched first, so that comment marks inside them stay. A comment is skipped as a whole ((?>…)), so that
# brackets inside it do not count. An unterminated one is matched to the end of the file: each character is read once.
JSONC = re.compile(
    r'"(?:[^"\\\n]|\\.)*+(?:"|)|//[^\n]*|/\*.*?(?:\*/|\Z)|,(?=(?>(?:\s|//[^\n]*|/\*.*?\*/)*)[}\]])', re.DOTALL
)
DOTENV = re.compile(
    r"""^[ \t]*+(?:export[ \t]++)?([\w.-]++)[ \t]*+=[ \t]*+
    (?:'([^']*+)'|"((?:[^"\\]|\\.)*+)"|`([^`]*+)`|([^#\n]*+))[ \t]*+(?:\#[^\n]*+)?$""",
    re.MULTILINE | re.VERBOSE,
)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def find_config(folder: Path) -> Path | None:
    """The config of a project folder, or of the nearest folder above it that has one, up to the root of the repository.

    Folders above that root belong to other projects.
    """
    for place in (folder, *folder.parents):
        if found := config_in(place):
            return found
        if (place / ".git").exists():
            return None
    return None


def config_in(folder: Path) -> Path | None:
    """The config in this folder itself."""
    for name in CONFIGS:
        path = folder / name
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
        raise ProjectError(f"{path} does not hold a JSON object", 'write {"name": "…", "main": "…"}')
    return config


def _toml(path: Path, text: str) -> Any:
    import tomllib  # imported here: a project with wrangler.jsonc starts faster without it

    try:
        return _without_dates(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ProjectError(f"{path} is not TOML: {error}", "see https://toml.io for the format") from None


def _without_dates(value: Any) -> Any:
    """TOML dates and times become strings, as in `compatibility_date = 2026-01-31` without quotes."""
    if isinstance(value, dict):
        return {name: _without_dates(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_dates(inner) for inner in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _blank(match: re.Match[str]) -> str:
    """Replaces a comment or trailing comma by spaces, so that errors keep their line and column."""
    text = match[0]
    is_comment = not text.startswith("/*") or (len(text) >= 4 and text.endswith("*/"))
    return re.sub(r"[^\n]", " ", text) if is_comment and not text.startswith('"') else text


def read_dotenv(path: Path) -> dict[str, str]:
    try:
        text = path.read_text("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectError(
            f"{path} cannot be read: {error}", "save it as UTF-8, with one NAME=value per line"
        ) from None
    values = {}
    for name, single, double, ticked, plain in DOTENV.findall(text):
        unescaped = re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), double, flags=re.DOTALL)
        values[name] = single or unescaped or ticked or plain.rstrip(" \t")
    return values


def dev_variables(folder: Path, environment: str) -> tuple[dict[str, str], list[Path]]:
    """The variables of `.dev.vars`, or else of the `.env` files, and the files that were read. For development only."""
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
