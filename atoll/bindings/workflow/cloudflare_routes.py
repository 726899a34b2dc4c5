"""Workflows below /client/v4, as `wrangler workflows` and `wrangler deploy` use them."""

from __future__ import annotations

import time
import uuid
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.bodies import read_body
from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareRefusal, CloudflareTools, envelope, page_info, paged, read_v4
from atoll.api.routes import Route, caller_of
from atoll.bindings.workflow.admin import MAX_BODY
from atoll.bindings.workflow.entries import MAX_STEPS, Workflow
from atoll.bindings.workflow.index import STATUSES, ListedInstance, StoredWorkflow
from atoll.bindings.workflow.ops import INSTANCE, INSTANCE_HINT, InstanceRefused, Workflows
from atoll.clock import iso_time

NO_WORKFLOW, NO_INSTANCE, TAKEN, BAD = 10200, 10400, 10405, 10403
CHANGES = {"pause": "pause", "resume": "resume", "terminate": "terminate", "restart": "restart"}
MOST_AT_ONCE = 100
RUNNING = ("queued", "running", "paused", "waiting", "waitingForPause")


class SentLimits(Struct):
    steps: int | None = None


class SentWorkflow(Struct):
    script_name: str
    class_name: str
    limits: SentLimits | None = None
    schedules: list[Any] | None = None


class SentInstance(Struct):
    instance_id: str | None = None
    params: Any = None


class SentStep(Struct):
    name: str
    count: int = 1
    type: str = "step"


class SentStatus(Struct, omit_defaults=True):
    status: str
    from_: SentStep | None = msgspec.field(default=None, name="from")
    rollback: bool = False


class SentIds(Struct):
    instance_ids: list[str] = []
    ids: list[str] = []


