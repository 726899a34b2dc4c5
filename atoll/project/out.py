"""The folder a bundle is written to, and which files in it a build may replace.

A build replaces only the output of an earlier build: `manifest.json`, `modules/` and the files of assets (carried.py).
It writes to a folder with other files only if the folder is meant for tools: git ignores it, or the project's own build
step fills it.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from atoll.project.carried import LIST, refuse_strange, remove_carried
from atoll.project.model import Project, ProjectError

FORMAT = "atoll-bundle-v1"
MANIFEST = "manifest.json"
MODULES = "modules"
ANOTHER = "name another folder with --out"


def prepare(project: Project, folder: Path, carries: bool = False) -> None:
    """Prepare the folder for a bundle, which may carry files. If it raises ProjectError, nothing has changed."""
    if folder.is_symlink():
        raise ProjectError(f"{folder} is a link to {os.path.realpath(folder)}", f"remove the link, or {ANOTHER}")
    if folder.exists() and not folder.is_dir():
        raise ProjectError(f"{folder} is a file", ANOTHER)
    if folder.is_dir() and not is_made_here(folder):
        _refuse_what_is_of_others(project, folder)
    had_files = (folder / LIST).exists()
    if carries or had_files:
        refuse_strange(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # First, so that after any failure the next build recognises the folder as its own.
    (folder / MANIFEST).write_text(json.dumps({"format": FORMAT, "unfinished": True}) + "\n", "utf-8")
    if had_files:
        remove_carried(folder)
    modules = folder / MODULES
    if modules.is_symlink():
        modules.unlink()
    elif modules.exists():
        shutil.rmtree(modules)


def is_made_here(folder: Path) -> bool:
    """Whether a build of Atoll wrote the manifest, complete or not."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and str(manifest.get("format", "")).startswith("atoll-bundle-")


def _refuse_what_is_of_others(project: Project, folder: Path) -> None:
    for name in (MANIFEST, MODULES, LIST):
        if (folder / name).exists():
            raise ProjectError(f"{folder / name} was not made by `atoll build`", f"{ANOTHER}, or remove it")
    if any(folder.iterdir()) and not _is_for_tools(project, folder):
        hint = f"{ANOTHER}, or write `{folder.name}/` into .gitignore if only tools write to it"
        raise ProjectError(f"{folder} has files in it and is not a bundle", hint)


def _is_for_tools(project: Project, folder: Path) -> bool:
    real = Path(os.path.realpath(folder))
    main = project.main
    if project.build.command and main is not None and Path(os.path.realpath(main)).is_relative_to(real):
        return True
    for place in real.parents:
        if _is_ignored(real.relative_to(place).as_posix(), place / ".gitignore"):
            return True
        if (place / ".git").exists():
            return False
    return False


def _is_ignored(path: str, gitignore: Path) -> bool:
    """Checks lines that name the folder itself: `dist`, `/dist/` or `packages/app/dist`. The last such line counts."""
    try:
        lines = gitignore.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    is_ignored = False
    for line in lines:
        pattern = line.strip()
        is_negated = pattern.startswith("!")
        named = pattern.removeprefix("!").rstrip("/").removesuffix("/*").removesuffix("/**")
        is_anchored = "/" in named.removeprefix("**/")
        target = named.removeprefix("/") if is_anchored else named.removeprefix("**/")
        if target and target == (path if is_anchored else path.rpartition("/")[2]):
            is_ignored = not is_negated
    return is_ignored
