"""durable_object: calls to objects by methods. Their fetch() is fetch.start with the binding and the object.

The id of an object proves its namespace, and the namespace is that of the grant. So a worker can reach only objects of
classes that it is bound to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from atoll.bindings.base import Binding, Later, OpCall, Reply, op
from atoll.bindings.durable_object.console import ObjectConsole
from atoll.bindings.durable_object.entries import CLASS_NAME
from atoll.bindings.durable_object.exports import Planned
from atoll.bindings.durable_object.facets import Facets
from atoll.bindings.durable_object.namespaces import Namespaces, ObjectNamespace, keys_of
from atoll.bindings.durable_object.planning import plan
from atoll.bindings.durable_object.trigger import ObjectMigrations
from atoll.bindings.passes import Passed, export_scope, object_scope
from atoll.bindings.pipe.ops import PipeBinding
from atoll.bindings.rpc.messages import MAX_NAME as MAX_METHOD
from atoll.bindings.rpc.messages import MAX_VALUE
from atoll.bindings.rpc.sessions import RpcEnds
from atoll.bindings.scope import CallScope
from atoll.bindings.service.method import MethodAnswer
from atoll.bindings.service.ops import NOT_PLAIN, checked_path
from atoll.bindings.service.target import zone_of
from atoll.bindings.services import InnerRequest, Objects, ObjectTarget, Services, ServiceWay
from atoll.bindings.triggers import BadTrigger
from atoll.errors import BindingRefused, CalleeFailed, InvalidArgument, ObjectFailure
from atoll.objects.store import ObjectKey
from atoll.wire.generated import Event
from atoll.workers import WORKER_NAME, Grant, Version

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

MAX_NAME = 16 << 10  # characters of the name of an object
SHARED = "object_classes"  # the file of namespaces that nodes share
RPC = int(Event.RPC)
EXPORTS_SINCE = "2025-11-17"


class ObjectEntry(msgspec.Struct, forbid_unknown_fields=True):
    class_name: str
    script_name: str = ""  # another worker of the same tenant; "": the worker itself


class DurableObjects(Binding):
    kind = "durable_object"
    Entry = ObjectEntry

    def __init__(self, services: Services, pipes: PipeBinding) -> None:
        self._services = services
        self._pipes = pipes
        alone = services.settings.data / "object_namespaces.db"
        self.namespaces = Namespaces(services.place_of(SHARED) if services.shares_objects else alone)
        self.trigger: ObjectMigrations = ObjectMigrations(self.namespaces, services.objects)
        self.facets = Facets(self.namespaces, lambda: self.objects, is_shared=services.shares_objects)
        self.console = ObjectConsole(services.inner, services.workers)
        self._most: dict[str, int | None] = {}
        if services.objects is not None:
            self.namespaces.on_gone = self.trigger.end
            others = services.objects.resolve
            services.objects.resolve = lambda key: self.resolve(key) or others(key)
            services.objects.refuses_new = self._refuses_new

    @property
    def objects(self) -> Objects:
        if self._services.objects is None:
            raise BindingRefused("this node has no Durable Objects")
        return self._services.objects

    # --- deploys ---

    def claim(self, tenant: str, entry: ObjectEntry) -> str:
        if not CLASS_NAME.fullmatch(entry.class_name):
            raise InvalidArgument(f"`class_name` is {entry.class_name[:80]!r}, which is not the name of a class")
        if entry.script_name and not WORKER_NAME.fullmatch(entry.script_name):
            raise InvalidArgument(f"`script_name` is {entry.script_name[:80]!r}, which is not a valid worker name")
        return msgspec.json.encode(entry).decode()

    def facts(self, version: Version, grant: Grant) -> Mapping[str, Any] | None:
        """The keys of the namespace, for ids. The namespace may be one that this deploy is about to create."""
        entry = entry_of(grant)
        if entry.script_name and entry.script_name != version.worker_name:
            found = self.trigger.lookup(version.tenant, entry.script_name, entry.class_name)
            return self._keys(version.tenant, found.id, found.secret) if found is not None else None
        try:
            planned = plan(self.namespaces, version).get(entry.class_name)
        except BadTrigger:
            return None  # the deploy is refused
        if planned is not None:
            return self._planned_keys(version, planned)
        moved = self.namespaces.resolve(version.tenant, version.worker_name, entry.class_name)
        return self._keys(version.tenant, moved.id, moved.secret) if moved is not None else None

    def own_facts(self, version: Version) -> Mapping[str, Any] | None:
        """What ctx.exports knows: the keys for stubs of own entry points, and for objects of own classes."""
        if not has_own_exports(version):
            return None
        try:
            classes = plan(self.namespaces, version)
        except BadTrigger:
            classes = {}
        key = self._services.passes.key(version.tenant, export_scope(version.worker_name))
        own = {"worker": version.worker_name, "key": key.hex()}
        if not classes:
            return own
        return {**own, "classes": {name: self._planned_keys(version, planned) for name, planned in classes.items()}}

    def _planned_keys(self, version: Version, planned: Planned) -> Mapping[str, Any]:
        """The keys of a namespace that exists, or that a deploy is about to create."""
        present = self.namespaces.get(planned.present)
        if present is not None:
            return self._keys(version.tenant, present.id, present.secret)
        where = version.tenant, version.worker_name, planned.created_as, planned.tag
        return self._keys(version.tenant, *self.namespaces.planned(*where))

    def _keys(self, tenant: str, namespace: str, secret: bytes) -> Mapping[str, Any]:
        key = self._services.passes.key(tenant, object_scope(namespace))
        return {"keys": keys_of(secret), "pass": [namespace, key.hex()]}

    async def holdings(self, tenant: str) -> list[str]:
        return [f"{each.worker} {each.class_name}" for each in self.namespaces.of_tenant(tenant)]

    async def usage(self, tenant: str) -> dict[str, int]:
        return {"durable_objects": self._count(tenant)}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        self._most[tenant] = most["durable_objects"]

    def _count(self, tenant: str) -> int:
        if self._services.objects is None:
            return 0
        size = self.objects.store.size
        return sum(size(each.id).objects for each in self.namespaces.of_tenant(tenant))

    def _refuses_new(self, namespace: str) -> str:
        """Why a namespace may not have one more object; "" if it may."""
        found = self.namespaces.get(namespace)
        most = self._most.get(found.tenant) if found is not None else None
        if found is None or most is None or self._count(found.tenant) < most:
            return ""
        return f"Durable Object quota reached ({most} of {most}): delete objects, or raise the quota `durable_objects`"

    # --- calls ---

    def resolve(self, key: ObjectKey) -> tuple[ObjectTarget, Version] | None:
        """The class of an object and the version that runs it, for its alarm."""
        namespace = self.namespaces.get(key.namespace)
        version = self._services.workers.find_worker(namespace.tenant, namespace.worker) if namespace else None
        if namespace is None or version is None:
            return None
        return ObjectTarget(namespace.id, key.id, namespace.class_name, namespace.is_sql), version

    def _namespace(self, version: Version, grant: Grant) -> ObjectNamespace:
        entry = entry_of(grant)
        worker = entry.script_name or version.worker_name
        found = self.trigger.lookup(version.tenant, worker, entry.class_name)
        if found is None:
            raise InvalidArgument(f"the worker `{worker}` has no Durable Object class {entry.class_name}")
        return found

    def target(self, version: Version, grant: Grant, id: object, name: object) -> tuple[ObjectTarget, Version]:
        """The object that a worker names, and the version that runs it."""
        return self._target(version, self._namespace(version, grant), id, name)

    def way(self, version: Version, binding: str, target: ObjectTarget) -> ServiceWay:
        """How later calls of the object go without Python. durable_object.js names it by the same text."""
        name = f"{binding} {target.id}".encode()
        zone = zone_of(version, self._services.settings.base_domain)
        return ServiceWay(name, target.class_name.encode(), b"", is_named=True, zone=zone)

    def passed(self, version: Version, passed: Passed) -> tuple[ObjectTarget, Version]:
        """The object of a stub that another worker has sent."""
        id, key, name = passed.content
        namespace = self.namespaces.get(id)
        if namespace is None or namespace.tenant != version.tenant:
            raise InvalidArgument("the class of this Durable Object was deleted")
        return self._target(version, namespace, key, name)

    def _target(
        self, version: Version, namespace: ObjectNamespace, id: object, name: object
    ) -> tuple[ObjectTarget, Version]:
        if not isinstance(id, str) or not namespace.owns(id):
            raise InvalidArgument("Durable Object ID is not valid for this namespace.")
        if name is not None and (not isinstance(name, str) or len(name) > MAX_NAME):
            raise InvalidArgument("the name of a Durable Object is too long")
        workers = self._services.workers
        callee = workers.find_worker(version.tenant, namespace.worker)
        if callee is None:
            how = workers.how_to_get(namespace.worker)
            raise InvalidArgument(f"the worker `{namespace.worker}` is not there: {how}")
        return ObjectTarget(namespace.id, id, namespace.class_name, namespace.is_sql, name), callee

    @op("durable_object.call")
    def call(self, call: OpCall) -> Later:
        found = self.target(call.scope.version, call.grant, call.meta.get("id"), call.meta.get("object"))
        return self.begin(call, *found, self.way(call.scope.version, call.grant.name, found[0]))

    def begin(self, call: OpCall, target: ObjectTarget, callee: Version, way: ServiceWay | None = None) -> Later:
        """Call a method of an object."""
        if len(call.body) > MAX_VALUE:
            raise InvalidArgument(f"the arguments are larger than {MAX_VALUE >> 20} MB")
        scope, meta = call.scope, call.meta
        method, path = meta.get("method"), meta.get("path")
        if not isinstance(method, str) or not 0 < len(method) <= MAX_METHOD:
            raise InvalidArgument("the name of a method is malformed")
        names = (method, *checked_path(path)) if path is not None else (method,)
        head = NOT_PLAIN.sub("?", f"RPC {target.class_name}.{method}").encode("ascii") + b"\n"
        session = scope.local(RpcEnds).open(meta.get("session"), is_used=meta.get("caps") is True)
        try:
            is_local = meta.get("caps") is True or meta.get("pipes") is not None
            aimed = target._replace(path=names, is_local=is_local)
            inner = self._services.inner.method(
                InnerRequest(callee, head, call.body, True, scope.hops, RPC, scope, aimed, session, way)
            )
        except BaseException:
            session.end()
            raise
        answer = ObjectMethodAnswer(inner, self._pipes, meta.get("pipes"), session)
        answer.object_id = target.id
        answer.begin(scope)
        return answer

    def facet(self, scope: CallScope, text: str) -> tuple[ObjectTarget, Version]:
        """The facet that an object names, and the version that runs it: that of the object."""
        return self.facets.target(scope, text), scope.version

    async def delete(self, namespace: ObjectNamespace, id: str) -> None:
        """Delete an object with all its facets."""
        await self.objects.delete(ObjectKey(namespace.id, id))
        await self.facets.delete(self.namespaces.facets_in(namespace.id, id))

    async def metrics(self) -> Sequence[Metric]:
        from atoll.bindings.durable_object.metrics import object_metrics

        if self._services.objects is None:
            return ()
        return object_metrics(self._services.objects, self.namespaces)

    async def close(self) -> None:
        await asyncio.gather(self.trigger.close(), return_exceptions=True)
        await self.namespaces.close()


class ObjectMethodAnswer(MethodAnswer):
    """The reply of a method of an object: every failure is an error with the properties that tell its kind."""

    __slots__ = ("object_id",)

    object_id: str

    def _described(self, failed: CalleeFailed) -> Reply | Exception:
        return described(failed, self._call.thrown, self.object_id)


def described(failed: CalleeFailed, more: Mapping[str, Any], id: str) -> Reply:
    failure = failed.failure
    told = failure if isinstance(failure, ObjectFailure) else ObjectFailure(failure.code, failure.message, object_id=id)
    name = failure.name or "Error"
    return Reply({"thrown": {"name": name, "message": failure.message, **more, "flags": told.flags}, "ended": True})


def has_own_exports(version: Version) -> bool:
    """Whether ctx.exports is there: web/worker/compatibility.js has the same rule."""
    flags = version.compatibility_flags
    if "disable_ctx_exports" in flags:
        return False
    date = version.compatibility_date
    return not date or date >= EXPORTS_SINCE or "enable_ctx_exports" in flags


def entry_of(grant: Grant) -> ObjectEntry:
    return msgspec.json.decode(grant.resource, type=ObjectEntry)
