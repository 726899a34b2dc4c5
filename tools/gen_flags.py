"""The compatibility flags of protocol/flags.toml for the runtime, for `atoll doctor` and for the reference page.

tools/gen_wire.py writes the files with the rest of `make wire`.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "protocol" / "flags.toml"
PAGE = ROOT / "docs" / "reference" / "compatibility.md"
STATES = ("done", "always", "not yet", "cannot")
KEYS = {"off", "since", "with", "state", "note"}
NOTE = "Written by tools/gen_flags.py from protocol/flags.toml. Do not edit: run `make wire`."
BEGIN, END = "<!-- {}: from protocol/flags.toml, by `make wire` -->", "<!-- end -->"


def read_flags() -> dict[str, dict[str, Any]]:
    flags: dict[str, dict[str, Any]] = tomllib.loads(SOURCE.read_text("utf-8"))
    for name, flag in flags.items():
        if flag.keys() - KEYS or flag["state"] not in STATES:
            raise SystemExit(f"{SOURCE.name}: {name} has an unknown key or state")
    return flags


def _javascript(flags: dict[str, dict[str, Any]]) -> str:
    rows = []
    for name, flag in flags.items():
        facts = {key: flag[key] for key in ("off", "since", "with") if key in flag}
        rows.append(f"  {json.dumps(name)}: {json.dumps(facts)},")
    return "\n".join(["export const FLAGS = Object.freeze({", "  __proto__: null,", *rows, "});", ""])


def switches(flags: dict[str, dict[str, Any]]) -> str:
    done = {name: flag for name, flag in flags.items() if flag["state"] == "done"}
    return f"// The flags that can be switched here. {NOTE}\n\n{_javascript(done)}"


def fixed(flags: dict[str, dict[str, Any]]) -> str:
    names = {state: [name for name, flag in flags.items() if flag["state"] == state] for state in STATES}
    lines = [f"// The flags that cannot be switched here. {NOTE}", ""]
    lines += ["export const ON = [", *(f"  {json.dumps(name)}," for name in names["always"]), "];"]
    off = [*names["not yet"], *names["cannot"]]
    lines += ["export const OFF = [", *(f"  {json.dumps(name)}," for name in off), "];", ""]
    return "\n".join(lines)


def _since(flag: dict[str, Any]) -> str:
    parts = [f"from {flag['since']}"] if "since" in flag and flag["since"] > "2000" else []
    if "with" in flag:
        names = " or ".join(f"`{name}`" for name in flag["with"]["flags"])
        parts.append(f"with {names} from {flag['with']['since']}")
    return "; ".join(parts)


def _row(name: str, flag: dict[str, Any]) -> str:
    off = f"`{flag['off']}`" if "off" in flag else ""
    return f"| `{name}` | {off} | {_since(flag)} | {flag['note']} |"


def page(flags: dict[str, dict[str, Any]], text: str) -> str:
    """The reference page with the tables of today."""
    for state in STATES:
        head, begin, rest = text.partition(BEGIN.format(state) + "\n")
        _, end, tail = rest.partition(END)
        if not begin or not end:
            raise SystemExit(f"{PAGE.name} has no place for the flags that are {state!r}")
        rows = [_row(name, flag) for name, flag in flags.items() if flag["state"] == state]
        text = head + begin + "\n".join(["| flag | opposite | on | |", "|---|---|---|---|", *rows, ""]) + end + tail
    return text


def outputs() -> dict[Path, str]:
    flags = read_flags()
    return {
        ROOT / "web" / "worker" / "switches.gen.js": switches(flags),
        ROOT / "web" / "worker" / "fixed_flags.gen.js": fixed(flags),
        ROOT / "atoll" / "project" / "flags.gen.json": json.dumps(flags, indent=0) + "\n",
        PAGE: page(flags, PAGE.read_text("utf-8")),
    }
