"""The files of a folder that become assets: which they are, their paths, hashes and sizes.

The patterns of .assetsignore are those of .gitignore. A few names that hold secrets or belong to tools are left out
unless .assetsignore names them with `!`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from atoll.assets.paths import fault_of
from atoll.assets.rules import MAX_TEXT, BadAssets

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE: Final = ".assetsignore"
HEADERS_FILE: Final = "_headers"
REDIRECTS_FILE: Final = "_redirects"
RULE_FILES: Final = (f"/{IGNORE_FILE}", f"/{HEADERS_FILE}", f"/{REDIRECTS_FILE}")  # never assets themselves
PRIVATE: Final = (
    ".git", ".env", ".env.*", ".dev.vars", ".dev.vars.*", ".wrangler", ".atoll", ".DS_Store", "node_modules",
)  # fmt: skip
PAGES_WORKER: Final = "_worker.js"
PIECE: Final = 1 << 20


class LocalFile(NamedTuple):
    path: str  # as in the URL, decoded: /css/site.css
    place: str
    size: int
    hash: str


def ignored_by(folder: Path) -> GitIgnoreSpec:
    """The rules for files that are left out."""
    from pathspec import GitIgnoreSpec  # imported late: only projects with assets need it

    return GitIgnoreSpec.from_lines([*PRIVATE, *rule_text(folder, IGNORE_FILE).splitlines(), *RULE_FILES])


def rule_text(folder: Path, name: str) -> str:
    """The text of _headers, _redirects or .assetsignore; empty if there is no such file. Raises BadAssets."""
    try:
        raw = (folder / name).read_bytes()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise BadAssets(f"{folder / name} cannot be read: {error.strerror}") from None
    if len(raw) > MAX_TEXT:
        raise BadAssets(f"{folder / name} is larger than {MAX_TEXT:,} bytes", "use fewer rules")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadAssets(f"{folder / name} is not UTF-8", "save it as UTF-8") from None


def local_files(folder: Path) -> list[LocalFile]:
    """All assets of a folder, by path. Raises BadAssets."""
    if not folder.is_dir():
        raise BadAssets(f"the folder of the assets, {folder}, does not exist", "build the site first, or correct it")
    ignored = ignored_by(folder)
    found = [_read(path, place) for path, place in _walk(folder, ignored)]
    if not found:
        raise BadAssets(f"the folder of the assets, {folder}, has no files", "build the site first")
    worker = next((file for file in found if file.path == f"/{PAGES_WORKER}"), None)
    if worker is not None:
        raise BadAssets(
            f"{worker.place} would be public: {PAGES_WORKER} is the code of a Pages project",
            f"make it `main`, and write {PAGES_WORKER} into {folder / IGNORE_FILE}",
        )
    return sorted(found)


def _walk(folder: Path, ignored: GitIgnoreSpec) -> Iterator[tuple[str, str]]:
    """Path and place of each file that is not ignored."""
    root = os.path.realpath(folder)
    seen = {root}
    waiting = [("", root)]
    while waiting:
        prefix, place = waiting.pop()
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except OSError as error:
            raise BadAssets(f"the folder {place} cannot be read: {error.strerror}") from None
        for entry in entries:
            path = f"{prefix}/{entry.name}"
            if ignored.match_file(path[1:] + ("/" if entry.is_dir() else "")):
                continue
            real = _inside(entry, root)
            if entry.is_dir():
                if real not in seen:  # a link back to a folder above would never end
                    seen.add(real)
                    waiting.append((path, entry.path))
            elif entry.is_file():
                yield _checked(path, entry.path), entry.path
            else:
                raise BadAssets(
                    f"{entry.path} is neither a file nor a folder", f"remove it, or add it to {IGNORE_FILE}"
                )


def _inside(entry: os.DirEntry[str], root: str) -> str:
    """The real path of an entry. A link must not lead out of the folder: it would publish other files."""
    real = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
    if real != root and not real.startswith(root + os.sep):
        raise BadAssets(
            f"{entry.path} is a link to {real}, outside of the folder of the assets",
            f"copy the file, or add it to {IGNORE_FILE}",
        )
    if not os.path.exists(real):
        raise BadAssets(f"{entry.path} is a link to {real}, which does not exist", "remove the link")
    return real


def _checked(path: str, place: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(place)
        raise BadAssets(f"the name of {shown!r} is not UTF-8", f"rename it, or add it to {IGNORE_FILE}") from None
    if why := fault_of(path):
        raise BadAssets(f"the file {place!r} cannot be an asset: {why}", f"rename it, or add it to {IGNORE_FILE}")
    return path


def _read(path: str, place: str) -> LocalFile:
    digest, size = hashlib.sha256(), 0
    try:
        with open(place, "rb") as file:
            while piece := file.read(PIECE):
                digest.update(piece)
                size += len(piece)
    except OSError as error:
        raise BadAssets(f"{place} cannot be read: {error.strerror}") from None
    return LocalFile(path, place, size, digest.hexdigest())
