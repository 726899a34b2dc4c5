"""What the code of a build uses and a node does not have: built-in modules, their exports, and globals.

uses.mjs reads the code; this module decides what matters. A use is an error when the code cannot load without it, or
when it is in the project's own sources. In packages it is a warning, because they often contain code for other
platforms. A source file that checks for a global (`typeof X`, `globalThis.X`, `"X" in self`) may use it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from importlib.resources import as_file, files
from typing import NamedTuple

import msgspec

from atoll.manifests.config_fields import Finding, FindingLevel
from atoll.project.built import Built
from atoll.project.fetch import node_folder
from atoll.project.model import Project
from atoll.project.platform import Platform, platform
from atoll.project.site import MANIFEST_MODULE
from atoll.workers import ModuleKind

BUNDLE_IT = "packages must be bundled: without no_bundle, or by the tool that builds the project"
APIS_PAGE = "docs/reference/web-apis.md lists what is available"
SECONDS = 60


class Use(msgspec.Struct, frozen=True):
    """A place in the code; `line` is 0 if no source map has it."""

    file: str
    line: int

    @property
    def is_own(self) -> bool:
        return bool(self.file) and "node_modules" not in self.file.split("/")

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file or "a package"


class Import(Use, frozen=True, kw_only=True):
    module: str
    names: tuple[str, ...]
    sure: bool  # a statement, not a call of import()


class Global(Use, frozen=True, kw_only=True):
    name: str
    script: bool  # in a file without imports and exports
    how: str  # "sure": the module cannot load without it; "used"; "asked": the code checks whether it exists


class Wish(Use, frozen=True, kw_only=True):
    name: str


class Package(Use, frozen=True, kw_only=True):
    """An import or a require() that no bundler resolved."""

    name: str
    how: str  # "sure": an import statement; "imported": import(); "required": require()


class Unread(msgspec.Struct, frozen=True):
    file: str
    text: str


class Uses(msgspec.Struct, frozen=True):
    imports: tuple[Import, ...]
    globals: tuple[Global, ...]
    wishes: tuple[Wish, ...]
    packages: tuple[Package, ...]
    unread: tuple[Unread, ...]


EXPORTS_SINCE = "2025-11-17"


class Lack(NamedTuple):
    """Something that is missing: one line, even if it is used in several places."""

    name: str
    text: str
    hint: str = APIS_PAGE


def check_uses(project: Project, built: Built) -> list[Finding]:
    """What the code needs and Atoll lacks, the most serious first. Blocking."""
    here = platform()
    uses = read_uses(built, here.globals_of(project))
    lacks: dict[Lack, list[tuple[FindingLevel, str]]] = {}
    is_made = project.tool is not None  # its code is the output of another bundler, mostly packages
    for lack, level, use in (
        *_modules(uses, here),
        *_globals(uses, here, _in_env(project), is_made=is_made),
        *_wishes(uses, project),
        *_packages(uses, here, {module.path for module in built.modules}),
    ):
        lacks.setdefault(lack, []).append((level, use.place))
    order = list(FindingLevel)
    found = [_finding(lack, sorted(places, key=lambda each: order.index(each[0]))) for lack, places in lacks.items()]
    found += [Finding(FindingLevel.WARNING, each.file, f"cannot be checked: {each.text}") for each in uses.unread]
    return sorted(found, key=lambda finding: order.index(finding.level))


def read_uses(built: Built, known: Iterable[str]) -> Uses:
    """What the JavaScript of a build imports from the platform, and which globals outside `known` it uses."""
    modules = [
        {"path": module.path, "source": module.source.decode("utf-8", "replace"), "map": module.source_map}
        for module in built.modules
        if module.kind is ModuleKind.ESM
    ]
    request = json.dumps({"modules": modules, "known": sorted(known)})
    with as_file(files("atoll.project") / "uses.mjs") as script:
        command = [str(node_folder() / "bin" / "node"), "--expose-internals", "--no-warnings", str(script)]
        ran = subprocess.run(command, input=request.encode(), capture_output=True, timeout=SECONDS, check=True)
    return msgspec.json.decode(ran.stdout, type=Uses)


def _modules(uses: Uses, here: Platform) -> Iterator[tuple[Lack, FindingLevel, Use]]:
    for use in uses.imports:
        module = here.modules.get(use.module)
        if module is None:
            level = FindingLevel.ERROR if use.sure or use.is_own else FindingLevel.WARNING
            yield Lack(use.module, "is not available"), level, use
            continue
        for name in use.names:
            if name not in module.exports:
                yield Lack(use.module, f"has no export `{name}`"), FindingLevel.ERROR, use
            elif name in module.refused:
                yield Lack(use.module, f"has `{name}`, which throws when it is called"), FindingLevel.WARNING, use
        if not use.names and module.refused:
            throws = ", ".join(f"`{name}`" for name in module.refused)
            yield (
                Lack(use.module, f"is partly available: these throw when they are called: {throws}"),
                FindingLevel.NOTE,
                use,
            )


def _in_env(project: Project) -> set[str]:
    """The names in `env` that the config defines, and the globals of scripts. There may be more secrets."""
    names = {*project.vars, *project.required_secrets, *(binding["name"] for binding in project.bindings)}
    return {*names, *(blob.name for blob in project.build.blobs), MANIFEST_MODULE}


def _globals(
    uses: Uses, here: Platform, in_env: set[str], *, is_made: bool
) -> Iterator[tuple[Lack, FindingLevel, Use]]:
    asked = {(use.file, use.name) for use in uses.globals if use.how == "asked"}
    for use in uses.globals:
        if use.how == "asked" or (use.how != "sure" and (use.file, use.name) in asked):
            continue
        if use.script and use.name in in_env:  # service-worker syntax has them as globals
            continue
        may_be_secret = use.script and use.name.isupper()
        is_error = use.how == "sure" or (use.is_own and not may_be_secret and not is_made)
        level = FindingLevel.ERROR if is_error else FindingLevel.WARNING
        hint = "add nodejs_compat to `compatibility_flags`" if use.name in here.node_globals else APIS_PAGE
        yield Lack(use.name, "is not a global here", hint), level, use


def _packages(uses: Uses, here: Platform, modules: set[str]) -> Iterator[tuple[Lack, FindingLevel, Use]]:
    for use in uses.packages:
        if use.name in modules or f"node:{use.name}" in here.modules or use.name in here.modules:
            continue
        if use.how == "sure":
            yield Lack(use.name, "is not among the deployed modules", BUNDLE_IT), FindingLevel.ERROR, use
        else:
            yield Lack(use.name, f"is not there when it is {use.how}", BUNDLE_IT), FindingLevel.NOTE, use


def _wishes(uses: Uses, project: Project) -> Iterator[tuple[Lack, FindingLevel, Use]]:
    """ctx.exports, if the compatibility date is too old for it."""
    date, flags = project.compatibility_date, project.compatibility_flags
    is_on = not date or date >= EXPORTS_SINCE or "enable_ctx_exports" in flags
    for use in uses.wishes if not is_on or "disable_ctx_exports" in flags else ():
        if use.is_own:
            hint = f"set `compatibility_date` to {EXPORTS_SINCE} or later, or the flag enable_ctx_exports"
            yield Lack(use.name, "is not available", hint), FindingLevel.ERROR, use


def _finding(lack: Lack, places: list[tuple[FindingLevel, str]]) -> Finding:
    level, first = places[0]
    others = len(dict.fromkeys(place for _, place in places)) - 1
    more = f" and {others} more place{'s' if others > 1 else ''}" if others else ""
    return Finding(level, lack.name, f"{lack.text} ({first}{more})", lack.hint)
