"""d1: carries queries to databases. A database is a Durable Object of the class in database.mjs.

The class runs as a worker of the tenant that has nothing else in it, and that no route leads to. So queries have the
sandbox, the durability and the backup of objects. The JSON of queries and results is made and read in engines: both
sides belong to the tenant, so it passes through here unread.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from importlib import resources
from io import BytesIO

import msgspec

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.d1.databases import OBJECT_ID, Databases, StoredDatabase
from atoll.bindings.services import InnerRequest, Objects, ObjectTarget, Services
from atoll.errors import BindingRefused, CalleeFailed, InvalidArgument
from atoll.objects.store import ObjectKey
from atoll.wire.generated import Event
from atoll.workers import Limits, Module, ModuleKind, ScriptFormat, Version

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
NAME_HINT = "use up to 128 letters, digits, dots, dashes and _"
MAX_QUERY = 32 << 20
MAX_ANSWER = 48 << 20  # bytes; database.mjs bounds the characters
MAX_ERROR = 64 << 10
QUERY_MS = 30_000
SHARED = "d1_databases"  # the file of databases that nodes share
MODULE = "database.mjs"
MODULES = MODULE, "dump.mjs"


class D1Entry(msgspec.Struct, forbid_unknown_fields=True):
    database: str


def _target(database: StoredDatabase) -> ObjectTarget:
    return ObjectTarget(database.id, OBJECT_ID, "Database", is_sql=True)


class QueryFailed(Exception):
    """SQLite, or the class of databases, refused a query: the words of the error."""


class D1(Binding):
    kind = "d1"
    Entry = D1Entry

    def __init__(self, services: Services) -> None:
        self._services = services
        self.folder = services.settings.data
        alone = services.settings.data / "d1.db"
        self.databases = Databases(services.place_of(SHARED) if services.shares_objects else alone)
        if services.objects is not None:
            self.databases.on_gone = services.objects.delete_namespace
            others = services.objects.resolve
            services.objects.resolve = lambda key: self.resolve(key) or others(key)
        folder = resources.files("atoll.bindings.d1")
        self._modules = tuple(Module(name, ModuleKind.ESM, (folder / name).read_bytes()) for name in MODULES)
        self._versions: dict[str, Version] = {}  # by tenant

    @property
    def objects(self) -> Objects:
        if self._services.objects is None:
            raise BindingRefused("this node has no engines, and so no databases")
        return self._services.objects

    # --- deploys and tenants ---

    def claim(self, tenant: str, entry: D1Entry) -> str:
        if not NAME.fullmatch(entry.database):
            raise InvalidArgument(f"the database is named {entry.database!r:.80}: {NAME_HINT}")
        return entry.database

    async def prepare(self, tenant: str, resource: str) -> None:
        await self.databases.create(tenant, resource)

    async def exists(self, tenant: str, resource: str) -> bool:
        return self.databases.named(tenant, resource) is not None

    async def holdings(self, tenant: str) -> list[str]:
        return [each.name for each in self.databases.of_tenant(tenant)]

    async def usage(self, tenant: str) -> dict[str, int]:
        return {"d1_databases": self.databases.count(tenant)}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        self.databases.bound(tenant, most["d1_databases"])

    async def forget(self, tenant: str) -> None:
        for each in self.databases.of_tenant(tenant):
            await self.databases.delete(each, self.objects)
        self._versions.pop(tenant, None)

    async def close(self) -> None:
        await self.databases.close()

    # --- queries ---

    def resolve(self, key: ObjectKey) -> tuple[ObjectTarget, Version] | None:
        """The class of a database, for calls of another node."""
        found = self.databases.by_id(key.namespace) if key.id == OBJECT_ID else None
        return None if found is None else (_target(found), self._version(found.tenant))

    @op("d1.query")
    async def query(self, call: OpCall) -> Reply:
        if len(call.body) > MAX_QUERY:
            raise InvalidArgument(f"the statements and their parameters are larger than {MAX_QUERY >> 20} MB")
        scope = call.scope
        database = self.databases.named(scope.version.tenant, call.grant.resource)
        if database is None:
            raise BindingRefused(f"the database `{call.grant.resource}` was deleted")
        try:
            answer = await self.ask(database, call.body, scope.hops)
        except QueryFailed as error:
            return Reply({"error": str(error)})
        return Reply({"bookmark": self.objects.store.past.current(database.key)}, answer)

    async def ask(self, database: StoredDatabase, query: bytes, hops: int = 0) -> bytes:
        """The answer of a database in JSON."""
        head = b"POST http://d1/\nhost: d1\r\ncontent-length: %d\r\n" % len(query)
        event = int(Event.ENTRYPOINT)
        call = self._services.inner.start(
            InnerRequest(self._version(database.tenant), head, query, True, hops, event, None, _target(database))
        )
        whole, size = BytesIO(), 0
        try:
            status = (await call.response()).status
            most = MAX_ANSWER if status == 200 else MAX_ERROR
            while size <= most and (chunk := await call.read()):
                size += whole.write(chunk)
        except CalleeFailed as failed:
            raise QueryFailed(failed.failure.message.replace("Durable Object", "D1 DB", 1)) from None
        finally:
            call.close()
        if status != 200:
            raise QueryFailed(whole.getvalue()[:MAX_ERROR].decode(errors="replace"))
        if size > most:
            raise QueryFailed("The result is too large.")
        return whole.getvalue()

    def _version(self, tenant: str) -> Version:
        found = self._versions.get(tenant)
        if found is None:
            settings = self._services.settings
            limits = Limits(
                cpu_ms=min(QUERY_MS, settings.max_cpu_ms),
                wall_ms=min(2 * QUERY_MS, settings.max_wall_ms),
                memory_mb=settings.memory_mb,
            )
            found = self._versions[tenant] = Version(
                id=str(uuid.uuid4()),
                worker_id=str(uuid.uuid4()),
                worker_name="(d1)",  # no worker of a tenant can have this name
                tenant=tenant,
                modules=self._modules,
                main=MODULE,
                format=ScriptFormat.MODULE,
                limits=limits,
                compatibility_date="2025-09-01",
            )
        return found
