"""The manifests of all bindings, found by their folders.

This package is below `bindings/`, and the only one that imports upwards: by name, and only files named `manifest.py`.
These are light, so a command that needs one fact of one binding stays quick.
"""

from __future__ import annotations

import importlib
import importlib.resources
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from atoll.manifests.manifest import BindingQuota, CommandGroup, Manifest

if TYPE_CHECKING:
    from atoll.manifests.cloudflare_parts import CloudflarePart
    from atoll.manifests.config_fields import ConfigField
    from atoll.manifests.moved import MovedPart
    from atoll.manifests.project_files import ProjectFiles
    from atoll.manifests.trigger_fields import TriggerField

PACKAGE = "atoll.bindings"


@cache
def manifests() -> Mapping[str, Manifest]:
    """Every manifest by kind, sorted."""
    folders = importlib.import_module(PACKAGE).__path__
    kinds = sorted(module.name for module in pkgutil.iter_modules(folders) if module.ispkg)
    found = {kind: importlib.import_module(f"{PACKAGE}.{kind}.manifest").MANIFEST for kind in kinds}
    for kind, manifest in found.items():
        assert isinstance(manifest, Manifest) and manifest.kind == kind, f"{PACKAGE}.{kind}.manifest names another kind"
    return found


def plain_value(kind: str, version: Any) -> Any:
    """The value of env.NAME for a binding that is a plain value; None for a binding that is an object."""
    manifest = manifests().get(kind)
    return manifest.value(version) if manifest is not None and manifest.value is not None else None


def stand_in(name: str, field: str) -> dict[str, Any]:
    """The entry of a deploy that replaces a binding Atoll does not have."""
    (make,) = [manifest.stand_in for manifest in manifests().values() if manifest.stand_in is not None]
    return make(name, field)


def preload() -> None:
    """Import what the first calls of a node need."""
    for manifest in manifests().values():
        for module in manifest.preloads:
            importlib.import_module(module)


def preload_admin() -> None:
    """Import the endpoints of all bindings."""
    for kind, manifest in manifests().items():
        if manifest.admin is not None:
            importlib.import_module(f"{PACKAGE}.{kind}.admin")


@cache
def config_fields() -> tuple[ConfigField, ...]:
    """The fields of a project's config that bindings read, sorted by name."""
    modules = [importlib.import_module(manifest.config) for manifest in manifests().values() if manifest.config]
    found: list[ConfigField] = [field for module in modules for field in module.FIELDS]
    return tuple(sorted(found, key=lambda field: field.name))


def config_names(kind: str) -> list[str]:
    """The names of the fields of a config that a binding reads."""
    module = manifests()[kind].config
    return [field.name for field in importlib.import_module(module).FIELDS] if module else []


@cache
def triggers() -> Mapping[str, TriggerField]:
    """The fields of a deploy that ask for events, by name."""
    found: list[TriggerField] = [trigger for _, trigger in _triggers_by_kind()]
    return {trigger.name: trigger for trigger in sorted(found, key=lambda trigger: trigger.name)}


@cache
def trigger_kinds() -> Mapping[str, str]:
    """The kind of binding that serves each of these fields."""
    return {trigger.name: kind for kind, trigger in _triggers_by_kind()}


def _triggers_by_kind() -> list[tuple[str, TriggerField]]:
    named = [(kind, manifest.trigger) for kind, manifest in manifests().items() if manifest.trigger]
    return [(kind, importlib.import_module(module).TRIGGER) for kind, module in named]


@cache
def project_files() -> Mapping[str, ProjectFiles]:
    """What sends files of a project to a node, by field of the deploy."""
    modules = [importlib.import_module(manifest.files) for manifest in manifests().values() if manifest.files]
    return {module.FILES.field: module.FILES for module in modules}


@cache
def cloudflare_parts() -> Mapping[str, CloudflarePart]:
    """The parts of bindings in Cloudflare's API, by kind."""
    modules = {kind: manifest.cloudflare for kind, manifest in manifests().items() if manifest.cloudflare}
    return {kind: importlib.import_module(module).PART for kind, module in modules.items()}


@cache
def quotas() -> Mapping[str, BindingQuota]:
    """The quotas of all bindings, by name."""
    return {name: quota for manifest in manifests().values() for name, quota in manifest.quotas.items()}


@cache
def on_one_node() -> Mapping[str, str]:
    """The kinds that several nodes cannot have yet, and what each keeps on the disk of one node."""
    return {kind: manifest.one_node for kind, manifest in manifests().items() if manifest.one_node}


@cache
def tables() -> Mapping[str, Traversable]:
    """The migrations of the kinds that have tables in PostgreSQL."""
    package = importlib.resources.files(PACKAGE)
    found = {kind: package / kind / "postgres_migrations" for kind in manifests()}
    return {kind: folder for kind, folder in found.items() if folder.is_dir()}


@cache
def shared_files() -> Mapping[str, Traversable]:
    """The SQLite files of kinds that nodes share, by name, and their migrations."""
    package = importlib.resources.files(PACKAGE)
    named = ((kind, manifest.shared_file) for kind, manifest in manifests().items() if manifest.shared_file)
    return {file: package / kind / "migrations" for kind, file in named}


def migrations_of(kind: str) -> Traversable:
    """The migrations of the SQLite files of a kind."""
    return importlib.resources.files(PACKAGE) / kind / "migrations"


@cache
def moved_parts() -> Mapping[str, MovedPart]:
    """What `atoll migrate` moves, by kind."""
    modules = {kind: manifest.moved for kind, manifest in manifests().items() if manifest.moved}
    return {kind: importlib.import_module(module).PART for kind, module in modules.items()}


@cache
def command_groups() -> Mapping[str, CommandGroup]:
    """The command groups of all bindings, by name."""
    found = {name: group for manifest in manifests().values() for name, group in manifest.commands.items()}
    return dict(sorted(found.items()))
