"""Writes the wire of three languages from protocol/wire.toml, the bounds that
both halves of a binding check, and what follows from the compatibility flags.

    python -m tools.gen_wire           writes the files
    python -m tools.gen_wire --check   fails if a file on disk differs from the output

The generated files are committed, so that readers and linters find them. tests/test_house.py checks that they are
fresh.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from pathlib import Path
from typing import Any

from tools import gen_flags

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "protocol" / "wire.toml"
STRUCT = {"u8": "B", "u16": "H", "u32": "I"}
CPP = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t"}
NOTE = "Written by tools/gen_wire.py from protocol/wire.toml. Do not edit: run `make wire`."


def wire_hash(wire: dict[str, Any]) -> str:
    """Changes whenever a fact of the wire changes; comments and layout of the file do not count."""
    return hashlib.sha256(repr(wire).encode()).hexdigest()[:16]


def camel(name: str) -> str:
    return "k" + "".join(part.capitalize() for part in name.split("_"))


def python_enum(name: str, base: str, doc: str, rows: list[tuple[str, int, str]]) -> list[str]:
    lines = ["", "", f"class {name}({base}):", f'    """{doc}"""', ""]
    for key, value, comment in rows:
        lines += [f"    # {comment}"] if comment else []
        lines.append(f"    {key} = {value}")
    return lines


def python(wire: dict[str, Any]) -> str:
    layout = "<" + "".join(STRUCT[kind] for kind in wire["header"].values())
    errors = wire["errors"]
    out = [
        f'"""The wire as Python sees it. {NOTE}"""',
        "",
        "from enum import IntEnum, IntFlag",
        "from typing import Final, NamedTuple",
        "",
        f'WIRE_HASH = "{wire_hash(wire)}"',
        f'HEADER_LAYOUT = "{layout}"  # {", ".join(wire["header"])}',
    ]
    out += [f"{key}: Final = {value}" for key, value in wire["constants"].items()]
    frames = [(k, v[0], f"{v[1]}: {v[3]}") for k, v in wire["frames"].items()]

    def plain(table: str) -> list[tuple[str, int, str]]:
        return [(key, value, "") for key, value in wire[table].items()]

    out += python_enum("Frame", "IntEnum", "The kinds of frame; each says who sends it.", frames)
    out += python_enum("Flag", "IntFlag", "Bits of a frame's flags.", plain("flags"))
    out += python_enum("Event", "IntEnum", "What a CALL starts.", plain("events"))
    out += python_enum("Level", "IntEnum", "How loud a console line is.", plain("levels"))
    outcomes = [(snake(k), v, "") for k, v in wire["outcomes"].items()]
    out += python_enum("Outcome", "IntEnum", "How a call ended.", outcomes)
    out += python_enum(
        "ErrorCode", "IntEnum", "Permanent codes of everything that goes wrong on purpose.",
        [(k, v[0], v[5]) for k, v in errors.items()],
    )  # fmt: skip
    out += [
        "",
        "",
        "class ErrorFacts(NamedTuple):",
        '    """What an error code means at the front and in a worker."""',
        "",
        "    status: int",
        "    page: int",
        "    outcome: Outcome",
        "    js_class: str",
        "    meaning: str",
        "",
        "",
        "OUTCOME_NAMES: dict[int, str] = {",
        *[f'    {v}: "{k}",' for k, v in wire["outcomes"].items()],
        "}",
        "",
        "ERRORS: dict[ErrorCode, ErrorFacts] = {",
    ]
    for key, (_, status, page, outcome, js_class, meaning) in errors.items():
        out += [
            f"    ErrorCode.{key}: ErrorFacts(",
            f'        {status}, {page}, Outcome.{snake(outcome)}, "{js_class}", "{meaning}"',
            "    ),",
        ]
    return "\n".join([*out, "}", ""])


def snake(name: str) -> str:
    return "".join("_" + c if c.isupper() else c.upper() for c in name)


def cpp(wire: dict[str, Any]) -> str:
    out = [
        f"// The wire as the engine sees it. {NOTE}",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        "namespace engine::wire {",
        "",
        f'inline constexpr char kHash[] = "{wire_hash(wire)}";',
        *[f"inline constexpr uint32_t {camel(k)} = {v};" for k, v in wire["constants"].items()],
        "",
        "struct Header {",
        *[f"  {CPP[kind]} {field};" for field, kind in wire["header"].items()],
        "};",
        "static_assert(sizeof(Header) == 16);",
    ]
    tables: list[tuple[str, str, list[tuple[str, int, str]]]] = [
        ("Frame", "uint8_t", [(k, v[0], f"{v[1]}: {v[3]}") for k, v in wire["frames"].items()]),
        ("Event", "uint8_t", [(k, v, "") for k, v in wire["events"].items()]),
        ("Level", "uint8_t", [(k, v, "") for k, v in wire["levels"].items()]),
        ("Outcome", "uint32_t", [(snake(k).lower(), v, "") for k, v in wire["outcomes"].items()]),
        ("Error", "uint32_t", [(k, v[0], v[5]) for k, v in wire["errors"].items()]),
    ]
    for name, base, rows in tables:
        out += ["", f"enum class {name} : {base} {{"]
        out += [f"  {camel(k)} = {v}," + (f"  // {c}" if c else "") for k, v, c in rows]
        out += ["};"]
    out += ["", *[f"inline constexpr uint8_t {camel('FLAG_' + k)} = {v};" for k, v in wire["flags"].items()]]
    out += ["", "// How a call that failed with `error` ended."]
    out += ["constexpr Outcome OutcomeOf(Error error) {", "  switch (error) {"]
    for key, row in wire["errors"].items():
        out += [f"    case Error::{camel(key)}:", f"      return Outcome::{camel(snake(row[3]).lower())};"]
    out += ["  }", "  return Outcome::kInternalError;", "}", "", "}  // namespace engine::wire", ""]
    return "\n".join(out)


def javascript(wire: dict[str, Any]) -> str:
    out = [f"// The wire as the web platform sees it. {NOTE}", "", "export const ErrorCode = Object.freeze({"]
    out += [f"  {k}: {v[0]}, // {v[5]}" for k, v in wire["errors"].items()]
    out += ["});", "", "// Error code -> the JavaScript class a worker sees."]
    out += ["export const ErrorClass = Object.freeze({"]
    out += [f'  {v[0]}: "{v[4]}",' for v in wire["errors"].values()]
    out += ["});", "", "export const Level = Object.freeze({"]
    out += [f"  {k}: {v}," for k, v in wire["levels"].items()]
    out += ["});", "", "// What a call starts.", "export const Event = Object.freeze({"]
    out += [f"  {k}: {v}," for k, v in wire["events"].items()]
    out += ["});", "", *[f"export const {k} = {v};" for k, v in wire["constants"].items()]]
    return "\n".join([*out, ""])


def bounds(source: Path) -> dict[Path, str]:
    """The bounds that both halves of one binding check."""
    folder = source.parent
    values = tomllib.loads(source.read_text())
    title = f"Bounds that both halves of the binding check. Written from {source.name}: run `make wire`."
    python_lines = [f'"""{title}"""', "", "from typing import Final", ""]
    python_lines += [f"{k}: Final = {v}" for k, v in values.items()]
    js_lines = [f"// {title}", *(f"export const {k} = {v};" for k, v in values.items())]
    return {
        folder / "bounds.py": "\n".join([*python_lines, ""]),
        folder / "bounds.gen.js": "\n".join([*js_lines, ""]),
    }


def outputs() -> dict[Path, str]:
    wire = tomllib.loads(SOURCE.read_text())
    of_bindings: dict[Path, str] = {}
    for source in sorted((ROOT / "atoll" / "bindings").glob("*/bounds.toml")):
        of_bindings |= bounds(source)
    return (
        of_bindings
        | gen_flags.outputs()
        | {
            ROOT / "atoll" / "wire" / "generated.py": python(wire),
            ROOT / "engine" / "src" / "link" / "wire.gen.h": cpp(wire),
            ROOT / "web" / "internal" / "wire.gen.js": javascript(wire),
        }
    )


def main() -> int:
    stale = [path for path, text in outputs().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"stale: {path.relative_to(ROOT)} (run `make wire`)", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(outputs()[path])
        print(f"wrote {path.relative_to(ROOT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
