"""Applies the migrations and `exports` of deploys.

New classes get their namespace before a version is stored; renames, transfers and deletions follow when the version is
active. A deploy that fails in between leaves an empty namespace, which the next deploy uses. After a crash the start
applies what is missing: the stored version has the whole list.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

import msgspec

from atoll.bindings.durable_object.entries import EXPECTED, Migration
from atoll.bindings.durable_object.exports import OTHER_EXPORTS, ClassChange, Exports, Reconciliation, split_target
from atoll.bindings.durable_object.namespaces import Namespaces, ObjectNamespace
from atoll.bindings.durable_object.planning import check_bound, check_exports, declared, pending, plan
from atoll.bindings.services import Objects
from atoll.bindings.triggers import BadTrigger, Trigger
from atoll.workers import Isolation, Version

log = logging.getLogger("atoll.objects")


class ObjectMigrations(Trigger):
    def __init__(self, namespaces: Namespaces, objects: Objects | None) -> None:
        self._namespaces = namespaces
        self._objects = objects
        self._tasks: set[asyncio.Task[None]] = set()
        self._active: dict[str, Version] = {}  # by the id of the worker
        self._is_begun = False

    # --- before a deploy ---

    def admit(self, version: Version, classes: Sequence[str]) -> None:
        exports = declared(version)
        if exports is not None:
            self._refuse_older(version, exports)
            Reconciliation(self._namespaces, version, exports, self._exports_of).check(classes, self._bound_by)
        planned = plan(self._namespaces, version, self._exports_of)
        own = {name for script, name in bindings_of(version) if script == version.worker_name}
        check_bound(self._namespaces, version, planned, own)
        for script, name in bindings_of(version):
            if script == version.worker_name or self.lookup(version.tenant, script, name) is not None:
                continue
            raise BadTrigger(
                f"the worker `{script}` has no Durable Object class {name}",
                f"deploy `{script}` first, with a migration that creates the class",
            )
        check_exports(planned, classes)
        if planned and version.isolation in (Isolation.CONTEXT, Isolation.ISOLATE):
            raise BadTrigger(
                f'the worker has Durable Objects and isolation "{version.isolation.value}"',
                'the calls of an object share its memory: use isolation "pool" or "process"',
            )

    def _refuse_older(self, version: Version, exports: Exports) -> None:
        """A rollback must not undo what `exports` did since: an old entry would make its class again, empty."""
        known = self._namespaces.declared(version.tenant, version.worker_name)
        if known is not None and version.created_at < known[0] and described(exports) != known[1]:
            raise BadTrigger(
                f"`exports` of this version differ from those that were applied after it ({OTHER_EXPORTS})",
                "deploy the code again with the present `exports`",
            )

    def lookup(self, tenant: str, worker: str, class_name: str) -> ObjectNamespace | None:
        """The namespace that a binding leads to. One to a class that a worker expects leads to where it is now."""
        found = self._namespaces.resolve(tenant, worker, class_name)
        expected = (self._exports_of(tenant, worker) or {}).get(class_name) if found is None else None
        if expected is None or expected.state != EXPECTED:
            return found
        return self._namespaces.find(tenant, *split_target(expected.transfer_from, class_name))

    def _exports_of(self, tenant: str, worker: str) -> Exports | None:
        version = self._find(tenant, worker)
        return declared(version) if version is not None else None

    def _find(self, tenant: str, worker: str) -> Version | None:
        found = (each for each in self._active.values() if (each.tenant, each.worker_name) == (tenant, worker))
        return next(found, None)

    def _bound_by(self, namespace: ObjectNamespace) -> Iterator[str]:
        """The other workers that have a binding to a namespace."""
        for version in self._active.values():
            if version.tenant != namespace.tenant or version.worker_name == namespace.worker:
                continue
            if any(self.lookup(version.tenant, *bound) is namespace for bound in bindings_of(version)):
                yield version.worker_name

    async def prepare(self, version: Version, entries: Sequence[Migration]) -> None:
        tenant, worker = version.tenant, version.worker_name
        for planned in plan(self._namespaces, version, self._exports_of).values():
            if not planned.present:
                await self._namespaces.create(tenant, worker, planned.created_as, planned.is_sql, planned.tag)

    # --- a version is active ---

    def put(self, version: Version, entries: Sequence[Any]) -> None:
        self._active[version.worker_id] = version
        moved: set[str] = set()
        is_deleting = False
        for change in self._changes(version):
            if change.worker:
                if change.worker != change.namespace.worker:
                    moved.add(change.namespace.id)
                self._namespaces.move(change.namespace, change.worker, change.class_name)
            else:
                self._namespaces.mark_deleted(change.namespace)
                is_deleting = True
        if self._objects is not None:
            self._objects.update(version, moved)
            if not self._is_begun or is_deleting:
                self._is_begun = True
                self._delete_marked()

    def _changes(self, version: Version) -> Iterator[ClassChange]:
        """What a version changes, one after the other: each change is made before the next one is asked for."""
        tenant, worker, find = version.tenant, version.worker_name, self._namespaces.find
        exports = declared(version)
        if exports is not None:
            known = self._namespaces.declared(tenant, worker)
            if known is not None and version.created_at < known[0]:
                return  # an older version is active again
            yield from Reconciliation(self._namespaces, version, exports, self._exports_of).changes
            self._namespaces.declare(tenant, worker, version.created_at, described(exports))
            return
        try:
            steps = pending(self._namespaces, version)
        except BadTrigger:
            return  # an older version with other tags is active again
        for step in steps:
            for renamed in step.renamed_classes:
                if (found := find(tenant, worker, renamed.old)) is not None:
                    yield ClassChange(found, worker, renamed.new)
            for name in step.deleted_classes:
                if (found := find(tenant, worker, name)) is not None:
                    yield ClassChange(found)
            for each in step.transferred_classes:
                if (found := find(tenant, each.script, each.old)) is not None:
                    yield ClassChange(found, worker, each.new)
            self._namespaces.applied(tenant, worker, step.tag)

    def _delete_marked(self) -> None:
        for namespace in self._namespaces.deleted():
            self._start(self._delete(namespace))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _delete(self, namespace: ObjectNamespace) -> None:
        assert self._objects is not None
        try:
            await self._objects.delete_namespace(namespace.id)
            await self._namespaces.forget(namespace)
        except Exception:
            log.exception("the objects of a deleted class could not be deleted; the next start tries again")

    def end(self, namespace: str) -> None:
        """Another node has deleted a namespace: end the objects of it that live here."""
        assert self._objects is not None
        self._start(self._objects.delete_namespace(namespace))

    async def drop(self, worker_id: str) -> None:
        """The worker was deleted: so are its objects."""
        version = self._active.pop(worker_id, None)
        if version is None:
            return
        named = version.tenant, version.worker_name
        for namespace in self._namespaces.of_worker(*named):
            self._namespaces.mark_deleted(namespace)
            if self._objects is not None:
                await self._delete(namespace)
        await self._namespaces.forget_tags(*named)

    def stop(self) -> None:
        if self._objects is not None:
            self._objects.stop_alarms()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def bindings_of(version: Version) -> Iterator[tuple[str, str]]:
    """The worker and class of each binding to objects."""
    for grant in version.grants.values():
        if grant.kind == "durable_object":
            entry = msgspec.json.decode(grant.resource)
            yield entry.get("script_name") or version.worker_name, entry["class_name"]


def described(exports: Exports) -> str:
    return msgspec.json.encode(dict(sorted(exports.items()))).decode()
