"""Which files a build may use: those of the project's repository, and installed packages.

A symbolic link inside a project can point anywhere, for example at a key in the home folder, which a deploy would then
publish. So the real path of a file counts. It must be below the root: the folder of `--root`, or else the nearest
folder upwards that is the root of a repository or of a workspace (pnpm, npm, yarn). Links between packages of a
workspace are therefore allowed. A project outside of any repository has its own folder as root; relative imports may
leave it, links may not. Packages that are imported by name may be in any `node_modules`, such as a shared store.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from atoll.project.files import read_config
from atoll.project.model import Project, ProjectError


class Edge(NamedTuple):
    """One file imports another as `specifier`. Both paths are real paths."""

    importer: Path
    target: Path
    specifier: str

    @property
    def is_relative(self) -> bool:
        return self.specifier.startswith((".", "/"))

    @property
    def is_link(self) -> bool:
        """Whether the target is not where the specifier points. A specifier may omit an extension or `/index.js`."""
        named = os.path.normpath(self.importer.parent / self.specifier)
        target = str(self.target)
        return not (target == named or target.startswith((f"{named}.", f"{named}{os.sep}index.")) or _swapped(self))


def _swapped(edge: Edge) -> bool:
    """TypeScript may be imported by its compiled name: ./x.js is x.ts."""
    named = Path(os.path.normpath(edge.importer.parent / edge.specifier))
    return named.suffix in (".js", ".mjs", ".cjs", ".jsx") and named.with_suffix("") == edge.target.with_suffix("")


class Border:
    def __init__(self, project: Project) -> None:
        self._folder = Path(os.path.realpath(project.folder))
        self._asked = project.folder
        self._root = root_of(project)

    def check_entry(self, path: Path) -> None:
        """Check the main module, or another file that the config names. Raises ProjectError."""
        real = Path(os.path.realpath(path))
        if self._has(real) or (self._root is None and not self._is_link(path, real)):
            return
        raise self._refusal(self._shown(path), real)

    def check_files(self, paths: Iterable[Path]) -> None:
        """Check files of relative imports, by their paths before links are followed. Raises ProjectError."""
        for path in paths:
            self.check_entry(path)

    def check_edges(self, edges: Iterable[Edge]) -> None:
        """Check the files that a bundler used. Raises ProjectError."""
        for edge in edges:
            if self._has(edge.target) or not edge.target.is_file():  # not a file: made by the bundler
                continue
            is_package = "node_modules" in edge.target.parts
            if is_package and (not edge.is_relative or "node_modules" in edge.importer.parts):
                continue
            if self._root is None and edge.is_relative and not edge.is_link:
                continue
            raise self._refusal(f'"{edge.specifier}" in {self._shown(edge.importer)}', edge.target)

    def _has(self, real: Path) -> bool:
        return real.is_relative_to(self._root or self._folder)

    def _is_link(self, path: Path, real: Path) -> bool:
        return os.path.normpath(self._folder / os.path.relpath(path, self._asked)) != str(real)

    def _shown(self, path: Path) -> str:
        for folder in (self._asked, self._folder):
            if path.is_relative_to(folder):
                return str(path.relative_to(folder))
        return str(path)

    def _refusal(self, what: str, real: Path) -> ProjectError:
        root = self._root or self._folder
        hint = f"copy the file into {root}, or allow a folder that contains both with --root DIR"
        return ProjectError(f"{what} leads out of the project, to {real}", hint)


def root_of(project: Project) -> Path | None:
    """The folder that files must be in, as a real path; None outside of any repository."""
    if project.root is not None:
        return Path(os.path.realpath(project.root))
    folder = Path(os.path.realpath(project.home or project.folder))
    workspace = None
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            return place
        if workspace is None and _is_workspace(place):
            workspace = place
    return workspace or (folder if project.home is not None else None)


def _is_workspace(folder: Path) -> bool:
    if (folder / "pnpm-workspace.yaml").is_file():
        return True
    try:
        about = json.loads((folder / "package.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(about, dict) and bool(about.get("workspaces"))


def tsconfigs_of(project: Project) -> list[Path]:
    """The tsconfig of the main module, in a folder of the project, and the files that it extends by path."""
    assert project.main is not None
    root = root_of(project) or Path(os.path.realpath(project.folder))
    above = (project.main.parent, *project.main.parent.parents)
    places = [place for place in above if Path(os.path.realpath(place)).is_relative_to(root)]
    nearest = next((place / "tsconfig.json" for place in places if (place / "tsconfig.json").is_file()), None)
    waiting = [path for path in (project.build.tsconfig or nearest,) if path is not None]
    found: list[Path] = []
    while waiting:
        path = waiting.pop()
        if path in found or not path.is_file():
            continue
        found.append(path)
        try:
            extends = read_config(path).get("extends", [])
        except ProjectError:  # the bundler reports the error and its place
            continue
        names = [extends] if isinstance(extends, str) else extends if isinstance(extends, list) else []
        for name in names:
            if isinstance(name, str) and name.startswith((".", "/")):
                target = path.parent / name
                waiting.append(target if target.suffix == ".json" else target.with_name(f"{target.name}.json"))
    return found
