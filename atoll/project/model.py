"""What a project is once its config was read: the same plain data from a script, atoll.toml or wrangler's files."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from atoll.errors import AtollError
from atoll.workers import Json


class ProjectError(AtollError):
    """A project cannot be read or built. `hint` says what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Level(StrEnum):
    ERROR = "error"  # the worker would miss something it asks for
    WARNING = "warning"  # something is not done; the worker runs
    NOTE = "note"  # done differently, or not needed here


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to tell about a config, by the name of its field."""

    level: Level
    field: str
    text: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which files are what kind of module: the `rules` of wrangler."""

    type: str  # ESModule, CommonJS, CompiledWasm, Text, Data
    globs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How sources become modules."""

    command: str = ""  # run first, in `cwd`
    cwd: Path | None = None
    watch: tuple[Path, ...] = ()
    no_bundle: bool = False
    minify: bool = False
    keep_names: bool = True
    rules: tuple[Rule, ...] = ()
    alias: dict[str, str] = field(default_factory=dict)
    define: dict[str, str] = field(default_factory=dict)
    tsconfig: Path | None = None
    jsx_factory: str = ""
    jsx_fragment: str = ""


@dataclass
class Project:
    """Everything a config says, in the words of the control API where it has them."""

    name: str
    folder: Path
    main: Path | None
    config: Path | None = None
    environment: str = ""
    vars: dict[str, Json] = field(default_factory=dict)
    required_secrets: tuple[str, ...] = ()
    keep_vars: bool = False
    bindings: list[dict[str, Any]] = field(default_factory=list)
    routes: list[str] = field(default_factory=list)
    crons: list[str] = field(default_factory=list)
    queue_consumers: list[dict[str, Any]] = field(default_factory=list)
    tail_consumers: list[dict[str, Any]] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)
    compatibility_date: str = ""
    compatibility_flags: tuple[str, ...] = ()
    build: BuildOptions = field(default_factory=BuildOptions)
    dev_ip: str = "localhost"
    dev_port: int | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level is Level.ERROR]

    def settings(self) -> dict[str, Any]:
        """The body of a deploy without its code. An empty list is sent too: the file is the source of truth."""
        body: dict[str, Any] = {"name": self.name, "routes": self.routes}
        if self.vars or not self.keep_vars:
            body["env"] = self.vars
        optional: dict[str, Any] = {
            "bindings": self.bindings,
            "crons": self.crons,
            "queue_consumers": self.queue_consumers,
            "tail_consumers": self.tail_consumers,
            "limits": self.limits,
            "compatibility_date": self.compatibility_date,
            "compatibility_flags": list(self.compatibility_flags),
        }
        return body | optional
