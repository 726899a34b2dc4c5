"""`exports` of a deploy: Durable Object classes as they shall be, instead of a list of migrations.

    Counter: {storage: "sqlite"}                                    created, unless it is there
    Old:     {state: "deleted"}                                     its objects are deleted
    Old:     {state: "renamed", renamed_to: "Counter"}              its objects are those of Counter from now on
    Old:     {state: "transferred", transferred_to: "other"}        its objects go to another worker, which must
    Old:     {state: "expecting-transfer", transfer_from: "first"}  have asked for them

An entry whose change was made before has no effect. https://developers.cloudflare.com/durable-objects/reference/durable-objects-migrations/
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from atoll.bindings.durable_object.entries import CREATED, DELETED, EXPECTED, RENAMED, TRANSFERRED, ObjectExport
from atoll.bindings.durable_object.namespaces import Namespaces, ObjectNamespace
from atoll.bindings.triggers import BadTrigger
from atoll.workers import Version

RECONCILIATION: Final = 100402  # Cloudflare's numbers for these errors
OTHER_EXPORTS: Final = 100405
NO_WAY_BACK: Final = 100406

Exports = Mapping[str, ObjectExport]
FindExports = Callable[[str, str], "Exports | None"]  # tenant and worker -> `exports` of its active version


class Planned(Struct):
    """A class after the deploy: who it is now, or what creates it."""

    is_sql: bool
    present: str = ""  # the id of its namespace; "" if it is created
    created_as: str = ""
    tag: str = ""


class ClassChange(NamedTuple):
    """A namespace that gets another class or worker, or is deleted (both are "")."""

    namespace: ObjectNamespace
    worker: str = ""
    class_name: str = ""


class Reconciliation:
    """What `exports` of a version means for the namespaces that are there."""

    def __init__(self, namespaces: Namespaces, version: Version, exports: Exports, others: FindExports) -> None:
        self._namespaces = namespaces
        self._tenant, self._worker = version.tenant, version.worker_name
        self._others = others
        self.classes: dict[str, Planned] = {}
        self.changes: list[ClassChange] = []
        self.stale: list[str] = []  # entries that can be removed
        self.errors: list[str] = []
        for name, entry in exports.items():
            if entry.state == RENAMED:
                self._rename(name, entry)
            elif entry.state == TRANSFERRED:
                self._transfer(name, entry)
            elif entry.state == DELETED:
                self._delete(name)
        renamed = {change.class_name: change.namespace for change in self.changes if change.worker == self._worker}
        for name, entry in exports.items():
            if entry.state in (CREATED, EXPECTED):
                self._live(name, entry, renamed.get(name))
        for each in namespaces.of_worker(self._tenant, self._worker):
            if each.class_name not in exports:
                self._fail(
                    "provisioned_class_missing_from_config", each.class_name,
                    "it has objects and is not in `exports`: declare it, or delete it with the state `deleted`",
                )  # fmt: skip

    def _fail(self, scenario: str, name: str, message: str) -> None:
        self.errors.append(f"[{scenario}] class '{name}': {message}")

    def _own(self, name: str) -> ObjectNamespace | None:
        return self._namespaces.find(self._tenant, self._worker, name)

    def _rename(self, name: str, entry: ObjectExport) -> None:
        found = self._own(name)
        if found is None:
            self.stale.append(name)
        elif self._own(entry.renamed_to) is not None:
            self._fail("tombstone_renamed_to_occupied", name, f"the class {entry.renamed_to} has objects of its own")
        else:
            self.changes.append(ClassChange(found, self._worker, entry.renamed_to))

    def _delete(self, name: str) -> None:
        found = self._own(name)
        if found is None:
            self.stale.append(name)
        else:
            self.changes.append(ClassChange(found))

    def _transfer(self, name: str, entry: ObjectExport) -> None:
        found = self._own(name)
        if found is None:
            self.stale.append(name)
            return
        target, wanted = split_target(entry.transferred_to, name)
        exports = self._others(self._tenant, target)
        expected = exports.get(wanted) if exports is not None else None
        if exports is None:
            self._fail("transferred_target_missing", name, f"there is no worker `{target}` that has `exports`")
        elif expected is None or expected.state != EXPECTED:
            message = f"the worker `{target}` does not expect {wanted}: deploy it first, with expecting-transfer"
            self._fail("transferred_pending_not_found", name, message)
        elif split_target(expected.transfer_from, wanted) != (self._worker, name):
            message = f"`{target}` expects {wanted} from `{expected.transfer_from}`"
            self._fail("transferred_target_mismatch", name, message)
        elif self._namespaces.find(self._tenant, target, wanted) is not None:
            message = f"`{target}` has a class {wanted} with objects of its own"
            self._fail("phase_one_transfer_target_class_provisioned", name, message)
        elif not _same_storage(found, expected):
            self._fail("storage_type_mismatch", name, f"`{target}` expects another storage: {expected.storage}")
        else:
            self.changes.append(ClassChange(found, target, wanted))

    def _live(self, name: str, entry: ObjectExport, renamed: ObjectNamespace | None) -> None:
        found = renamed or self._own(name)
        if found is None and entry.state == EXPECTED:
            source, class_name = split_target(entry.transfer_from, name)
            found = self._namespaces.find(self._tenant, source, class_name)
            if found is None:
                message = f"the worker `{source}` has no class {class_name} with objects"
                self._fail("phase_one_transfer_source_namespace_missing", name, message)
                return
        is_sql = entry.storage == "sqlite"
        if found is not None and not _same_storage(found, entry):
            self._fail("storage_type_mismatch", name, f"it was made with {storage_of(found)}, which cannot change")
        elif found is not None:
            self.classes[name] = Planned(is_sql, found.id, tag=found.tag)
        else:
            self.classes[name] = Planned(is_sql, created_as=name, tag="exports")

    def check(self, exported: Collection[str], bound_by: Callable[[ObjectNamespace], Iterable[str]]) -> None:
        """BadTrigger with everything that is wrong. `exported` are the classes in the code."""
        for name in sorted(set(self.classes) - set(exported)):
            is_known = bool(self.classes[name].present)
            scenario = "config_export_not_in_code" if is_known else "config_references_nonexistent_class"
            self._fail(scenario, name, "the main module does not export it")
        for change in self.changes:
            name = change.namespace.class_name
            if change.worker:
                continue
            if name in exported:
                message = "it is to be deleted and still exported: remove it from the code"
                self._fail("tombstone_delete_class_still_in_code", name, message)
            others = sorted(bound_by(change.namespace))
            if others:
                message = f"other workers have bindings to it: {', '.join(others)}"
                self._fail("tombstone_delete_blocked_by_external_bindings", name, message)
        self.refuse()

    def refuse(self) -> None:
        if self.errors:
            raise BadTrigger(
                f"Durable Object exports reconciliation failed ({RECONCILIATION}): {'; '.join(self.errors)}",
                "correct `exports` of the config, or the exported classes",
            )


def _same_storage(found: ObjectNamespace, entry: ObjectExport) -> bool:
    return found.is_sql == (entry.storage == "sqlite")


def storage_of(namespace: ObjectNamespace) -> str:
    return "sqlite" if namespace.is_sql else "legacy-kv"


def split_target(text: str, name: str) -> tuple[str, str]:
    """The worker and class that `worker` or `worker/Class` names."""
    worker, _, class_name = text.partition("/")
    return worker, class_name or name
