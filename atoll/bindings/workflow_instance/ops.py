"""workflow_instance: an instance asks whether it may run, and reports its status for lists and quotas.

Instances are Durable Objects. What they say of themselves comes from an engine: the object of the call decides which
workflow and tenant it is about.
"""

from __future__ import annotations

import time
from typing import Any

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.workflow.index import STATUSES, ListedInstance, StoredWorkflow
from atoll.bindings.workflow.ops import Workflows, object_id
from atoll.errors import InvalidArgument
from atoll.objects.store import ObjectKey

DELETED = "deleted"
MAX_MS = 8_640_000_000_000_000  # of a Date


class WorkflowInstances(Binding):
    kind = "workflow_instance"
    ambient = True

    def __init__(self, workflows: Workflows) -> None:
        self._workflows = workflows

    def _workflow(self, call: OpCall) -> tuple[StoredWorkflow, str]:
        """The workflow whose instance asks, and the id of its object."""
        key = call.scope.object_key
        found = self._workflows.index.by_id(key.namespace) if isinstance(key, ObjectKey) else None
        if found is None or found.tenant != call.scope.version.tenant:
            raise InvalidArgument("only an instance of a workflow can ask this")
        assert isinstance(key, ObjectKey)
        return found, key.id

    @op("workflow_instance.begin", free=True)
    def begin(self, call: OpCall) -> Reply:
        """`wait`: the milliseconds after which the instance asks again; 0: it may run, until its call is over."""
        workflow, _ = self._workflow(call)
        wait = self._workflows.running.enter(workflow.tenant, call.scope)
        return Reply({"wait": wait, "steps": workflow.steps, "version": call.scope.version.id})

    @op("workflow_instance.report", free=True)
    async def report(self, call: OpCall) -> Reply:
        workflow, id = self._workflow(call)
        meta = call.meta
        name, status = meta.get("instance"), meta.get("status")
        if not isinstance(name, str) or object_id(workflow, name) != id:
            raise InvalidArgument("the report of a workflow instance names another instance")
        index = self._workflows.index
        if status == DELETED:
            await index.forget(workflow, name)
        elif status in STATUSES:
            created, started, ended = (_time(meta.get(field)) for field in ("created", "started", "ended"))
            expires = None if ended is None else ended + workflow.keeps(status, _time(meta.get("keep")))
            now = time.time_ns() // 1_000_000
            await index.note(workflow, ListedInstance(name, status, created or now, now, started, ended, expires))
        else:
            raise InvalidArgument("the report of a workflow instance has no status")
        return Reply()


def _time(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 <= value <= MAX_MS else None
