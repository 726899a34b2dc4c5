"""`durable_objects`, `migrations` and `exports` of a project's config."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, defstruct
from msgspec.structs import asdict

from atoll.manifests.config_fields import ConfigField, Finding, FindingLevel, Reading, Subfield, given


class ConfigObject(Struct):
    name: str
    class_name: str
    script_name: str = ""
    environment: str = ""


class ConfigObjects(Struct):
    bindings: list[ConfigObject] = []


ConfigRenamed = defstruct("ConfigRenamed", [("from", str), ("to", str)])  # `from` cannot be written in a class


ConfigTransferred = defstruct("ConfigTransferred", [("from", str), ("from_script", str), ("to", str)])


class ConfigMigration(Struct):
    tag: str
    new_classes: list[str] = []
    new_sqlite_classes: list[str] = []
    renamed_classes: list[ConfigRenamed] = []  # type: ignore[valid-type]
    deleted_classes: list[str] = []
    transferred_classes: list[ConfigTransferred] = []  # type: ignore[valid-type]


EXPORT_FIELDS = ("storage", "state", "renamed_to", "transferred_to", "transfer_from")


def read(objects: ConfigObjects, reading: Reading) -> None:
    for each in objects.bindings:
        script = f"{each.script_name}-{each.environment}" if each.script_name and each.environment else each.script_name
        reading.bind("durable_object", each.name, class_name=each.class_name, script_name=script)


def has_both(reading: Reading) -> bool:
    """Whether the other one of `migrations` and `exports` was read before."""
    if not reading.triggers.get("migrations"):
        return False
    text = "`migrations` and `exports` are both set"
    hint = "`exports` replaces `migrations`: keep one of them"
    reading.findings.append(Finding(FindingLevel.ERROR, "exports", text, hint))
    return True


def read_migrations(migrations: list[ConfigMigration], reading: Reading) -> None:
    if migrations and has_both(reading):
        return
    for each in migrations:
        lists = {
            "new_classes": each.new_classes,
            "new_sqlite_classes": each.new_sqlite_classes,
            "renamed_classes": [asdict(renamed) for renamed in each.renamed_classes],
            "deleted_classes": each.deleted_classes,
            "transferred_classes": [asdict(moved) for moved in each.transferred_classes],
        }
        found = {name: names for name, names in lists.items() if names}
        reading.trigger("migrations", given({"tag": each.tag, **found}))


def read_exports(exports: dict[str, dict[str, Any]], reading: Reading) -> None:
    found: dict[str, Any] = {}
    for name, each in exports.items():
        kind = each.get("type")
        if kind == "durable-object":
            found[name] = given({field: each.get(field) for field in EXPORT_FIELDS})
            for field in sorted(set(each) - {"type", *EXPORT_FIELDS}):
                reading.warn(f"exports.{name}.{field}", "it has no effect on a Durable Object class")
        elif kind != "worker":  # entry points need no declaration
            text = f"the type {kind!r} is not supported"
            reading.findings.append(Finding(FindingLevel.ERROR, f"exports.{name}", text, "leave it out"))
    if not found:
        return
    if not has_both(reading):
        reading.trigger("migrations", {"exports": found})


AT_ONCE = Subfield("a deploy resets all objects of the worker at once", level=FindingLevel.WARNING)

FIELDS = (
    ConfigField(
        name="durable_objects",
        shape=ConfigObjects,
        read=read,
        subfields={"durable_objects.code_update_strategy": AT_ONCE},
    ),
    ConfigField(
        name="migrations",
        shape=list[ConfigMigration],
        read=read_migrations,
        inherited=True,
    ),
    ConfigField(
        name="exports",
        shape=dict[str, dict[str, Any]],
        read=read_exports,
        inherited=True,
    ),
)
