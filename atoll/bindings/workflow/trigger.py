"""The workflows that versions declare: made with a deploy, deleted with their worker.

A workflow that a later version leaves out stays, as its instances may still be read. They go on with the newest version
that exports the class.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec

from atoll.bindings.services import Objects
from atoll.bindings.triggers import BadTrigger, Trigger
from atoll.bindings.workflow.entries import Workflow
from atoll.bindings.workflow.index import StoredWorkflow, WorkflowIndex
from atoll.workers import Isolation, Version

log = logging.getLogger("atoll.workflows")

ROUND_SECONDS = 60.0
STEP = 200  # instances that are deleted in one round


class WorkflowDeploys(Trigger):
    def __init__(
        self,
        index: WorkflowIndex,
        objects: Objects | None,
        delete: Callable[[StoredWorkflow, str], Awaitable[None]],
    ) -> None:
        self._index = index
        self._objects = objects
        self._delete = delete
        self._active: dict[str, Version] = {}  # by the id of the worker
        self._sweeper: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # --- before a deploy ---

    def check(self, version: Version, entries: Sequence[Workflow]) -> None:
        for each in entries:
            found = self._index.named(version.tenant, each.name)
            if found is not None and found.worker != version.worker_name:
                raise BadTrigger(
                    f"the workflow `{each.name}` belongs to the worker `{found.worker}`",
                    "use another name, or delete that workflow first",
                    is_taken=True,
                )
        if entries and version.isolation in (Isolation.CONTEXT, Isolation.ISOLATE):
            raise BadTrigger(
                f'the worker has workflows and isolation "{version.isolation.value}"',
                'the calls of an instance share its memory: use isolation "pool" or "process"',
            )

    def admit(self, version: Version, classes: Sequence[str]) -> None:
        entries: Sequence[Workflow] = version.triggers.get("workflows", ())
        for each in entries:
            if each.class_name not in classes:
                raise BadTrigger(
                    f"the workflow `{each.name}` names the class {each.class_name}, which the worker does not export",
                    f"export it: `export class {each.class_name} extends WorkflowEntrypoint`",
                )
        own = {each.name for each in entries}
        for name, worker in bound_by(version):
            found = self._index.named(version.tenant, name)
            if name in own or (found is not None and worker in ("", found.worker)):
                continue
            owner = f"the worker `{worker}` has no workflow `{name}`" if worker else f"there is no workflow `{name}`"
            raise BadTrigger(owner, "deploy the worker that declares it in `workflows` first")

    async def prepare(self, version: Version, entries: Sequence[Workflow]) -> None:
        for each in entries:
            if self._index.named(version.tenant, each.name) is None:
                await self._index.put(version.tenant, version.worker_name, each)

    # --- a version is active ---

    def put(self, version: Version, entries: Sequence[Workflow]) -> None:
        self._active[version.worker_id] = version
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().create_task(self._sweep())
        changed = [each for each in entries if self._differs(version, each)]
        if changed:
            task = asyncio.get_running_loop().create_task(self._change(version, changed))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _differs(self, version: Version, wanted: Workflow) -> bool:
        found = self._index.named(version.tenant, wanted.name)
        return found is None or found.worker == version.worker_name

    async def _change(self, version: Version, entries: Sequence[Workflow]) -> None:
        try:
            for each in entries:
                if self._active.get(version.worker_id) is version:
                    await self._index.put(version.tenant, version.worker_name, each)
        except Exception:
            log.exception("the workflows of %s could not be stored", version.worker_name)

    async def drop(self, worker_id: str) -> None:
        """The worker was deleted: so are its workflows, with their instances."""
        version = self._active.pop(worker_id, None)
        if version is None:
            return
        for workflow in self._index.of_worker(version.tenant, version.worker_name):
            await self.delete(workflow)

    async def delete(self, workflow: StoredWorkflow) -> None:
        if self._objects is not None:
            await self._objects.delete_namespace(workflow.id)
        await self._index.drop(workflow)

    # --- the end of what is kept ---

    async def _sweep(self) -> None:
        while True:
            try:
                for workflow, name in self._index.expired(int(time.time() * 1000), STEP):
                    await self._delete(workflow, name)
            except asyncio.CancelledError:
                raise
            except Exception:
                log.exception("instances of workflows whose time is over could not be deleted")
            await asyncio.sleep(ROUND_SECONDS)

    async def close(self) -> None:
        tasks = [*self._tasks, *([self._sweeper] if self._sweeper is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def bound_by(version: Version) -> Iterator[tuple[str, str]]:
    """The workflow and the worker, "" if none is named, of each binding."""
    for grant in version.grants.values():
        if grant.kind == "workflow":
            entry: dict[str, Any] = msgspec.json.decode(grant.resource)
            yield entry["workflow"], entry.get("script_name", "")
