"""The files of static assets in a bundle: `files.sha256` lists them, `files/` has the content of each under its hash.

The list is the text of the manifest that a node keeps (assets/manifest.py), so its SHA-256 is the id that the bundle's
own manifest names. Contents are stored by hash: a path may be one that this file system cannot hold, and no path of a
node that is not trusted becomes a name on disk.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from atoll.assets.manifest import HASH, lines_of, manifest_id
from atoll.assets.paths import fault_of
from atoll.manifests.every import project_files
from atoll.project.model import ProjectError

LIST: Final = "files.sha256"
FILES: Final = "files"
MAX_LIST: Final = 128 << 20
AGAIN: Final = "build it again with `atoll build`, or pull it again"


class CarriedFile(NamedTuple):
    path: str  # as in the URL, decoded
    hash: str
    size: int


def parse_list(raw: bytes, identity: str) -> list[CarriedFile]:
    """The files of a list whose SHA-256 must be `identity`. Raises ProjectError."""
    if manifest_id(raw) != identity:
        raise ProjectError(f"{LIST} is not what was built: its sha256 differs", AGAIN)
    try:
        found = [CarriedFile(path, digest, size) for digest, size, path in lines_of(raw)]
    except ValueError:
        raise ProjectError(f"{LIST} is not a list of files", AGAIN) from None
    for file in found:
        if not HASH.fullmatch(file.hash) or file.size < 0 or fault_of(file.path):
            raise ProjectError(f"{LIST} has a line that no file can have: {file.path[:200]!r}", AGAIN)
    return found


def named_files(manifest: Mapping[str, Any]) -> Any:
    """The field of a bundle's manifest that names files, or None."""
    return next((manifest[field] for field in project_files() if manifest.get(field) is not None), None)


def carried_by(folder: Path, value: Any) -> list[CarriedFile] | None:
    """The files that a bundle carries for that field; None if they are only on the node that it comes from."""
    try:
        raw = (folder / LIST).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ProjectError(f"{folder / LIST} cannot be read: {error.strerror}", AGAIN) from None
    return parse_list(raw, str(value.get("manifest")) if isinstance(value, dict) else "")


def refuse_strange(folder: Path) -> None:
    """Raises ProjectError if `files/` has something that no build wrote."""
    place = folder / FILES
    try:
        names = os.listdir(place)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ProjectError(f"{place} cannot be read: {error.strerror}", "name another folder with --out") from None
    if place.is_symlink() or not all(HASH.fullmatch(name) for name in names):
        raise ProjectError(f"{place} was not made by `atoll build`", "name another folder with --out, or remove it")


def remove_carried(folder: Path) -> None:
    """Remove the files of an earlier build."""
    shutil.rmtree(folder / FILES, ignore_errors=True)
    (folder / LIST).unlink(missing_ok=True)
