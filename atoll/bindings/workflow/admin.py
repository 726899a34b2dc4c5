"""Workflows over HTTP: the workflows of a tenant, their instances, and what may be done with them."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.paging import limit_of, limit_query, name_page_of, name_query, page_answer, page_of
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import HEADERS, Query, Route, caller_of, json_answer, no_content, read_shape
from atoll.bindings.workflow.index import STATUSES, ListedInstance, StoredWorkflow
from atoll.bindings.workflow.ops import INSTANCE, INSTANCE_HINT, InstanceRefused, Workflows
from atoll.clock import iso_time

MAX_BODY = 1 << 20  # of parameters and events
STATUS = Query("status", "only instances with this status", {"type": "string", "enum": list(STATUSES)})
CURSOR = Query("cursor", "The `cursor` of the previous page", {"type": "string", "pattern": "^[0-9]{1,18}$"})


class WorkflowAnswer(msgspec.Struct):
    name: str
    worker: str
    class_name: str
    created_at: str
    changed_at: str
    instances: int


class WorkflowsAnswer(msgspec.Struct, omit_defaults=True):
    workflows: list[WorkflowAnswer]
    cursor: str = ""


class WorkflowCounts(msgspec.Struct):
    name: str
    worker: str
    class_name: str
    created_at: str
    changed_at: str
    instances: dict[str, int]  # by status


class InstanceAnswer(msgspec.Struct):
    id: str
    status: str
    created_at: str
    changed_at: str
    started_at: str | None
    ended_at: str | None
    expires_at: str | None


class InstancesAnswer(msgspec.Struct, omit_defaults=True):
    instances: list[InstanceAnswer]
    cursor: str = ""


class InstanceState(msgspec.Struct):
    id: str
    status: str


class InstanceSteps(msgspec.Struct):
    """An instance with its steps. Values are as JSON shows them."""

    id: str
    status: str
    params: Any
    trigger: dict[str, str]
    versionId: str
    queued: str
    start: str | None
    end: str | None
    steps: list[dict[str, Any]]
    step_count: int
    success: bool | None
    error: dict[str, str] | None
    output: Any


class NewInstance(msgspec.Struct, forbid_unknown_fields=True):
    id: str = ""
    params: Any = msgspec.field(default_factory=dict)


class StepName(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    count: int = 1
    type: str = "step"


class WantedRestart(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    from_: StepName | None = msgspec.field(default=None, name="from")


class SentEvent(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    payload: Any = None


class WorkflowsApi:
    def __init__(self, binding: Workflows, audit: AuditLog) -> None:
        self._binding = binding
        self._audit = audit

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        one = "/api/workflows/{workflow}"
        many, instance = f"{one}/instances", f"{one}/instances/{{instance}}"
        state = InstanceState
        return [
            Route(
                "GET", "/api/workflows", self.list, read, "The workflows of a tenant, by name", gives=WorkflowsAnswer,
                query=name_query(),
            ),
            Route("GET", one, self.show, read, "A workflow, with its instances by status", gives=WorkflowCounts),
            Route("DELETE", one, self.delete, change, "Delete a workflow with all its instances", status=204),
            Route(
                "GET", many, self.instances, read, "Instances of a workflow, the newest first", gives=InstancesAnswer,
                query=(STATUS, limit_query(), CURSOR),
            ),
            Route("POST", many, self.create, change, "Create an instance", NewInstance, state, 201),
            Route("GET", instance, self.describe, read, "An instance with its steps", gives=InstanceSteps),
            Route("DELETE", instance, self.forget, change, "Delete an instance", status=204),
            Route("POST", f"{instance}/pause", self.pause, change, "Pause an instance", gives=state),
            Route("POST", f"{instance}/resume", self.resume, change, "Resume an instance", gives=state),
            Route("POST", f"{instance}/terminate", self.terminate, change, "End an instance", gives=state),
            Route(
                "POST", f"{instance}/restart", self.restart, change, "Run an instance anew, or from a step on",
                WantedRestart, state,
            ),
            Route(
                "POST", f"{instance}/events", self.send, change, "Send an event to an instance", SentEvent, state
            ),
        ]  # fmt: skip

    def _find(self, request: Request) -> StoredWorkflow:
        name = request.path_params["workflow"]
        found = self._binding.index.named(caller_of(request).tenant, name)
        if found is None:
            raise Refused(ApiCode.NOT_FOUND, f"there is no workflow `{name[:80]}`", "GET /api/workflows lists them")
        return found

    async def list(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("workflows", self._listed(caller_of(request).tenant, after), limit)

    async def _listed(self, tenant: str, after: str) -> AsyncIterator[tuple[str, WorkflowAnswer]]:
        index = self._binding.index
        for each in index.of_tenant(tenant):
            if each.name > after:
                made, changed = iso_time(each.created_at), iso_time(each.changed_at)
                yield (
                    each.name,
                    WorkflowAnswer(each.name, each.worker, each.class_name, made, changed, index.count_of(each)),
                )

    async def show(self, request: Request) -> Response:
        each = self._find(request)
        counts = await self._binding.index.counts(each)
        made, changed = iso_time(each.created_at), iso_time(each.changed_at)
        return json_answer(WorkflowCounts(each.name, each.worker, each.class_name, made, changed, counts))

    async def delete(self, request: Request) -> Response:
        workflow = self._find(request)
        await self._audit.note(caller_of(request), "workflow.delete", workflow.name)
        await self._binding.trigger.delete(workflow)
        return no_content()

    # --- instances ---

    async def instances(self, request: Request) -> Response:
        workflow, status = self._find(request), request.query_params.get("status", "")
        if status and status not in STATUSES:
            raise bad_body(f"`status` is {status[:80]!r}", f"use one of {', '.join(STATUSES)}")
        offset, _ = page_of(request)
        limit = limit_of(request)
        found, _ = await self._binding.index.page(workflow, status, offset, limit + 1)
        shown = [_shown(each) for each in found[:limit]]
        return json_answer(InstancesAnswer(shown, str(offset + limit) if len(found) > limit else ""))

    async def create(self, request: Request) -> Response:
        workflow = self._find(request)
        wanted = await read_shape(request, NewInstance, empty=True, limit=MAX_BODY)
        id = wanted.id or str(uuid.uuid4())
        if not INSTANCE.fullmatch(id):
            raise bad_body(f"`id` is {id[:80]!r}", INSTANCE_HINT)
        await self._audit.note(caller_of(request), "workflow.create", f"{workflow.name} {id}")
        what = {"workflow": workflow.name, "source": "api", "params": wanted.params}
        return await self._ask(workflow, id, "create", what, status=201)

    async def describe(self, request: Request) -> Response:
        return await self._ask(*self._instance(request), "show")

    async def forget(self, request: Request) -> Response:
        workflow, id = self._instance(request)
        if self._binding.index.find(workflow, id) is None:
            raise _no_instance(id)
        await self._audit.note(caller_of(request), "workflow.forget", f"{workflow.name} {id}")
        await self._binding.delete(workflow, id)
        return no_content()

    async def pause(self, request: Request) -> Response:
        return await self._change(request, "pause")

    async def resume(self, request: Request) -> Response:
        return await self._change(request, "resume")

    async def terminate(self, request: Request) -> Response:
        return await self._change(request, "terminate")

    async def restart(self, request: Request) -> Response:
        wanted = await read_shape(request, WantedRestart, empty=True)
        return await self._change(request, "restart", wanted)

    async def send(self, request: Request) -> Response:
        return await self._change(request, "sendEvent", await read_shape(request, SentEvent, limit=MAX_BODY))

    async def _change(self, request: Request, do: str, what: Any = None) -> Response:
        workflow, id = self._instance(request)
        await self._audit.note(caller_of(request), f"workflow.{do}", f"{workflow.name} {id}")
        return await self._ask(workflow, id, do, what)

    def _instance(self, request: Request) -> tuple[StoredWorkflow, str]:
        workflow, id = self._find(request), request.path_params["instance"]
        if not INSTANCE.fullmatch(id):
            raise _no_instance(id)
        return workflow, id

    async def _ask(
        self, workflow: StoredWorkflow, id: str, do: str, what: Any = None, *, status: int = 200
    ) -> Response:
        try:
            answer = await self._binding.ask(workflow, id, do, what)
        except InstanceRefused as refused:
            raise refusal_of(refused, id) from None
        return Response(bytes(answer) + b"\n", status, headers=HEADERS | {"content-type": "application/json"})


def _no_instance(id: str) -> Refused:
    return Refused(ApiCode.NOT_FOUND, f"there is no instance `{id[:100]}`", "list the instances of the workflow")


def refusal_of(refused: InstanceRefused, id: str) -> Refused:
    if refused.is_missing:
        return _no_instance(id)
    words = str(refused)
    if words.startswith("(instance.already_exists)"):
        return Refused(ApiCode.NAME_TAKEN, f"the instance `{id}` exists already", "choose another id")
    return bad_body(f"the instance refused: {words}", "its status may be another one by now")


def _shown(each: ListedInstance) -> InstanceAnswer:
    times = (each.started_at, each.ended_at, each.expires_at)
    made, changed = iso_time(each.created_at), iso_time(each.changed_at)
    return InstanceAnswer(
        each.name, each.status, made, changed, *(None if at is None else iso_time(at) for at in times)
    )
