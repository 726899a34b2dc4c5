"""Writes the pass counts of Atoll and workerd into docs/reference/web-platform-tests.md."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/web-platform-tests.md"
BEGIN = "<!-- written by make wpt -->"
END = "<!-- until here -->"


def write(table: Sequence[tuple[str, int, int, int]], workerd: str, suite: str) -> None:
    """`table`: folder, passed by Atoll, passed by workerd, tests; the sums come last."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.strip()
    lines = [
        f"{datetime.now(UTC):%Y-%m-%d}: Atoll {version('atoll')} (commit {commit}), workerd {workerd}, suite: {suite}.",
        "",
        "| folder | Atoll | workerd | tests | Atoll | workerd |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for folder, ours, theirs, total in table:
        lines.append(f"| {folder} | {ours:,} | {theirs:,} | {total:,} | {ours / total:.1%} | {theirs / total:.1%} |")
    text = f"{BEGIN}\n" + "\n".join(lines) + f"\n{END}"
    page = PAGE.read_text("utf-8")
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: text, page, flags=re.DOTALL), "utf-8")
