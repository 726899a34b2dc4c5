"""Where in the project's own files a call failed: the first stack frame in them, and the code around it."""

from __future__ import annotations

import re
from pathlib import Path

from atoll.errors import Failure
from atoll.observe.mapping import Maps, decoded
from atoll.observe.sourcemaps import mapped_stack
from atoll.project.built import Built, Diagnostic

# `at name (path:line:column)` or `at path:line:column`
FRAME = re.compile(r"^[ \t]+at (?:.*\()?([^\s()]+):(\d{1,9}):(\d{1,9})\)?$", re.MULTILINE)


class Places:
    def __init__(self) -> None:
        self._folder = Path.cwd()
        self._files: dict[str, Path] = {}  # path of a module -> file it was read from
        self._raw_maps: dict[str, bytes] = {}
        self._maps: Maps | None = None  # decoded when a stack is first shown: large maps take time

    def learn(self, built: Built, folder: Path) -> None:
        """Modules that were not bundled have their files' names. A bundle's map names files relative to the folder."""
        self._folder = folder
        pairs = zip(built.modules, built.inputs, strict=True) if not built.bundled else ()
        self._files = {module.path: path for module, path in pairs}
        self._raw_maps = {module.path: module.source_map.encode() for module in built.modules if module.source_map}
        self._maps = None

    @property
    def maps(self) -> Maps:
        if self._maps is None:
            self._maps = decoded(self._raw_maps)
        return self._maps

    def mapped(self, text: str) -> str:
        """The text of a console line, with the places of a stack in it mapped to source files."""
        return mapped_stack(text, self.maps) if "\n    at " in text else text

    def file_of(self, name: str) -> Path | None:
        path = self._files.get(name) or self._folder / name
        return path if path.is_file() and "node_modules" not in path.parts else None

    def frame(self, failure: Failure) -> str:
        """The code around the first place of the project in a mapped failure; empty if it has none."""
        found = [(failure.file, failure.line, failure.column)] if failure.file and failure.line else []
        found += [(file, int(line), int(column)) for file, line, column in FRAME.findall(failure.stack)]
        for name, line, column in found:
            path = self.file_of(name)
            if path is None:
                continue
            lines = path.read_text("utf-8", "replace").split("\n")
            if 0 < line <= len(lines):
                shown = path.relative_to(self._folder) if path.is_relative_to(self._folder) else path
                return Diagnostic("", str(shown), line, column, 1, lines[line - 1]).frame(self._folder).lstrip("\n")
        return ""
