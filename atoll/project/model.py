"""What a project is once its config was read: the same plain data from a script, atoll.toml or wrangler's files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct, field, structs

from atoll.errors import AtollError
from atoll.workers import Isolation, Json, Switches


class ProjectError(AtollError):
    """A project cannot be read or built. `hint` says what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Level(StrEnum):
    ERROR = "error"  # the worker would miss something it asks for
    WARNING = "warning"  # something is not done; the worker runs
    NOTE = "note"  # done differently, or not needed here


class Finding(Struct, frozen=True):
    """One thing to tell about a config, by the name of its field."""

    level: Level
    field: str
    text: str
    hint: str = ""


class Rule(Struct, frozen=True):
    """Which files are what kind of module: the `rules` of wrangler."""

    type: str  # ESModule, CommonJS, CompiledWasm, Text, Data
    globs: tuple[str, ...]


class BuildOptions(Struct, frozen=True):
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


class Project(Struct):
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
    isolation: Isolation = Isolation.POOL
    switches: Switches = field(default_factory=Switches)
    compatibility_date: str = ""
    compatibility_flags: tuple[str, ...] = ()
    build: BuildOptions = field(default_factory=BuildOptions)
    dev_ip: str = "localhost"
    dev_port: int | None = None
    findings: list[Finding] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)  # binding -> field, of what Atoll does not have

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level is Level.ERROR]

    def go_without(self) -> None:
        """Bindings that Atoll does not have become ones that say so when they are used."""
        taken = {*self.vars, *(binding["name"] for binding in self.bindings)}
        for name, where in self.missing.items():
            if name not in taken:
                self.bindings.append({"type": "missing", "name": name, "field": where})

    def settings(self) -> dict[str, Any]:
        """The body of a deploy without its code. What the file does not have is sent as empty or off: the file is the
        source of truth."""
        body: dict[str, Any] = {"name": self.name, "routes": self.routes}
        if self.vars or not self.keep_vars:
            body["env"] = self.vars
        optional: dict[str, Any] = {
            "bindings": self.bindings,
            "crons": self.crons,
            "queue_consumers": self.queue_consumers,
            "tail_consumers": self.tail_consumers,
            "limits": self.limits,
            "isolation": self.isolation.value,
            "switches": structs.asdict(self.switches),
            "compatibility_date": self.compatibility_date,
            "compatibility_flags": list(self.compatibility_flags),
        }
        return body | optional
