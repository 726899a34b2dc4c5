"""What the bundler asks while it builds: about files that wrangler treats in another way than esbuild does.

- `x.wasm?module` is x.wasm, and a WebAssembly file of a package is found even if its `exports` do not list it.
- A rule may be about a folder. esbuild itself has rules by extension only.
- Some packages name a file for browsers that needs the DOM; the one for Node is taken.
- With `find_additional_modules`, the files that the rules match stay modules of their own.

The bundler asks only about names that a filter matches, so other builds cost nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from atoll.project.model import BuildRule, Project
from atoll.project.rules import SCRIPTS, additional_modules, pattern_of, type_of

NAME: Final = "atoll"
BY_EXTENSION: Final = re.compile(r"\*\*/\*(\.[\w.-]+)(?:\?module)?|\*(\.[\w.-]+)(?:\?module)?")
LOADERS: Final = {"Text": "text", "Data": "copy", "CompiledWasm": "copy"}
WASM, MODULE, RULE, NODE = range(4)  # ids of what is registered
# Imports of packages whose file for browsers needs the DOM: the folder that imports it, and the import.
NEEDS_DOM: Final = {"./xml-parser": "@aws-sdk/xml-builder/dist-es"}


def extension_of(glob: str) -> str | None:
    """The extension that a glob is about, if it is about nothing else."""
    found = BY_EXTENSION.fullmatch(glob)
    return found and (found[1] or found[2])


def by_folder(rules: tuple[BuildRule, ...]) -> Iterator[str]:
    """The globs that esbuild's rules by extension cannot express."""
    for rule in rules:
        if rule.type not in SCRIPTS:
            yield from (glob for glob in rule.globs if extension_of(glob) is None)


class Plugin:
    def __init__(self, project: Project) -> None:
        self._project = project
        self._base = project.build.base or (project.main.parent if project.main is not None else project.folder)
        self._found: dict[Path, str] = {}
        self.refresh()

    def refresh(self) -> None:
        """Called before each build: files may have come since the last one."""
        self._found = additional_modules(self._project) if self._project.build.find_modules else {}

    @property
    def modules(self) -> dict[Path, str]:
        """The files that stay modules of their own, with their types."""
        return self._found

    def name_of(self, path: Path) -> str:
        return Path(os.path.relpath(path, self._base)).as_posix()

    def registration(self) -> dict[str, Any]:
        resolves = [{"id": WASM, "filter": r"\.wasm\?module$|^[^./].*\.wasm$", "namespace": "file"}]
        resolves.append({"id": NODE, "filter": f"^(?:{'|'.join(map(re.escape, NEEDS_DOM))})$", "namespace": "file"})
        if self._project.build.find_modules:
            resolves.append({"id": MODULE, "filter": r"^\.\.?/", "namespace": "file"})
        patterns = [pattern_of(glob).pattern.replace("\\ ", " ") for glob in by_folder(self._project.build.rules)]
        loads = [{"id": RULE, "filter": f"/(?:{'|'.join(patterns)})$", "namespace": "file"}] if patterns else []
        return {"name": NAME, "onStart": False, "onEnd": False, "onResolve": resolves, "onLoad": loads}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request of the bundler; {} leaves it to the bundler."""
        if request.get("command") == "on-resolve":
            return self._resolve(request)
        return self._load(request) if request.get("command") == "on-load" else {"errors": [], "warnings": []}

    def _resolve(self, request: dict[str, Any]) -> dict[str, Any]:
        named = request["path"].removesuffix("?module")
        folder = Path(request["resolveDir"])
        if NODE in request["ids"] and folder.as_posix().endswith(f"/{NEEDS_DOM[named]}"):
            return {"id": NODE, "pluginName": NAME, "path": str(folder / f"{named}.js")}
        if request["path"].startswith(("./", "../")):
            path = Path(os.path.normpath(folder / named))
            if path in self._found:
                return {"id": MODULE, "pluginName": NAME, "path": f"./{self.name_of(path)}", "external": True}
        else:
            places = (place / "node_modules" / named for place in (folder, *folder.parents))
            path = next((place for place in places if place.is_file()), folder / named)
        is_ours = WASM in request["ids"] and path.is_file()
        return {"id": WASM, "pluginName": NAME, "path": os.path.realpath(path)} if is_ours else {}

    def _load(self, request: dict[str, Any]) -> dict[str, Any]:
        path = Path(request["path"])
        kind = type_of(path, self._project)
        if kind not in LOADERS:
            return {}
        return {"id": RULE, "pluginName": NAME, "contents": path.read_bytes(), "loader": LOADERS[kind]}
