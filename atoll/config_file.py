"""The `[node]` table of atoll.toml: where the file is, what stands in it, and on which line.

The file may be a project's as well; then it has a `name` or a `main`, and the rest of it is for atoll/project to judge.
In one that is a node's alone, whatever stands outside of `[node]` is a mistake, most often a setting without its table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from atoll.errors import StartError

CONFIG_FILE = "atoll.toml"
PROJECT_KEYS = ("name", "main")


def find_file(config: Path | None, env: Mapping[str, str]) -> Path | None:
    """The file that was named, which must exist, or the one that happens to be here."""
    if config is None and env.get("ATOLL_CONFIG", "") != "":
        config = Path(env["ATOLL_CONFIG"])
    if config is None:
        return Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None
    if not config.is_file():
        raise StartError(f"there is no file {config}", "name an existing atoll.toml with --config, or leave it out")
    return config


def read_file(path: Path, known: Mapping[str, object]) -> Iterator[tuple[str, object, str]]:
    """Name, value and place of each setting in a file."""
    import tomllib  # here, as below: `atoll dev` starts the sooner without it

    try:
        text = path.read_text("utf-8")
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StartError(f"{path} is not TOML: {error}", "see https://toml.io for the format") from None
    except OSError as error:
        raise StartError(f"{path} cannot be read: {error.strerror}", "check its permissions") from None
    if not any(key in tables for key in PROJECT_KEYS):
        _refuse_others(path, text, tables, known)
    node = tables.get("node", {})
    if not isinstance(node, dict):
        raise StartError(f"`node` in {path} is not a table", "write [node] on a line of its own, settings below it")
    for name, raw in node.items():
        place = _place(path, line_of(text, "node", name))
        if name not in known:
            raise StartError(f"{place} sets `{name}` in [node], which is no setting", nearest(name, known))
        yield name, raw, place


def _refuse_others(path: Path, text: str, tables: Mapping[str, object], known: Mapping[str, object]) -> None:
    for name in tables:
        if name == "node":
            continue
        hint = "settings of a node stand below [node]"
        if header_line(text, name):
            place, what = _place(path, header_line(text, name)), f"a table [{name}]"
        else:
            place, what = _place(path, line_of(text, "", name)), f"`{name}` outside of [node]"
            hint += "" if name in known else f"; {nearest(name, known)}"
        raise StartError(f"{place} has {what}, which means nothing to a node", hint)


def _place(path: Path, line: int) -> str:
    return f"{path}:{line}" if line else str(path)


def line_of(text: str, table: str, key: str) -> int:
    """The line of a TOML file on which a key of a table stands, 0 if it stands there in a way that is not usual.

    The table "" is what stands before the first one.
    """
    inside = table == ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
        if header is not None:
            inside = header[1] == table
        elif inside and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
            return number
    return 0


def header_line(text: str, table: str) -> int:
    """The line on which a table begins, or a part of it; 0 if it is written in another way."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"\s*\[\[?\s*[\"']?{re.escape(table)}[\"']?\s*[.\]]", line):
            return number
    return 0


def nearest(name: str, known: Mapping[str, object]) -> str:
    """A hint for a name that does not exist."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean `{close[0]}`?" if close else f"the known ones are {', '.join(known)}"
