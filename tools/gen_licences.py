"""Writes the licences of the works of others in a built Atoll: `python -m tools.gen_licences NPM_FOLDER OUTFILE`.

NPM_FOLDER has the packages of npm that the build uses. The bundler is not inside, and of better-sqlite3 only SQLite is.
Node is not inside either: it is a package of its own on PyPI, which has its own licences.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TOOLS = ("esbuild", "@esbuild/", "node-addon-api")  # used by the build, or not at all
PLACES = {
    "better-sqlite3": (
        "SQLite {version}, as it is in the npm package better-sqlite3; nothing else of that package is used",
        "SQLite is in the public domain: https://sqlite.org/copyright.html\n",
    ),
}
RULE = "-" * 100


def entries(folder: Path) -> list[tuple[str, str]]:
    """Title and text of each licence."""
    found = []
    for file in sorted([*folder.glob("node_modules/*/package.json"), *folder.glob("node_modules/@*/*/package.json")]):
        package = json.loads(file.read_text())
        name, version = package["name"], package["version"]
        if name.startswith(TOOLS):
            continue
        if name in PLACES:
            title, text = PLACES[name]
            found.append((title.format(version=sqlite_version(file.parent)), text))
            continue
        text = licence(file.parent)
        if not text:
            raise SystemExit(
                f"error: the npm package {name} has no licence text\nhint: do not bundle it, or add it to PLACES"
            )
        found.append((f"{name} {version} ({package.get('license', 'see below')}), from npm", text))
    return found


def licence(package: Path) -> str:
    """The text in files of their own, or in the last section of the README."""
    files = sorted(each for each in package.iterdir() if each.name.upper().startswith(("LICEN", "COPYING", "NOTICE")))
    if files:
        return "\n".join(each.read_text() for each in files)
    return (package / "README.md").read_text().partition("\n## License\n")[2]


def sqlite_version(package: Path) -> str:
    header = (package / "deps/sqlite3/sqlite3.h").read_text()
    return header.partition('#define SQLITE_VERSION        "')[2].partition('"')[0]


def main(folder: Path, outfile: Path) -> None:
    parts = ["Atoll contains the following works of others.\n"]
    parts += [f"{RULE}\n{title}\n{RULE}\n\n{text.strip()}\n" for title, text in entries(folder)]
    outfile.write_text("\n".join(parts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
