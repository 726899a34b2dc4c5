"""Applies the migrations of deploys.

New classes get their namespace before a version is stored; renames and deletions follow when the version is active. A
deploy that fails in between leaves an empty namespace, which the next deploy uses. After a crash the start applies what
is missing: the stored version has the whole list.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from atoll.bindings.durable_object.entries import Migration
from atoll.bindings.durable_object.namespaces import Namespaces, ObjectNamespace
from atoll.bindings.durable_object.planning import check_bound, check_exports, pending, plan
from atoll.bindings.services import Objects
from atoll.bindings.triggers import BadTrigger, Trigger
from atoll.workers import Isolation, Version

log = logging.getLogger("atoll.objects")


class ObjectMigrations(Trigger):
    def __init__(self, namespaces: Namespaces, objects: Objects | None) -> None:
        self._namespaces = namespaces
        self._objects = objects
        self._tasks: set[asyncio.Task[None]] = set()
        self._names: dict[str, tuple[str, str]] = {}  # tenant and name by the id of a worker
        self._is_begun = False

    def admit(self, version: Version, classes: Sequence[str]) -> None:
        planned = plan(self._namespaces, version)
        grants = [grant for grant in version.grants.values() if grant.kind == "durable_object"]
        entries = [msgspec.json.decode(grant.resource) for grant in grants]
        own, foreign = set[str](), list[tuple[str, str]]()
        for entry in entries:
            script = entry.get("script_name") or version.worker_name
            if script == version.worker_name:
                own.add(entry["class_name"])
            else:
                foreign.append((script, entry["class_name"]))
        check_bound(version, planned, own)
        for script, name in foreign:
            if self._namespaces.find(version.tenant, script, name) is None:
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

    async def prepare(self, version: Version, entries: Sequence[Migration]) -> None:
        tenant, worker = version.tenant, version.worker_name
        for planned in plan(self._namespaces, version).values():
            if not planned.present:
                await self._namespaces.create(tenant, worker, planned.created_as, planned.is_sql, planned.tag)

    def put(self, version: Version, entries: Sequence[Any]) -> None:
        self._names[version.worker_id] = version.tenant, version.worker_name
        tenant, worker = version.tenant, version.worker_name
        try:
            steps = pending(self._namespaces, version)
        except BadTrigger:
            steps = []  # an older version with other tags is active again
        for step in steps:
            for renamed in step.renamed_classes:
                found = self._namespaces.find(tenant, worker, renamed.old)
                if found is not None:
                    self._namespaces.rename(found, renamed.new)
            for name in step.deleted_classes:
                found = self._namespaces.find(tenant, worker, name)
                if found is not None:
                    self._namespaces.mark_deleted(found)
            self._namespaces.applied(tenant, worker, step.tag)
        if self._objects is not None:
            self._objects.update(version)
            if not self._is_begun or steps:
                self._is_begun = True
                self._delete_marked()

    def _delete_marked(self) -> None:
        for namespace in self._namespaces.deleted():
            task = asyncio.get_running_loop().create_task(self._delete(namespace))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _delete(self, namespace: ObjectNamespace) -> None:
        assert self._objects is not None
        try:
            await self._objects.delete_namespace(namespace.id)
            await self._namespaces.forget(namespace)
        except Exception:
            log.exception("the objects of a deleted class could not be deleted; the next start tries again")

    async def drop(self, worker_id: str) -> None:
        """The worker was deleted: so are its objects."""
        named = self._names.pop(worker_id, None)
        if named is None:
            return
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
