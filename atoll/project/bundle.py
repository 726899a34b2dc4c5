"""A bundle: a folder with the modules of a build and a manifest.json that says what they are and what they may use.

What is deployed from a bundle is what was built, byte for byte: every module is checked against the manifest's sha256.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from atoll.project.built import TEXT_KINDS, Built, BuiltModule
from atoll.project.model import Project, ProjectError
from atoll.workers import ModuleKind

FORMAT = "atoll-bundle-v1"
MANIFEST = "manifest.json"


def deploy_body(settings: dict[str, Any], main: str, modules: tuple[BuiltModule, ...]) -> dict[str, Any]:
    """The body of POST and PUT /api/workers."""
    maps = {module.path: module.source_map for module in modules if module.source_map}
    body = {**settings, "main": main, "modules": {module.path: _sent(module) for module in modules}}
    return {**body, "source_maps": maps} if maps else body


def _sent(module: BuiltModule) -> str | dict[str, str]:
    if module.kind in TEXT_KINDS:
        return module.source.decode("utf-8", "replace")
    return {"base64": base64.b64encode(module.source).decode()}


def write_bundle(project: Project, built: Built, folder: Path) -> Path:
    """Write it in place of what was in `folder`, which must be a bundle or nothing. Returns the manifest's path."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / MANIFEST).is_file())):
        raise ProjectError(f"{folder} exists and is no bundle", "name another folder with --out, or remove it")
    manifest = _manifest(project, built)  # before the old one goes
    shutil.rmtree(folder, ignore_errors=True)
    for module in built.modules:
        path = folder / "modules" / module.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(module.source)
        if module.source_map:
            path.with_name(path.name + ".map").write_text(module.source_map, "utf-8")
    target = folder / MANIFEST
    target.write_text(manifest, "utf-8")
    return target


def _manifest(project: Project, built: Built) -> str:
    entries = []
    for module in built.modules:
        entry = {"path": module.path, "kind": str(module.kind), "sha256": _sha256(module.source)}
        if module.source_map:
            entry["source_map_sha256"] = _sha256(module.source_map.encode())
        entries.append(entry)
    manifest = {
        "format": FORMAT,
        **project.settings(),
        "required_secrets": list(project.required_secrets),
        "main": built.main,
        "modules": entries,
    }
    try:
        return json.dumps(manifest, indent=2, allow_nan=False) + "\n"
    except ValueError:
        raise ProjectError("a variable is nan or inf, which JSON does not have", "write it as text") from None


def is_bundle(path: Path) -> bool:
    return path.name == MANIFEST or (path.is_dir() and (path / MANIFEST).is_file())


def read_bundle(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The deploy body of a bundle, every byte checked, and the secrets it needs. Raises ProjectError."""
    folder = path.parent if path.name == MANIFEST else path
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if manifest.pop("format") != FORMAT:
            raise ProjectError(f"{folder} is a bundle of another format", f"this Atoll reads {FORMAT}: build it anew")
        entries, main = manifest.pop("modules"), manifest.pop("main")
        secrets = tuple(manifest.pop("required_secrets", ()))
        modules = tuple(_read(folder / "modules", entry) for entry in entries)
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ProjectError(f"{folder} is no whole bundle: {error!r}", "build it anew with `atoll build`") from None
    return deploy_body(manifest, main, modules), secrets


def _read(folder: Path, entry: dict[str, str]) -> BuiltModule:
    path = (folder / entry["path"]).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ProjectError(f"the bundle names {entry['path']}, which is outside of it", "build it anew")
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
        raise ProjectError(f"{name} is not what was built: its sha256 differs", "build it anew with `atoll build`")


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
