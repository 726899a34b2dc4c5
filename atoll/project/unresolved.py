"""Hints for imports that a bundler could not resolve."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from atoll.project.native_packages import package_in, why_not

UNRESOLVED = re.compile(r'Could not resolve "([^"]+)"')
LOCKS = {
    "pnpm-lock.yaml": ("pnpm install", "pnpm add"),
    "yarn.lock": ("yarn install", "yarn add"),
    "bun.lock": ("bun install", "bun add"),
    "bun.lockb": ("bun install", "bun add"),
}
NPM = ("npm install", "npm install")


def hint_for(errors: Iterable[dict[str, Any]], folder: Path) -> str:
    """A hint for the first package that did not resolve; "" if the errors are about something else."""
    for error in errors:
        file = (error.get("location") or {}).get("file", "")
        if reason := why_not(package_in(f"/{file}")):
            return reason
        found = UNRESOLVED.match(error["text"])
        if found is None or found[1].startswith((".", "/", "#")):
            continue
        package = package_of(found[1])
        return why_not(package) or _install(package, folder)
    return ""


def package_of(specifier: str) -> str:
    """The package of an import: `@team/tools/deep/file` is in @team/tools."""
    parts = specifier.split("/")
    return "/".join(parts[: 2 if specifier.startswith("@") else 1])


def _install(package: str, folder: Path) -> str:
    home = next((place for place in (folder, *folder.parents) if (place / "package.json").is_file()), folder)
    all_of_them, one = next((words for name, words in LOCKS.items() if _is_above(name, home)), NPM)
    command = all_of_them if package in _declared(home) else f"{one} {package}"
    return command if os.path.realpath(home) == os.getcwd() else f"{command}, in {home}"


def _is_above(name: str, folder: Path) -> bool:
    """A workspace has its lock file in the folder above its packages."""
    return any((place / name).is_file() for place in (folder, *folder.parents))


def _declared(folder: Path) -> set[str]:
    try:
        about = json.loads((folder / "package.json").read_text("utf-8"))
    except (OSError, ValueError):
        return set()
    fields = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
    return {name for field in fields for name in about.get(field) or ()} if isinstance(about, dict) else set()
