"""Workers in the newer API, `workers/workers`: a worker is made first, its versions follow. Terraform and SDKs use it.

A worker of Atoll has a version at all times. One that is made here gets a version that answers 503, which is not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType, defstruct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Caller, Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareRefusal, envelope, paged, read_v4
from atoll.api.refusals import ApiCode, Refused, refuse_many
from atoll.api.routes import Route, caller_of
from atoll.control.checks.body import DeployBody
from atoll.control.cloudflare import views
from atoll.control.cloudflare.changes import Changes
from atoll.control.cloudflare.ids import hashed
from atoll.control.cloudflare.labels import MAX_LABELS, OBSERVABILITY, OF_WORKER, Labels, merged
from atoll.control.cloudflare.scripts import WORKER
from atoll.control.deploy.deployer import Deployer
from atoll.control.store.workers import Deployment
from atoll.manifests.every import cloudflare_parts
from atoll.public_address import PublicAddress

NO_VERSION = "no-version-yet"  # the tag of the version that stands in
STUB = 'export default { fetch() { return new Response("This worker has no version yet.\\n", { status: 503 }); } };'
MAX_TAGS = 100
ALWAYS_ON = "a worker of Atoll always answers on its own host: `subdomain.enabled` is kept and has no effect"


class WantedName(Struct):
    name: str


class WantedWorker(Struct):
    name: str | UnsetType = UNSET
    logpush: bool | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    observability: dict[str, Any] | UnsetType = UNSET
    subdomain: dict[str, Any] | UnsetType = UNSET
    previews_base_config: dict[str, Any] | None | UnsetType = UNSET


def of_workers() -> tuple[str, ...]:
    """Lists of other workers that belong to a worker in this API, and to a version elsewhere."""
    return tuple(part.of_worker for part in cloudflare_parts().values() if part.of_worker)


def find_worker(deployer: Deployer, request: Request) -> Deployment:
    """The worker of a path that has its name or its id."""
    wanted, caller = request.path_params["script"], caller_of(request)
    try:
        return deployer.find(wanted, caller)
    except Refused as error:
        if error.reason is not ApiCode.NO_WORKER:
            raise
    for each in deployer.all(caller.tenant) if len(wanted) == 32 else ():
        if hashed(each.id) == wanted:
            return each
    raise CloudflareRefusal(404, 10007, f"there is no worker {wanted[:80]!r} in this account")


class BetaWorkers:
    def __init__(
        self, deployer: Deployer, changes: Changes, labels: Labels, address: Callable[[], PublicAddress]
    ) -> None:
        self._deployer = deployer
        self._changes = changes
        self._labels = labels
        self._address = address
        self._lists = of_workers()
        self._references = [part.reference for part in cloudflare_parts().values() if part.reference]
        fields = [(name, list[WantedName] | UnsetType, UNSET) for name in self._lists]
        self._shape = defstruct("WantedWorkerAndLists", fields, bases=(WantedWorker,))

    def routes(self) -> list[Route]:
        read, deploy, many = Scope.READ, Scope.DEPLOY, f"{ACCOUNT}/workers/workers"
        return [
            Route("GET", many, self.list, read, "The workers of an account"),
            Route("POST", many, self.create, deploy, "Make a worker without a version"),
            Route("GET", WORKER, self.show, read, "A worker"),
            Route("PUT", WORKER, self.replace, deploy, "Replace the settings of a worker"),
            Route("PATCH", WORKER, self.change, deploy, "Change settings of a worker"),
            Route("DELETE", WORKER, self.delete, deploy, "Delete a worker"),
        ]

    async def list(self, request: Request) -> Response:
        return await paged(request, self._deployer.all(caller_of(request).tenant), self._shown)

    async def show(self, request: Request) -> Response:
        return envelope(self._shown(find_worker(self._deployer, request)))

    async def create(self, request: Request) -> Response:
        wanted, caller = await self._wanted(request), caller_of(request)
        if wanted.name is UNSET:
            raise CloudflareRefusal(400, 10026, "`name` is missing")
        body = DeployBody(name=wanted.name, script=STUB, tag=NO_VERSION, message="stands in until there is a version")
        made = await self._deployer.create(body, caller)
        return await self._set(made, wanted, {}, caller)

    async def replace(self, request: Request) -> Response:
        worker, wanted = find_worker(self._deployer, request), await self._wanted(request)
        for name in self._lists:
            if getattr(wanted, name) is UNSET:
                setattr(wanted, name, [])
        return await self._set(worker, wanted, {}, caller_of(request))

    async def change(self, request: Request) -> Response:
        worker, wanted = find_worker(self._deployer, request), await self._wanted(request)
        return await self._set(worker, wanted, self._labels.of(worker), caller_of(request))

    async def delete(self, request: Request) -> Response:
        worker = find_worker(self._deployer, request)
        await self._deployer.delete(worker.name, caller_of(request))
        return envelope({"id": hashed(worker.id)})

    async def _wanted(self, request: Request) -> WantedWorker:
        wanted = await read_v4(request, self._shape, limit=MAX_LABELS)
        assert isinstance(wanted, WantedWorker)
        self._labels.refuse_deep({name: getattr(wanted, name) for name in OF_WORKER})
        if wanted.tags is not UNSET:
            refuse_many("tags", wanted.tags, MAX_TAGS)
        return wanted

    async def _set(
        self, worker: Deployment, wanted: WantedWorker, labels: Mapping[str, Any], caller: Caller
    ) -> Response:
        if wanted.name is not UNSET and wanted.name != worker.name:
            text = f"the worker `{worker.name}` cannot be renamed: its name is its host"
            raise CloudflareRefusal(400, 10026, text, "make another worker and delete this one")
        lists = {name: getattr(wanted, name) for name in self._lists if getattr(wanted, name) is not UNSET}
        if lists:
            fields = {name: [{"service": each.name} for each in found] for name, found in lists.items()}
            worker = await self._changes.make(caller, worker.name, fields)
        given = {name: getattr(wanted, name) for name in OF_WORKER if getattr(wanted, name) is not UNSET}
        await self._labels.put(worker, {**labels, **given})
        told = [ALWAYS_ON] if (given.get("subdomain") or {}).get("enabled") is False else []
        return envelope(self._shown(worker), messages=told)

    def _shown(self, found: Deployment) -> dict[str, Any]:
        shown, labels = views.worker(found, self._deployer, self._address()), self._labels.of(found)
        domains = [{"id": hashed(f"domain {host}"), "hostname": host} for host in found.routes if "/" not in host]
        return shown | {
            "logpush": labels.get("logpush", False),
            "tags": labels.get("tags", []),
            "observability": merged(OBSERVABILITY, labels.get("observability")),
            "subdomain": merged(shown["subdomain"], labels.get("subdomain")),
            **{name: [{"name": each["service"]} for each in shown.get(name, ())] for name in self._lists},
            "previews_base_config": labels.get("previews_base_config"),
            "deployed_on": None if found.version.tag == NO_VERSION else shown["deployed_on"],
            "references": {
                "dispatch_namespace_outbounds": [],
                "domains": domains,
                "workers": [],
                **{name: [] for name in self._references},
            },
        }
