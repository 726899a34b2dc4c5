"""A bundle: a folder with the modules of a build and a manifest.json with their types, hashes, bindings and settings.

Every module is checked against the manifest's sha256 before a deploy, so that exactly what was built is deployed.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from atoll.manifests.project_files import PackedFiles
from atoll.project.built import TEXT_KINDS, Built, BuiltModule
from atoll.project.model import Project, ProjectError
from atoll.project.out import FORMAT, MANIFEST, MODULES, prepare
from atoll.workers import KIND_OF_ENDING, ModuleKind


def deploy_body(settings: dict[str, Any], main: str, modules: tuple[BuiltModule, ...]) -> dict[str, Any]:
    """The body of POST /api/workers and PUT /api/workers/{worker}."""
    maps = {module.path: module.source_map for module in modules if module.source_map}
    body = {**settings, "main": main, "modules": {module.path: _sent(module) for module in modules}}
    return {**body, "source_maps": maps} if maps else body


def _sent(module: BuiltModule) -> str | dict[str, str]:
    is_told = KIND_OF_ENDING.get(PurePosixPath(module.path).suffix) is module.kind  # by the extension
    if is_told and module.kind in TEXT_KINDS:
        return module.source.decode("utf-8", "replace")
    return {"base64": base64.b64encode(module.source).decode()} | ({} if is_told else {"kind": str(module.kind)})


def write_bundle(
    project: Project, built: Built, folder: Path, packed: Mapping[str, PackedFiles] = MappingProxyType({})
) -> Path:
    """Write the bundle to `folder`, replacing an old one. Returns the manifest's path. Raises ProjectError.

    `packed` are the files that it carries, by field of the deploy.
    """
    manifest = _manifest(project, built, {field: each.value for field, each in packed.items()})
    prepare(project, folder, bool(packed))  # removes the old bundle
    for each in packed.values():
        each.write(folder)
    for module in built.modules:
        path = folder / MODULES / module.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(module.source)
        if module.source_map:
            path.with_name(path.name + ".map").write_text(module.source_map, "utf-8")
    target = folder / MANIFEST
    unfinished = folder / f".{MANIFEST}.new"
    unfinished.write_text(manifest, "utf-8")
    unfinished.replace(target)
    return target


def _manifest(project: Project, built: Built, carried: Mapping[str, Any]) -> str:
    entries = []
    for module in built.modules:
        entry = {"path": module.path, "kind": str(module.kind), "sha256": _sha256(module.source)}
        if module.source_map:
            entry["source_map_sha256"] = _sha256(module.source_map.encode())
        entries.append(entry)
    manifest = {
        "format": FORMAT,
        **project.settings(),
        **carried,
        "required_secrets": list(project.required_secrets),
        "main": built.main,
        "modules": entries,
    }
    try:
        return json.dumps(manifest, indent=2, allow_nan=False) + "\n"
    except ValueError:
        raise ProjectError("a variable is nan or inf, which JSON does not have", "write it as a string") from None


def is_bundle(path: Path) -> bool:
    return path.name == MANIFEST or (path.is_dir() and (path / MANIFEST).is_file())


def read_bundle(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The deploy body of a bundle, with its hashes checked, and the secrets it needs. Raises ProjectError."""
    folder = path.parent if path.name == MANIFEST else path
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if manifest.get("unfinished"):
            raise ProjectError(
                f"{folder} is not a complete bundle: its build did not finish", "build it again with `atoll build`"
            )
        if manifest.pop("format") != FORMAT:
            raise ProjectError(
                f"{folder} is a bundle of another format", f"this Atoll reads format {FORMAT}: build it again"
            )
        entries, main = manifest.pop("modules"), manifest.pop("main")
        secrets = tuple(manifest.pop("required_secrets", ()))
        modules = tuple(_read(folder / MODULES, entry) for entry in entries)
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ProjectError(
            f"{folder} is not a complete bundle: {error!r}", "build it again with `atoll build`"
        ) from None
    return deploy_body(manifest, main, modules), secrets


def _read(folder: Path, entry: dict[str, str]) -> BuiltModule:
    path = (folder / entry["path"]).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ProjectError(f"the bundle names {entry['path']}, which is outside of it", "build it again")
    source = path.read_bytes()
    _check(source, entry["sha256"], entry["path"])
    source_map = ""
    if "source_map_sha256" in entry:
        raw = path.with_name(path.name + ".map").read_bytes()
        _check(raw, entry["source_map_sha256"], f"{entry['path']}.map")
        source_map = raw.decode()
    return BuiltModule(entry["path"], ModuleKind(entry["kind"]), source, source_map)


def _check(raw: bytes, sha256: str, name: str) -> None:
    if _sha256(raw) != sha256:
        raise ProjectError(f"{name} is not what was built: its sha256 differs", "build it again with `atoll build`")


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
