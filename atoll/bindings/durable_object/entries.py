"""`migrations` of a deploy: which classes of a worker are Durable Objects. The whole list is sent with every deploy.

Instead of steps the list may have one entry with `exports`: all classes as they shall be (exports.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from atoll.api.refusals import bad_body, refuse_many
from atoll.manifests.trigger_fields import TriggerField
from atoll.workers import WORKER_NAME

MAX_MIGRATIONS = 1_000
MAX_CLASSES = 100
MAX_TAG = 200
CLASS_NAME = re.compile(r"[A-Za-z_$][\w$]{0,255}", re.ASCII)


class RenamedClass(Struct, frozen=True):
    old: str = field(name="from")
    new: str = field(name="to")


class TransferredClass(Struct, frozen=True):
    old: str = field(name="from")
    script: str = field(name="from_script")  # a worker of the same tenant
    new: str = field(name="to")


CREATED, DELETED, RENAMED, TRANSFERRED, EXPECTED = "created", "deleted", "renamed", "transferred", "expecting-transfer"
STORAGES = ("sqlite", "legacy-kv")
# The fields of an entry in each state, besides the state itself.
FIELDS = {
    CREATED: {"storage"},
    DELETED: set[str](),
    RENAMED: {"renamed_to"},
    TRANSFERRED: {"transferred_to"},
    EXPECTED: {"storage", "transfer_from"},
}


class ObjectExport(Struct, frozen=True, omit_defaults=True):
    """A class in `exports`."""

    storage: str = ""
    state: str = CREATED
    renamed_to: str = ""
    transferred_to: str = ""  # a worker, or worker/Class
    transfer_from: str = ""


class Migration(Struct, frozen=True, omit_defaults=True):
    tag: str = ""
    new_classes: tuple[str, ...] = ()
    new_sqlite_classes: tuple[str, ...] = ()
    renamed_classes: tuple[RenamedClass, ...] = ()
    deleted_classes: tuple[str, ...] = ()
    transferred_classes: tuple[TransferredClass, ...] = ()
    exports: dict[str, ObjectExport] | None = None

    @property
    def names(self) -> list[str]:
        renamed = [name for each in self.renamed_classes for name in (each.old, each.new)]
        moved = [name for each in self.transferred_classes for name in (each.old, each.new)]
        return [*self.new_classes, *self.new_sqlite_classes, *renamed, *self.deleted_classes, *moved]


def checked(migrations: Sequence[Migration]) -> tuple[Migration, ...]:
    refuse_many("migrations", migrations, MAX_MIGRATIONS)
    declared = [each for each in migrations if each.exports is not None]
    if declared:
        if len(migrations) > 1 or declared[0].tag or declared[0].names:
            raise bad_body(
                "`migrations` and `exports` are both set", "`exports` replaces `migrations`: keep one of them"
            )
        check_exports(declared[0].exports or {})
        return tuple(declared)
    seen: set[str] = set()
    for each in migrations:
        if not 0 < len(each.tag) <= MAX_TAG:
            raise bad_body("a migration has no `tag`, or a long one", f"use 1 to {MAX_TAG} characters")
        if each.tag in seen:
            raise bad_body(f"two migrations have the tag `{each.tag[:80]}`", "every migration needs its own tag")
        seen.add(each.tag)
        refuse_many("migrations[].classes", each.names, MAX_CLASSES)
        for name in each.names:
            if not CLASS_NAME.fullmatch(name):
                raise bad_body(f"a migration names the class {name[:80]!r}", "use the name of an exported class")
        for moved in each.transferred_classes:
            if not WORKER_NAME.fullmatch(moved.script):
                raise bad_body(f"`from_script` is {moved.script[:80]!r}", "use the name of a worker")
    return tuple(migrations)


def check_exports(exports: dict[str, ObjectExport]) -> None:
    refuse_many("exports", tuple(exports), MAX_CLASSES)
    for name, each in exports.items():
        where = f"`exports.{name[:80]}`"
        if not CLASS_NAME.fullmatch(name):
            raise bad_body(f"`exports` names the class {name[:80]!r}", "use the name of an exported class")
        if each.state not in FIELDS:
            raise bad_body(f"{where} has the state {each.state[:80]!r}", f"use one of {', '.join(FIELDS)}")
        wanted = FIELDS[each.state]
        given = {
            field for field in ("storage", "renamed_to", "transferred_to", "transfer_from") if getattr(each, field)
        }
        if given != wanted:
            needs = ", ".join(sorted(wanted)) or "no other field"
            raise bad_body(f"{where} has the fields {sorted(given)}", f"the state {each.state} takes {needs}")
        if "storage" in wanted and each.storage not in STORAGES:
            raise bad_body(f"{where} has the storage {each.storage[:80]!r}", f"use one of {', '.join(STORAGES)}")
        if each.state == RENAMED:
            target = exports.get(each.renamed_to)
            if each.renamed_to == name or target is None or target.state != CREATED:
                message = f"{where} is renamed to {each.renamed_to[:80]!r}, which is not a created class in `exports`"
                raise bad_body(message, 'add it: {"type": "durable-object", "storage": "sqlite"}')
        for other in (each.transferred_to, each.transfer_from):
            worker, slash, class_name = other.partition("/")
            if other and (not WORKER_NAME.fullmatch(worker) or (slash and not CLASS_NAME.fullmatch(class_name))):
                raise bad_body(f"{where} names {other[:80]!r}", "use the name of a worker, or worker/Class")


TRIGGER = TriggerField(name="migrations", entry=Migration, handler="", checked=checked)
