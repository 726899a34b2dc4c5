"""`rules`: which files become which type of module, and the modules that a build takes without an import of them.

As with wrangler, the first rule that matches a file decides, and a rule ends the rules of its type that follow it,
unless it has `fallthrough`. The rules that wrangler has by itself come last and always apply.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from atoll.manifests.config_fields import Finding, FindingLevel
from atoll.project.model import BuildRule, Project, ProjectError

SKIPPED: Final = {"node_modules", ".git", ".wrangler", ".atoll"}
MOST_MODULES: Final = 1_000  # a node takes no more
OF_WRANGLER: Final = (
    BuildRule("Text", ("**/*.txt", "**/*.html", "**/*.sql")),
    BuildRule("Data", ("**/*.bin",)),
    BuildRule("CompiledWasm", ("**/*.wasm", "**/*.wasm?module")),
)
SCRIPTS: Final = ("ESModule", "CommonJS")


def effective(rules: tuple[BuildRule, ...]) -> tuple[BuildRule, ...]:
    """Without the rules that an earlier rule of their type ends."""
    ended: set[str] = set()
    kept = []
    for rule in rules:
        if rule.type not in ended:
            kept.append(rule)
        if not rule.fallthrough:
            ended.add(rule.type)
    return tuple(kept)


def finding_about_ended(rules: tuple[BuildRule, ...]) -> Finding | None:
    lost = [glob for rule in rules if rule not in effective(rules) for glob in rule.globs]
    if not lost:
        return None
    text = f"for {', '.join(lost)} has no effect: an earlier rule of its type ends the search"
    return Finding(FindingLevel.WARNING, "rules", text, "set `fallthrough = true` in the earlier rule")


@cache
def pattern_of(glob: str) -> re.Pattern[str]:
    """A glob as wrangler reads it: `*` is a part of a name, `**/` any folders, and all else stands for itself."""
    parts = re.split(r"(\*\*/|\*\*|\*)", glob.removeprefix("./"))
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    return re.compile("".join(words.get(part) or re.escape(part) for part in parts))


def type_of(path: Path, project: Project) -> str | None:
    """The type of a file by the rules of the config; None if none matches. A glob begins at the folder of the config or
    of the main module."""
    assert project.main is not None
    names = {os.path.relpath(path, start) for start in (project.folder, project.main.parent)}
    for rule in project.build.rules:
        if any(pattern_of(glob).fullmatch(name) for glob in rule.globs for name in names):
            return rule.type
    return None


def type_of_any(path: Path, project: Project) -> str | None:
    """`type_of`, with wrangler's own rules after those of the config."""
    name = PurePosixPath(path).as_posix()
    by_wrangler = (rule.type for rule in OF_WRANGLER if any(pattern_of(glob).fullmatch(name) for glob in rule.globs))
    return type_of(path, project) or next(by_wrangler, None)


def additional_modules(project: Project) -> dict[Path, str]:
    """The files below the base folder that a rule makes modules, with their types. Raises ProjectError."""
    assert project.main is not None
    found: dict[Path, str] = {}
    for path in _files_below(project.build.base or project.main.parent):
        kind = type_of_any(path, project)
        if kind is not None and path != project.main:
            found[path] = kind
        if len(found) > MOST_MODULES:
            raise ProjectError(
                f"`rules` match more than {MOST_MODULES:,} files, and a node takes no more modules",
                "name the folders of the modules in `rules`, or set `base_dir`",
            )
    return found


def _files_below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        yield from (Path(place, name) for name in sorted(names))
