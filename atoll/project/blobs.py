"""Files that are globals of a service-worker script: wasm_modules, text_blobs, data_blobs, the manifest of a site.

The globals are set by a module that is imported before the script. The manifest of a site (site.py) is a module of its
own for a worker with exports, as with wrangler.
"""

from __future__ import annotations

import json
import re
from typing import Final

from atoll.project.border import Border
from atoll.project.built import Built, BuiltModule
from atoll.project.model import Project, ProjectError
from atoll.project.site import MANIFEST_MODULE, site_manifest
from atoll.workers import ModuleKind

KINDS: Final = {"wasm_modules": ModuleKind.WASM, "text_blobs": ModuleKind.TEXT, "data_blobs": ModuleKind.DATA}
ENDINGS: Final = {ModuleKind.WASM: ".wasm", ModuleKind.TEXT: ".txt", ModuleKind.DATA: ".bin"}
EXPORT: Final = re.compile(rb"^[ \t]*export\b", re.MULTILINE)
MAIN: Final = "with-globals.js"
IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)


def with_blobs(project: Project, built: Built, border: Border) -> Built:
    """The build with its globals. Raises ProjectError."""
    manifest = site_manifest(project)
    blobs = project.build.blobs
    if manifest is None and not blobs:
        return built
    main = next(module for module in built.modules if module.path == built.main)
    if EXPORT.search(main.source):
        if blobs:
            hint = f'import the file: import {blobs[0].name} from "./{blobs[0].path.name}"'
            raise ProjectError(f"`{blobs[0].field}` is for scripts without exports, and {main.path} has some", hint)
        assert manifest is not None
        added = (BuiltModule(MANIFEST_MODULE, ModuleKind.TEXT, manifest),)
        return Built(built.main, built.modules + added, built.inputs, built.bundled, built.warnings)
    globals_: list[tuple[str, BuiltModule]] = []
    inputs = list(built.inputs)
    for blob in blobs:
        if not IDENTIFIER.fullmatch(blob.name):
            raise ProjectError(f"`{blob.field}` has the name {blob.name!r}", "use letters, digits, _ and $")
        if not blob.path.is_file():
            raise ProjectError(f"`{blob.field}.{blob.name}` is {blob.path}, which is not a file", "correct it")
        border.check_entry(blob.path)
        inputs.append(blob.path)
        kind = KINDS[blob.field]
        path = f"globals/{blob.name}{ENDINGS[kind]}"
        globals_.append((blob.name, BuiltModule(path, kind, blob.path.read_bytes())))
    if manifest is not None:
        globals_.append((MANIFEST_MODULE, BuiltModule("globals/manifest.txt", ModuleKind.TEXT, manifest)))
    lines = [f'import {name} from "./{file.path}"; globalThis.{name} = {name};' for name, file in globals_]
    before = BuiltModule("globals/globals.js", ModuleKind.ESM, "\n".join(lines).replace("./globals/", "./").encode())
    first = f'import "./globals/globals.js";\nimport {json.dumps(f"./{built.main}")};\n'
    modules = (
        BuiltModule(MAIN, ModuleKind.ESM, first.encode()),
        before,
        *(file for _, file in globals_),
        *built.modules,
    )
    return Built(MAIN, modules, tuple(inputs), built.bundled, built.warnings)
