"""The result of a build: modules for a deploy, or diagnostics."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from atoll.project.model import ProjectError
from atoll.workers import ModuleKind

CONTEXT_LINES = 2
TEXT_KINDS = (ModuleKind.ESM, ModuleKind.JSON, ModuleKind.TEXT)


class BuiltModule(Struct, frozen=True):
    path: str
    kind: ModuleKind
    source: bytes
    source_map: str = ""


class Diagnostic(Struct, frozen=True):
    """A message about a place in a source file; without a file, about the whole build."""

    text: str
    file: str = ""  # relative to the project's folder
    line: int = 0  # from 1
    column: int = 0  # from 1
    length: int = 1
    line_text: str = ""

    def frame(self, folder: Path) -> str:
        """The message, its place and the code around it, as text without colours."""
        if not self.file:
            return self.text
        head = f"{self.text}\n    {self.file}:{self.line}:{self.column}"
        lines = _lines_of(folder / self.file)
        if not 0 < self.line <= len(lines) or lines[self.line - 1].rstrip() != self.line_text.rstrip():
            lines = [""] * (self.line - 1) + [self.line_text]  # the file has changed since, or cannot be read
        first, last = max(1, self.line - CONTEXT_LINES), min(len(lines), self.line + CONTEXT_LINES)
        while last > self.line and not lines[last - 1].strip():
            last -= 1
        width = len(str(last))
        shown = []
        for number in range(first, last + 1):
            mark = ">" if number == self.line else " "
            shown.append(f"  {mark} {number:>{width}} | {_plain(lines[number - 1][:200])}".rstrip())
            if number == self.line:
                pad = "".join("\t" if letter == "\t" else " " for letter in lines[number - 1][: self.column - 1])
                shown.append(f"    {'':>{width}} | {pad[:200]}{'^' * max(1, min(self.length, 200))}")
        return "\n".join([head, *shown])


def _plain(line: str) -> str:
    """A line for a terminal, without control characters from the file."""
    return "".join(letter if letter.isprintable() or letter == "\t" else "\ufffd" for letter in line)


def _lines_of(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return []


class Built(Struct, frozen=True):
    main: str
    modules: tuple[BuiltModule, ...]
    inputs: tuple[Path, ...]  # the files it was built from: a change of one makes it stale
    bundled: bool
    warnings: tuple[Diagnostic, ...] = field(default=())

    @property
    def size(self) -> int:
        return sum(len(module.source) for module in self.modules)


class BuildFailed(ProjectError):
    """The sources do not build. Each diagnostic has a place."""

    def __init__(
        self, diagnostics: list[Diagnostic], folder: Path, inputs: tuple[Path, ...] = (), hint: str = ""
    ) -> None:
        super().__init__("\n\n".join(diagnostic.frame(folder) for diagnostic in diagnostics), hint)
        self.diagnostics = diagnostics
        self.inputs = inputs
