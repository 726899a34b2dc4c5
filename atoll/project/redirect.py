"""The config that a build tool made: `.wrangler/deploy/config.json` names it, as the Vite plugin and Nitro write it.

The tool's config describes what it built, so `build`, `deploy`, `dev` and `doctor` use it in place of the project's
own. Other commands read the project's own config.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from atoll.manifests.config_fields import Finding, FindingLevel
from atoll.project.files import config_in, read_config
from atoll.project.model import ProjectError

POINTER: Final = ".wrangler/deploy/config.json"
BUILD_AGAIN: Final = "build the project again, with its own tool"
# What tools note about the project's own config. It changes nothing.
NOTES: Final = ("configPath", "userConfigPath", "topLevelName", "definedEnvironments", "targetEnvironment")


def redirected(folder: Path) -> tuple[Path, Path] | None:
    """The config that a tool made for the project of this folder or one above it, and the project's folder.

    None if the project has an atoll.toml, which no tool reads, or if no tool made one. Raises ProjectError.
    """
    for place in (folder, *folder.parents):
        own = config_in(place)
        pointer = place / POINTER
        if pointer.is_file() and (own is None or own.name != "atoll.toml"):
            return _target(pointer), place
        if own is not None or (place / ".git").exists():
            return None
    return None


def _target(pointer: Path) -> Path:
    named = read_config(pointer).get("configPath")
    if not isinstance(named, str):
        raise ProjectError(f"{pointer} names no config: `configPath` is missing", BUILD_AGAIN)
    target = Path(os.path.normpath(pointer.parent / named))
    if not target.is_file():
        raise ProjectError(f"{pointer} names {target}, which does not exist", BUILD_AGAIN)
    return target


def check_environment(config: dict[str, Any], path: Path, environment: str) -> None:
    """A tool builds for one environment. Raises ProjectError if another is asked for."""
    built_for = config.get("targetEnvironment") or ""
    if environment not in ("", built_for):
        hint = f"build it for that environment: CLOUDFLARE_ENV={environment} npm run build"
        raise ProjectError(f"{path} was built for the environment `{built_for or 'top level'}`", hint)


def finding_about_age(path: Path, place: Path) -> Finding | None:
    """A warning if the project's own config changed after the build."""
    own = config_in(place)
    if own is None or own.stat().st_mtime <= path.stat().st_mtime:
        return None
    text = f"changed after the project was built, so {os.path.relpath(path, place)} may not have the change"
    return Finding(FindingLevel.WARNING, own.name, text, BUILD_AGAIN)
