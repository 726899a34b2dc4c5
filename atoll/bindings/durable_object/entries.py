"""`migrations` of a deploy: which classes of a worker are Durable Objects. The whole list is sent with every deploy."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from atoll.api.refusals import bad_body, refuse_many
from atoll.manifests.trigger_fields import TriggerField

MAX_MIGRATIONS = 1_000
MAX_CLASSES = 100
MAX_TAG = 200
CLASS_NAME = re.compile(r"[A-Za-z_$][\w$]{0,255}", re.ASCII)


class RenamedClass(Struct, frozen=True):
    old: str = field(name="from")
    new: str = field(name="to")


class Migration(Struct, frozen=True):
    tag: str
    new_classes: tuple[str, ...] = ()
    new_sqlite_classes: tuple[str, ...] = ()
    renamed_classes: tuple[RenamedClass, ...] = ()
    deleted_classes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        renamed = [name for each in self.renamed_classes for name in (each.old, each.new)]
        return [*self.new_classes, *self.new_sqlite_classes, *renamed, *self.deleted_classes]


def checked(migrations: Sequence[Migration]) -> tuple[Migration, ...]:
    refuse_many("migrations", migrations, MAX_MIGRATIONS)
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
    return tuple(migrations)


TRIGGER = TriggerField(name="migrations", entry=Migration, handler="", checked=checked)
