"""workflow: creates instances of workflows, and calls their methods.

An instance is a Durable Object with SQL in the worker that has the code. The engine runs its steps there
(web/workflow/instance.js), and its alarm wakes it. So an instance has the sandbox, the durability and the backup of
objects, and there is at most one live copy of each.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import msgspec

from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.bindings.base import Binding, Later, OpCall, op
from atoll.bindings.durable_object.ops import DurableObjects
from atoll.bindings.services import InnerRequest, Objects, ObjectTarget, Services
from atoll.bindings.workflow.entries import NAME, NAME_HINT
from atoll.bindings.workflow.index import StoredWorkflow, WorkflowIndex
from atoll.bindings.workflow.running import RunningInstances
from atoll.bindings.workflow.trigger import WorkflowDeploys
from atoll.errors import BindingRefused, CalleeFailed, InvalidArgument
from atoll.objects.store import ObjectKey
from atoll.wire.generated import Event
from atoll.workers import WORKER_NAME, Grant, Version

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

METHODS = {"create", "status", "pause", "resume", "terminate", "restart", "sendEvent", "delete"}
INSTANCE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
INSTANCE_HINT = "use up to 100 letters, digits, dashes and _"
MAX_ANSWER = 8 << 20  # bytes; web/workflow/operator.js bounds the characters
MAX_MESSAGE = 4_096


class WorkflowEntry(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    workflow: str
    script_name: str = ""  # the worker of the tenant that has it; "": whichever has


class InstanceRefused(Exception):
    """An instance refused a request: the words of its error, which begin with a code in brackets."""

    @property
    def is_missing(self) -> bool:
        return str(self).startswith("(instance.not_found)")


class ToldError(msgspec.Struct):
    name: str = "Error"
    message: str = ""


class Workflows(Binding):
    kind = "workflow"
    Entry = WorkflowEntry

    def __init__(self, services: Services, objects: DurableObjects) -> None:
        self._services = services
        self._calls = objects
        self.index = WorkflowIndex(services.settings.data / "workflows.db")
        self.running = RunningInstances()
        self.trigger: WorkflowDeploys = WorkflowDeploys(self.index, services.objects, self.delete)
        if services.objects is not None:
            others = services.objects.resolve
            services.objects.resolve = lambda key: self.resolve(key) or others(key)

    @property
    def objects(self) -> Objects:
        if self._services.objects is None:
            raise BindingRefused("this node has no engines, and so no workflows")
        return self._services.objects

    # --- deploys and tenants ---

    def claim(self, tenant: str, entry: WorkflowEntry) -> str:
        if not NAME.fullmatch(entry.workflow):
            raise InvalidArgument(f"the workflow is named {entry.workflow[:80]!r}: {NAME_HINT}")
        if entry.script_name and not WORKER_NAME.fullmatch(entry.script_name):
            raise InvalidArgument(f"`script_name` is {entry.script_name[:80]!r}, which is not a valid worker name")
        return msgspec.json.encode(entry).decode()

    def facts(self, version: Version, grant: Grant) -> Mapping[str, Any]:
        return {"workflow": _entry(grant).workflow}

    async def holdings(self, tenant: str) -> list[str]:
        return [each.name for each in self.index.of_tenant(tenant)]

    async def usage(self, tenant: str) -> dict[str, int]:
        return {"workflow_instances": self.index.count(tenant)}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        self.index.bound(tenant, most["workflow_instances"])

    async def forget(self, tenant: str) -> None:
        for each in self.index.of_tenant(tenant):
            await self.trigger.delete(each)

    async def metrics(self) -> Sequence[Metric]:
        from atoll.bindings.workflow.metrics import workflow_metrics

        return await workflow_metrics(self.index)

    async def close(self) -> None:
        await self.index.close()

    # --- instances ---

    def resolve(self, key: ObjectKey) -> tuple[ObjectTarget, Version] | None:
        """The class of an instance and the version that runs it, for its alarm."""
        workflow = self.index.by_id(key.namespace)
        version = self._services.workers.find_worker(workflow.tenant, workflow.worker) if workflow else None
        if workflow is None or version is None:
            return None
        return ObjectTarget(workflow.id, key.id, workflow.class_name, is_sql=True), version

    def _target(self, workflow: StoredWorkflow, instance: str) -> tuple[ObjectTarget, Version]:
        version = self._services.workers.find_worker(workflow.tenant, workflow.worker)
        if version is None:
            how = self._services.workers.how_to_get(workflow.worker)
            raise InvalidArgument(f"the worker `{workflow.worker}` is not there: {how}")
        id = object_id(workflow, instance)
        return ObjectTarget(workflow.id, id, workflow.class_name, is_sql=True, name=instance), version

    @op("workflow.call")
    def call(self, call: OpCall) -> Later:
        entry, instance, tenant = _entry(call.grant), call.meta.get("instance"), call.scope.version.tenant
        workflow = self.index.named(tenant, entry.workflow)
        if workflow is None:
            raise BindingRefused(f"the workflow `{entry.workflow}` was deleted")
        if entry.script_name and entry.script_name != workflow.worker:
            raise BindingRefused(f"the worker `{entry.script_name}` has no workflow `{entry.workflow}`")
        if not isinstance(instance, str) or not INSTANCE.fullmatch(instance):
            raise InvalidArgument("(instance.not_found) Instance does not exist")
        if call.meta.get("method") not in METHODS or call.meta.get("path") is not None:
            raise InvalidArgument("an instance of a workflow has no such method")
        return self._calls.begin(call, *self._target(workflow, instance))

    async def ask(self, workflow: StoredWorkflow, instance: str, do: str, what: Any = None) -> msgspec.Raw:
        """The answer of an instance to the control API, as JSON. InstanceRefused if it refuses."""
        try:
            target, version = self._target(workflow, instance)
        except InvalidArgument as error:
            raise Refused(ApiCode.NOT_FOUND, str(error), "deploy the worker") from None
        question = msgspec.json.encode({"do": do, "with": what})
        head = b"POST http://workflow/\nhost: workflow\r\ncontent-length: %d\r\n" % len(question)
        event = int(Event.ENTRYPOINT)
        request = InnerRequest(version, head, question, True, 0, event, None, target)
        call = self._services.inner.start(request)
        whole = BytesIO()
        try:
            status = (await call.response()).status
            while whole.tell() <= MAX_ANSWER and (chunk := await call.read()):
                whole.write(chunk)
        except CalleeFailed as failed:
            words = failed.failure.message[:MAX_MESSAGE]
            raise Refused(ApiCode.UNAVAILABLE, f"the instance does not answer: {words}", "try again") from None
        finally:
            call.close()
        if whole.tell() > MAX_ANSWER:
            raise bad_body("the answer of the instance is too large")
        return _read(whole.getvalue(), status)

    async def delete(self, workflow: StoredWorkflow, instance: str) -> None:
        """Delete an instance and all that it stored. If it runs, its calls fail."""
        await self.objects.delete(ObjectKey(workflow.id, object_id(workflow, instance)))
        await self.index.forget(workflow, instance)


def object_id(workflow: StoredWorkflow, instance: str) -> str:
    return hashlib.sha256(f"{workflow.id} {instance}".encode("utf-8", "replace")).hexdigest()


def _entry(grant: Grant) -> WorkflowEntry:
    return msgspec.json.decode(grant.resource, type=WorkflowEntry)


def _read(data: bytes, status: int) -> msgspec.Raw:
    try:
        if status == 200:
            msgspec.json.decode(data)  # an engine made it
            return msgspec.Raw(data)
        told = msgspec.json.decode(data, type=ToldError)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Refused(
            ApiCode.UNAVAILABLE, "the answer of the instance cannot be read", "its worker may have changed JSON"
        ) from None
    raise InstanceRefused(told.message[:MAX_MESSAGE])
