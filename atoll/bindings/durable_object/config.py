"""`durable_objects` and `migrations` of a project's config."""

from __future__ import annotations

from msgspec import Struct, defstruct
from msgspec.structs import asdict

from atoll.manifests.config_fields import ConfigField, FieldVerdict, FindingLevel, Reading, Subfield, given


class ConfigObject(Struct):
    name: str
    class_name: str
    script_name: str = ""
    environment: str = ""


class ConfigObjects(Struct):
    bindings: list[ConfigObject] = []


ConfigRenamed = defstruct("ConfigRenamed", [("from", str), ("to", str)])  # `from` cannot be written in a class


class ConfigMigration(Struct):
    tag: str
    new_classes: list[str] = []
    new_sqlite_classes: list[str] = []
    renamed_classes: list[ConfigRenamed] = []  # type: ignore[valid-type]
    deleted_classes: list[str] = []


def read(objects: ConfigObjects, reading: Reading) -> None:
    for each in objects.bindings:
        script = f"{each.script_name}-{each.environment}" if each.script_name and each.environment else each.script_name
        reading.bind("durable_object", each.name, class_name=each.class_name, script_name=script)


def read_migrations(migrations: list[ConfigMigration], reading: Reading) -> None:
    for each in migrations:
        lists = {
            "new_classes": each.new_classes,
            "new_sqlite_classes": each.new_sqlite_classes,
            "renamed_classes": [asdict(renamed) for renamed in each.renamed_classes],
            "deleted_classes": each.deleted_classes,
        }
        found = {name: names for name, names in lists.items() if names}
        reading.trigger("migrations", given({"tag": each.tag, **found}))


TRANSFERS = Subfield("objects cannot be moved to another worker yet", FieldVerdict.MISSING, FindingLevel.ERROR)

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
        subfields={"migrations[].transferred_classes": TRANSFERS},
    ),
)
