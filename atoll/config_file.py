"""The `[node]` table of atoll.toml: finds the file, and reads its settings with their lines. Also checks variables.

The file may also be a project's. Then it has a `name` or a `main`, and atoll/project checks the rest. In a file for a
node alone, everything outside of `[node]` is a mistake, usually a setting without its table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from atoll.errors import StartError

CONFIG_FILE = "atoll.toml"
PROJECT_KEYS = ("name", "main")
# Names in the environment that are not settings.
OTHER_VARIABLES = frozenset({
    "ATOLL_API", "ATOLL_COMPLETE", "ATOLL_CONFIG", "ATOLL_ESBUILD", "ATOLL_PROFILE", "ATOLL_ROOT_KEY", "ATOLL_TENANT",
    "ATOLL_TOKEN",
})  # fmt: skip


def find_file(config: Path | None, env: Mapping[str, str]) -> Path | None:
    """The file that was named, which must exist, or the one in the current folder, if any."""
    if config is None and env.get("ATOLL_CONFIG", "") != "":
        config = Path(env["ATOLL_CONFIG"])
    if config is None:
        return Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None
    if not config.is_file():
        raise StartError(f"there is no file {config}", "name an existing atoll.toml with --config, or leave it out")
    return config


def read_file(path: Path, known: Mapping[str, object]) -> Iterator[tuple[str, object, str]]:
    """Name, value and place of each setting in a file."""
    import tomllib  # imported here, as below: `atoll dev` starts faster without it

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
        raise StartError(
            f"`node` in {path} is not a table", "write [node] on a line of its own, with the settings below it"
        )
    for name, raw in node.items():
        place = _place(path, line_of(text, "node", name))
        if name not in known:
            raise StartError(f"{place} sets `{name}` in [node], which is not a setting", nearest(name, known))
        yield name, raw, place


def _refuse_others(path: Path, text: str, tables: Mapping[str, object], known: Mapping[str, object]) -> None:
    for name in tables:
        if name == "node":
            continue
        hint = "settings of a node belong below [node]"
        if header_line(text, name):
            place, what = _place(path, header_line(text, name)), f"a table [{name}]"
        else:
            place, what = _place(path, line_of(text, "", name)), f"`{name}` outside of [node]"
            hint += "" if name in known else f"; {nearest(name, known)}"
        raise StartError(f"{place} has {what}, which a node does not use", hint)


def _place(path: Path, line: int) -> str:
    return f"{path}:{line}" if line else str(path)


def line_of(text: str, table: str, key: str) -> int:
    """The line of a key of a table in a TOML file; 0 if it is written in an unusual form.

    The table "" is the part before the first table.
    """
    inside = table == ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[([^\[\]]+)\]", line)
        if header is not None:
            inside = header[1].strip() == table
        elif inside and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
            return number
    return 0


def header_line(text: str, table: str) -> int:
    """The line where a table or a part of it begins; 0 if it is written in another form."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"\s*\[\[?\s*[\"']?{re.escape(table)}[\"']?\s*[.\]]", line):
            return number
    return 0


def nearest(name: str, known: Mapping[str, object]) -> str:
    """A hint for a name that does not exist."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean `{close[0]}`?" if close else f"the known ones are {', '.join(known)}"


def refuse_mistyped(env: Mapping[str, str], names: Sequence[str]) -> None:
    """Rejects a variable that is almost the name of a setting. Others may be those of another program."""
    for variable in env:
        if variable.startswith("ATOLL_") and variable not in names and variable not in OTHER_VARIABLES:
            import difflib

            close = difflib.get_close_matches(variable, names, n=1, cutoff=0.85)
            if close:
                raise StartError(f"the variable {variable} is not a setting", f"did you mean {close[0]}?")
