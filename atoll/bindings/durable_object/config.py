"""`durable_objects` and `migrations` of a project's config."""

from __future__ import annotations

from msgspec import Struct, field

from atoll.manifests.config_fields import REMOTE, ConfigField, FieldVerdict, FindingLevel, Reading, Subfield, given


class ConfigObject(Struct):
    name: str
    class_name: str
    script_name: str = ""
    environment: str = ""


class ConfigObjects(Struct):
    bindings: list[ConfigObject] = []


class ConfigRenamed(Struct):
    old: str = field(name="from")
    new: str = field(name="to")


class ConfigMigration(Struct):
    tag: str
    new_classes: list[str] = []
    new_sqlite_classes: list[str] = []
    renamed_classes: list[ConfigRenamed] = []
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
            "renamed_classes": [{"from": renamed.old, "to": renamed.new} for renamed in each.renamed_classes],
            "deleted_classes": each.deleted_classes,
        }
        found = {name: names for name, names in lists.items() if names}
        reading.trigger("migrations", given({"tag": each.tag, **found}))


TRANSFERS = Subfield("objects cannot be moved to another worker yet", FieldVerdict.MISSING, FindingLevel.ERROR)

FIELDS = (
    ConfigField(
        name="durable_objects",
        shape=ConfigObjects,
        read=read,
        subfields={"durable_objects.bindings[].remote": REMOTE},
    ),
    ConfigField(
        name="migrations",
        shape=list[ConfigMigration],
        read=read_migrations,
        inherited=True,
        subfields={"migrations[].transferred_classes": TRANSFERS},
    ),
)