class CloudflareWorkflows:
    def __init__(self, binding: Workflows, tools: CloudflareTools) -> None:
        self._binding = binding
        self._index = binding.index
        self._audit = tools.audit
        self._tools = tools

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        many, one = f"{ACCOUNT}/workflows", f"{ACCOUNT}/workflows/{{workflow}}"
        instances, instance = f"{one}/instances", f"{one}/instances/{{instance}}"
        return [
            Route("GET", many, self.list, read, "The workflows of an account"),
            Route("GET", one, self.show, read, "A workflow"),
            Route("PUT", one, self.put, change, "What a deploy says about a workflow that it has made"),
            Route("DELETE", one, self.delete, change, "Delete a workflow with all its instances"),
            Route("GET", f"{one}/versions", self.versions, read, "The version of a workflow"),
            Route("GET", instances, self.instances, read, "Instances, the newest first"),
            Route("GET", f"{instances}/", self.instances, read, "The same: wrangler looks there for the latest"),
            Route("POST", instances, self.create, change, "Create an instance"),
            Route("POST", f"{instances}/batch", self.create_many, change, "Create instances"),
            Route("POST", f"{instances}/batch/delete", self.delete_many, change, "Delete instances"),
            Route("PUT", f"{instances}/terminate", self.terminate_all, change, "End instances"),
            Route("GET", instance, self.describe, read, "An instance with its steps"),
            Route("DELETE", instance, self.forget, change, "Delete an instance"),
            Route("PATCH", f"{instance}/status", self.change, change, "Pause, resume, end or restart an instance"),
            Route("POST", f"{instance}/events/{{type}}", self.send, change, "Send an event to an instance"),
        ]

    # --- workflows ---

    def _find(self, request: Request) -> StoredWorkflow:
        name = request.path_params["workflow"]
        found = self._index.named(caller_of(request).tenant, name)
        if found is None:
            raise CloudflareRefusal(404, NO_WORKFLOW, f"the workflow `{name[:80]}` was not found")
        return found

    async def _shown(self, each: StoredWorkflow) -> dict[str, Any]:
        counts = await self._index.counts(each)
        return {
            "id": each.id, "name": each.name, "script_name": each.worker, "class_name": each.class_name,
            "created_on": iso_time(each.created_at), "modified_on": iso_time(each.changed_at),
            "triggered_on": None, "instances": {status: counts.get(status, 0) for status in STATUSES},
            "limits": {"steps": each.steps} if each.steps is not None else {},
        }  # fmt: skip

    async def list(self, request: Request) -> Response:
        search = request.query_params.get("search", "")
        found = [each for each in self._index.of_tenant(caller_of(request).tenant) if search in each.name]
        page, size = page_info(request, 100, 1000)
        shown = [await self._shown(each) for each in found[(page - 1) * size : page * size]]
        info = {"page": page, "per_page": size, "count": len(shown), "total_count": len(found)}
        return envelope(shown, info=info)

    async def show(self, request: Request) -> Response:
        return envelope(await self._shown(self._find(request)))

    async def put(self, request: Request) -> Response:
        """The upload has made the workflow already. A workflow without an upload has no code, and is refused."""
        wanted, name, caller = await read_v4(request, SentWorkflow), request.path_params["workflow"], caller_of(request)
        if wanted.schedules:
            raise CloudflareRefusal(400, 10208, "Atoll does not start instances on a schedule: use a cron trigger")
        found = self._index.named(caller.tenant, name)
        if found is None or found.worker != wanted.script_name or found.class_name != wanted.class_name:
            owner = f"the worker `{wanted.script_name[:80]}` declares no workflow `{name[:80]}` with this class"
            raise CloudflareRefusal(400, 10209, owner, "deploy it with a binding to the workflow")
        steps = wanted.limits.steps if wanted.limits is not None else None
        if steps is not None and not 1 <= steps <= MAX_STEPS:
            raise CloudflareRefusal(400, 10209, f"`limits.steps` is {steps}", f"use 1 to {MAX_STEPS}")
        if steps != found.steps:
            await self._tools.change(caller, found.worker, {"workflows": self._with_steps(name, steps)})
            found = self._index.named(caller.tenant, name) or found
        await self._audit.note(caller, "workflow.put", name)
        return envelope(await self._shown(found) | {"version_id": found.id, "is_deleted": 0})

    @staticmethod
    def _with_steps(name: str, steps: int | None) -> Any:
        def changed(present: Any) -> list[Workflow]:
            replace = msgspec.structs.replace
            return [replace(each, steps=steps) if each.name == name else each for each in present or ()]

        return changed

    async def delete(self, request: Request) -> Response:
        workflow = self._find(request)
        await self._audit.note(caller_of(request), "workflow.delete", workflow.name)
        await self._binding.trigger.delete(workflow)
        return envelope({"status": "ok", "success": True})

    async def versions(self, request: Request) -> Response:
        each = self._find(request)
        shown = {
            "id": each.id, "class_name": each.class_name, "workflow_id": each.id,
            "created_on": iso_time(each.created_at), "modified_on": iso_time(each.changed_at),
        }  # fmt: skip
        return await paged(request, [shown])

    # --- instances ---

    def _listed(self, workflow: StoredWorkflow, each: ListedInstance) -> dict[str, Any]:
        times = {"started_on": each.started_at, "ended_on": each.ended_at}
        return {
            "id": each.name, "workflow_id": workflow.id, "version_id": workflow.id, "status": each.status,
            "created_on": iso_time(each.created_at), "modified_on": iso_time(each.changed_at),
            **{name: None if at is None else iso_time(at) for name, at in times.items()},
        }  # fmt: skip

    async def instances(self, request: Request) -> Response:
        workflow, status = self._find(request), request.query_params.get("status", "")
        if status and status not in STATUSES:
            raise CloudflareRefusal(400, BAD, f"`status` is {status[:80]!r}")
        page, size = page_info(request, 50, 100)
        found, count = await self._index.page(workflow, status, (page - 1) * size, size)
        shown = [self._listed(workflow, each) for each in found]
        info = {"page": page, "per_page": size, "count": len(shown), "total_count": count}
        return envelope(shown, info=info)

    async def create(self, request: Request) -> Response:
        workflow = self._find(request)
        wanted = await read_v4(request, SentInstance, limit=MAX_BODY, empty=SentInstance())
        return envelope(await self._create(request, workflow, wanted))

    async def create_many(self, request: Request) -> Response:
        workflow, wanted = self._find(request), await read_v4(request, list[SentInstance], limit=MAX_BODY)
        _refuse_many(wanted)
        return envelope([await self._create(request, workflow, each) for each in wanted])

    async def _create(self, request: Request, workflow: StoredWorkflow, wanted: SentInstance) -> dict[str, Any]:
        id = wanted.instance_id or str(uuid.uuid4())
        if not INSTANCE.fullmatch(id):
            raise CloudflareRefusal(400, BAD, f"Workflow instance has invalid id: {INSTANCE_HINT}")
        params = _parsed(wanted.params)
        await self._audit.note(caller_of(request), "workflow.create", f"{workflow.name} {id}")
        what = {"workflow": workflow.name, "source": "api", "params": {} if params is None else params}
        made = msgspec.json.decode(await self._ask(workflow, id, "create", what))
        return {"id": id, "status": made["status"], "version_id": workflow.id, "workflow_id": workflow.id}

    async def delete_many(self, request: Request) -> Response:
        workflow, wanted = self._find(request), await read_v4(request, SentIds | list[str])  # type: ignore[arg-type]
        ids = wanted if isinstance(wanted, list) else [*wanted.instance_ids, *wanted.ids]
        _refuse_many(ids)
        await self._audit.note(caller_of(request), "workflow.forget", f"{workflow.name} {len(ids)}")
        for id in ids:
            await self._binding.delete(workflow, id)
        return envelope({"deleted": ids})

    async def terminate_all(self, request: Request) -> Response:
        """All that have not ended. wrangler asks again until none is left."""
        workflow = self._find(request)
        await self._audit.note(caller_of(request), "workflow.terminate", workflow.name)
        ended = 0
        for status in RUNNING:
            found, _ = await self._index.page(workflow, status, 0, MOST_AT_ONCE)
            for each in found:
                try:
                    await self._binding.ask(workflow, each.name, "terminate")
                    ended += 1
                except InstanceRefused:
                    pass  # it has ended by itself
        return envelope({"status": "ok" if ended == 0 else "already_running", "instancesTerminated": ended})

    async def describe(self, request: Request) -> Response:
        workflow, id = self._instance(request)
        return envelope(await self._ask(workflow, id, "show"))

    async def forget(self, request: Request) -> Response:
        workflow, id = self._instance(request)
        if self._index.find(workflow, id) is None:
            raise _no_instance(id)
        await self._audit.note(caller_of(request), "workflow.forget", f"{workflow.name} {id}")
        await self._binding.delete(workflow, id)
        return envelope({"success": True})

    async def change(self, request: Request) -> Response:
        workflow, id = self._instance(request)
        wanted = await read_v4(request, SentStatus)
        do = CHANGES.get(wanted.status)
        if do is None:
            raise CloudflareRefusal(400, BAD, f"`status` is {wanted.status[:80]!r}: use {', '.join(CHANGES)}")
        what: dict[str, Any] = {"rollback": True} if wanted.rollback else {}
        if wanted.from_ is not None:
            what["from"] = wanted.from_
        await self._audit.note(caller_of(request), f"workflow.{do}", f"{workflow.name} {id}")
        state = msgspec.json.decode(await self._ask(workflow, id, do, what))
        return envelope({"status": state["status"], "timestamp": iso_time(time.time() * 1000)})

    async def send(self, request: Request) -> Response:
        workflow, id = self._instance(request)
        raw = await read_body(request, MAX_BODY)
        try:
            payload = msgspec.json.decode(raw) if raw else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise CloudflareRefusal(400, BAD, "the payload of the event is not JSON") from None
        type = request.path_params["type"]
        await self._audit.note(caller_of(request), "workflow.sendEvent", f"{workflow.name} {id} {type[:100]}")
        await self._ask(workflow, id, "sendEvent", {"type": type, "payload": payload})
        return envelope(None)

    def _instance(self, request: Request) -> tuple[StoredWorkflow, str]:
        workflow, id = self._find(request), request.path_params["instance"]
        if not INSTANCE.fullmatch(id):
            raise _no_instance(id)
        return workflow, id

    async def _ask(self, workflow: StoredWorkflow, id: str, do: str, what: Any = None) -> msgspec.Raw:
        try:
            return await self._binding.ask(workflow, id, do, what)
        except InstanceRefused as refused:
            if refused.is_missing:
                raise _no_instance(id) from None
            raise CloudflareRefusal(400, TAKEN if "already_exists" in str(refused) else BAD, str(refused)) from None


def _no_instance(id: str) -> CloudflareRefusal:
    return CloudflareRefusal(404, NO_INSTANCE, f"(instance.not_found) Instance {id[:100]} does not exist")


def _refuse_many(items: list[Any]) -> None:
    if not 1 <= len(items) <= MOST_AT_ONCE:
        raise CloudflareRefusal(400, BAD, f"the body has {len(items)} instances: send 1 to {MOST_AT_ONCE}")


def _parsed(params: Any) -> Any:
    """wrangler sends the parameters as a text of JSON."""
    if not isinstance(params, str):
        return params
    try:
        return msgspec.json.decode(params.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return params
