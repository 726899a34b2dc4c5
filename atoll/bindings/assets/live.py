"""The assets of `atoll dev`: read from the folder at each request, so a saved file is served at once."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from atoll.assets.headers_file import parse_headers
from atoll.assets.redirects_file import parse_redirects
from atoll.assets.rules import AssetRules, BadAssets
from atoll.assets.table import AssetFile, AssetTable, file_of, navigates_to_assets
from atoll.bindings.assets.config import ConfigAssets
from atoll.bindings.assets.folder import HEADERS_FILE, IGNORE_FILE, REDIRECTS_FILE, ignored_by, rule_text
from atoll.workers import Version

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NO_MANIFEST = "0" * 64


class Dated(Protocol):
    """The part of a project that decides how its assets behave."""

    compatibility_date: str
    compatibility_flags: tuple[str, ...]


class LiveFiles(Mapping[str, AssetFile]):
    """The files of a folder by path, looked up on disk."""

    def __init__(self, folder: Path) -> None:
        self._root = os.path.realpath(folder)
        self.ignored: GitIgnoreSpec = ignored_by(folder)

    def __getitem__(self, path: str) -> AssetFile:
        parts = path[1:].split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts) or self.ignored.match_file(path[1:]):
            raise KeyError(path)
        place = os.path.realpath(f"{self._root}{path}")
        if not place.startswith(self._root + os.sep):  # a link out of the folder: a deploy refuses it
            raise KeyError(path)
        try:
            found = os.stat(place)
        except (OSError, ValueError):
            raise KeyError(path) from None
        if not stat.S_ISREG(found.st_mode):
            raise KeyError(path)
        state = f"{place} {found.st_ino} {found.st_mtime_ns} {found.st_size}"
        return file_of(path, hashlib.sha256(state.encode("utf-8", "replace")).hexdigest(), found.st_size, place)

    def __iter__(self) -> Iterator[str]:
        for folder, _, names in os.walk(self._root):
            for name in names:
                path = f"/{os.path.relpath(os.path.join(folder, name), self._root)}"
                if path in self:
                    yield path

    def __len__(self) -> int:
        return sum(1 for _ in self)


class LiveTable(AssetTable):
    """An AssetTable whose files and rules follow the folder."""

    __slots__ = ("_folder", "_live", "_seen")
    is_live = True

    def __init__(self, folder: Path, wanted: ConfigAssets, project: Dated, *, has_worker: bool) -> None:
        first = wanted.run_worker_first
        rules = AssetRules(
            NO_MANIFEST,
            wanted.html_handling,
            wanted.not_found_handling,
            first if isinstance(first, bool) else tuple(first),
        )
        navigates = navigates_to_assets(project.compatibility_date, project.compatibility_flags, rules)
        self._live = LiveFiles(folder)
        super().__init__(rules, self._live, has_worker=has_worker, navigates=navigates)
        self._folder = folder
        self._seen: tuple[object, ...] = ()
        self.refresh()

    def attach(self, version: Version) -> None:
        """Serve these files before a deployed version.

        The version is loaded and routed by its identity, and its stored row must not name files of this folder. So it
        gets them after the deploy, although it is frozen.
        """
        object.__setattr__(version, "assets", self)

    def refresh(self) -> None:
        seen = tuple(_mark(self._folder / name) for name in (HEADERS_FILE, REDIRECTS_FILE, IGNORE_FILE))
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._live.ignored = ignored_by(self._folder)
            self.headers = parse_headers(rule_text(self._folder, HEADERS_FILE))[0]
            self.redirects = parse_redirects(rule_text(self._folder, REDIRECTS_FILE))[0]
        except BadAssets:
            pass  # it is being written: the rules before stay until the next request


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
