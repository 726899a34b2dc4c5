"""The table of packages in docs/guides/npm.md. `python -m tests.packages.page` writes it."""

from __future__ import annotations

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/guides/npm.md"
START, END = "<!-- packages -->\n", "<!-- /packages -->\n"
IMPORT = re.compile(r'^import (?:.* from )?"((?:@[\w.-]+/)?[\w.-]+)', re.MULTILINE)

NOTE = re.compile(r"^// `([^`]+)`: (.*)$", re.MULTILINE)  # a comment of a case about a package


def case_names(project: str) -> list[str]:
    return sorted(file.stem for file in (HERE / project / "src").glob("*.js"))


def rows() -> dict[str, str]:
    """Package → its row. Packages that only the servers of the tests use have none."""
    found = {}
    for project in ("quick", "rest"):
        versions = json.loads((HERE / project / "package-lock.json").read_text())["packages"]
        for case in case_names(project):
            text = (HERE / project / "src" / f"{case}.js").read_text()
            notes = dict(NOTE.findall(text))
            for name in sorted(set(IMPORT.findall(text))):
                if installed := versions.get(f"node_modules/{name}"):
                    found[name] = f"| `{name}` | {installed['version']} | {notes.get(name, '')} |\n"
    return found


def page() -> str:
    """The page with a fresh table."""
    before, rest = PAGE.read_text().split(START)
    _, after = rest.split(END)
    table = rows()
    lines = [table[name] for name in sorted(table, key=lambda name: name.lstrip("@").lower())]
    return f"{before}{START}\n| package | version | |\n|---|---|---|\n{''.join(lines)}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page())
