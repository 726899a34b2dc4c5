"""What the migrations of a version would change, and whether they may."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from atoll.bindings.durable_object.entries import Migration
from atoll.bindings.durable_object.exports import NO_WAY_BACK, Exports, FindExports, Planned, Reconciliation
from atoll.bindings.durable_object.namespaces import Namespaces
from atoll.bindings.triggers import BadTrigger
from atoll.workers import Version

NOBODY = Planned(is_sql=False)
LATER = "the order of migrations is fixed: add new ones at the end, and leave those that were applied as they are"


def declared(version: Version) -> Exports | None:
    """`exports` of a version; None if it has none."""
    entries: Sequence[Migration] = version.triggers.get("migrations", ())
    return entries[0].exports if entries else None


def no_others(tenant: str, worker: str) -> Exports | None:
    return None


def pending(namespaces: Namespaces, version: Version) -> list[Migration]:
    """The migrations of a version that were not applied yet. BadTrigger if the list does not continue the old one."""
    entries: Sequence[Migration] = version.triggers.get("migrations", ())
    if declared(version) is not None:
        return []
    if entries and namespaces.declared(version.tenant, version.worker_name) is not None:
        raise BadTrigger(
            f"the classes of this worker are declared by `exports`, and cannot return to `migrations` ({NO_WAY_BACK})",
            "declare them by `exports`",
        )
    applied = namespaces.tags(version.tenant, version.worker_name)
    known = [number for number, each in enumerate(entries) if each.tag in applied]
    if entries and applied and not known:
        raise BadTrigger(f"the migrations do not contain the tag `{applied[-1]}`, which was applied last", LATER)
    return list(entries[known[-1] + 1 if known else 0 :])


def plan(namespaces: Namespaces, version: Version, others: FindExports = no_others) -> dict[str, Planned]:
    """The classes of a worker once a version is active, by name. BadTrigger if a migration cannot be applied."""
    tenant, worker = version.tenant, version.worker_name
    exports = declared(version)
    if exports is not None:
        return Reconciliation(namespaces, version, exports, others).classes
    classes = {
        each.class_name: Planned(each.is_sql, each.id, tag=each.tag) for each in namespaces.of_worker(tenant, worker)
    }
    for step in pending(namespaces, version):
        for kind, names in (("new_classes", step.new_classes), ("new_sqlite_classes", step.new_sqlite_classes)):
            for name in names:
                found = classes.get(name)
                if found is not None and found.tag == step.tag and found.is_sql == (kind == "new_sqlite_classes"):
                    continue  # created by a deploy that failed afterwards
                if found is not None:
                    raise BadTrigger(f"Cannot apply {kind} migration to existing class {name}", "leave it out")
                if namespaces.find(tenant, worker, name) is not None:
                    raise BadTrigger(
                        f"the migrations delete or rename the class {name} and create it again",
                        "deploy the first change before the second",
                    )
                classes[name] = Planned(kind == "new_sqlite_classes", created_as=name, tag=step.tag)
        for renamed in step.renamed_classes:
            if renamed.old not in classes:
                raise BadTrigger(f"Cannot apply renamed_classes migration to non-existent class {renamed.old}", LATER)
            if renamed.new in classes:
                raise BadTrigger(f"Cannot apply renamed_classes migration to existing class {renamed.new}", LATER)
            classes[renamed.new] = classes.pop(renamed.old)
        for name in step.deleted_classes:
            if classes.pop(name, None) is None:
                raise BadTrigger(f"Cannot apply deleted_classes migration to non-existent class {name}", LATER)
        for moved in step.transferred_classes:
            source = namespaces.find(tenant, moved.script, moved.old)
            forwarded = namespaces.resolve(tenant, moved.script, moved.old)
            if source is None and forwarded is not None and classes.get(moved.new, NOBODY).present == forwarded.id:
                continue  # moved by a deploy that was cut off afterwards
            if source is None or moved.script == worker:
                message = f"Cannot apply transferred_classes migration to non-existent class {moved.old}"
                raise BadTrigger(f"{message} of script {moved.script}", LATER)
            if moved.new in classes:
                raise BadTrigger(f"Cannot apply transferred_classes migration to existing class {moved.new}", LATER)
            classes[moved.new] = Planned(source.is_sql, source.id, tag=source.tag)
    return classes


def check_exports(classes: Collection[str], exported: Collection[str]) -> None:
    """BadTrigger if a class with objects is not in the code."""
    for name in sorted(set(classes) - set(exported)):
        raise BadTrigger(
            f"the worker does not export the Durable Object class {name}",
            f"export class {name} from the main module, or delete its objects with a migration: deleted_classes",
        )


def check_bound(namespaces: Namespaces, version: Version, own: Collection[str], bound: Collection[str]) -> None:
    """BadTrigger if a binding names a class of the worker itself that has no objects, here or where it was moved."""
    entries: Sequence[Migration] = version.triggers.get("migrations", ())
    deleted = {name for each in entries for name in each.deleted_classes}
    for name in sorted(set(bound) - set(own)):
        if name not in deleted and namespaces.is_forwarded(version.tenant, version.worker_name, name):
            continue
        if name in deleted:
            raise BadTrigger(
                f"Cannot apply --delete-class migration to class {name} without also removing the binding that"
                " references it",
                "remove the binding",
            )
        raise BadTrigger(
            f"Cannot create binding for class {name} because it is not currently configured to implement Durable"
            " Objects. Did you forget to apply a `--new-class` migration?",
            f'add a migration: [[migrations]] tag = "v1", new_sqlite_classes = ["{name}"]',
        )
