"""A project after its config is read: the same plain data for a script, atoll.toml or wrangler's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct, field, structs

from atoll.errors import AtollError
from atoll.manifests.config_fields import Finding, FindingLevel
from atoll.manifests.every import stand_in, triggers
from atoll.workers import Isolation, Json, Switches


class ProjectError(AtollError):
    """A project cannot be read or built. `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class BuildRule(Struct, frozen=True):
    """Which files become which type of module: wrangler's `rules`."""

    type: str  # ESModule, CommonJS, CompiledWasm, Text, Data
    globs: tuple[str, ...]
    fallthrough: bool = False


class Blob(Struct, frozen=True):
    """A file that is a global of a service-worker script."""

    field: str  # of the config: wasm_modules, text_blobs, data_blobs
    name: str
    path: Path


class BuildOptions(Struct, frozen=True):
    """How sources become modules."""

    command: str = ""  # run first, in `cwd`
    cwd: Path | None = None
    watch: tuple[Path, ...] = ()
    no_bundle: bool = False
    find_modules: bool = False  # the files that `rules` match are modules, even without an import of them
    base: Path | None = None  # the folder that names of modules begin at; None: that of `main`
    minify: bool = False
    keep_names: bool = True
    rules: tuple[BuildRule, ...] = ()
    alias: dict[str, str] = field(default_factory=dict)
    define: dict[str, str] = field(default_factory=dict)
    blobs: tuple[Blob, ...] = ()
    tsconfig: Path | None = None
    jsx_factory: str = ""
    jsx_fragment: str = ""


class Tool(Struct, frozen=True):
    """A program that builds a project for Workers (tools.py)."""

    name: str
    command: str
    folder: Path


class Project(Struct):
    """All of a config, in the format of the control API where it has one."""

    name: str
    folder: Path
    main: Path | None
    config: Path | None = None
    root: Path | None = None  # the folder its files must be in; None: the repository (border.py)
    tool: Tool | None = None
    home: Path | None = None  # the project's own folder, if a build tool made the config in another (redirect.py)
    is_entry_named: bool = False  # `main` comes from the command line, not from the config
    environment: str = ""
    vars: dict[str, Json] = field(default_factory=dict)
    required_secrets: tuple[str, ...] = ()
    keep_vars: bool = False
    bindings: list[dict[str, Any]] = field(default_factory=list)
    routes: list[str] = field(default_factory=list)
    triggers: dict[str, list[Any]] = field(default_factory=dict)  # by field of the deploy
    files: dict[str, Any] = field(default_factory=dict)  # by field of the deploy: files to send before it
    limits: dict[str, int] = field(default_factory=dict)
    isolation: Isolation = Isolation.POOL
    switches: Switches = field(default_factory=Switches)
    preview_urls: bool = True
    compatibility_date: str = ""
    compatibility_flags: tuple[str, ...] = ()
    build: BuildOptions = field(default_factory=BuildOptions)
    dev_ip: str = "localhost"
    dev_port: int | None = None
    findings: list[Finding] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)  # binding -> field, for bindings that Atoll does not have

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level is FindingLevel.ERROR]

    def go_without(self) -> None:
        """Replace bindings that Atoll does not have by ones that throw when they are used."""
        taken = {*self.vars, *(binding["name"] for binding in self.bindings)}
        for name, where in self.missing.items():
            if name not in taken:
                self.bindings.append(stand_in(name, where))

    def settings(self, *, dev: bool = False) -> dict[str, Any]:
        """The body of a deploy without its code. Fields missing in the file are sent as empty or off: the file is the
        source of truth. `local` of a binding is sent to the node of `atoll dev` alone."""
        hidden = () if dev else ("local",)
        body: dict[str, Any] = {"name": self.name, "routes": self.routes}
        if self.vars or not self.keep_vars:
            body["env"] = self.vars
        optional: dict[str, Any] = {
            "bindings": [{key: each[key] for key in each if key not in hidden} for each in self.bindings],
            **{name: self.triggers.get(name, []) for name in triggers()},
            "limits": self.limits,
            "isolation": self.isolation.value,
            "switches": structs.asdict(self.switches),
            "preview_urls": self.preview_urls,
            "compatibility_date": self.compatibility_date,
            "compatibility_flags": list(self.compatibility_flags),
        }
        return body | optional
