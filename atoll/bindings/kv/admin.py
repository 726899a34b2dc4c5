"""KV over HTTP: the namespaces of a tenant, single values, import and export.

A single value is sent as raw bytes. In bulk an entry is a Pair. A JSON array of pairs is stored as a whole or not at
all; any number of pairs can be sent as lines (NDJSON), which are stored as they arrive. An export has the same lines,
so it can be imported into another namespace.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.bodies import receive_body
from atoll.api.callers import Scope
from atoll.api.held import HeldResponse, room_of
from atoll.api.paging import name_page_of, name_query, page_answer
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import HEADERS, Query, Route, caller_of, json_answer, no_content, read_shape
from atoll.bindings.kv import limits
from atoll.bindings.kv.bulk import DeletedAnswer, KvBulk, WrittenAnswer, space_of
from atoll.bindings.kv.ops import NAME, shown
from atoll.bindings.kv.pairs import LINES, Pair
from atoll.bindings.kv.store import KVStore, Space, StoredValue, TooMuch

HELD_BYTES = 256 << 10  # a longer value counts as held until it is sent
# A value is untrusted: no browser may render it as a page of this host.
VALUE_HEADERS = HEADERS | {"content-type": "application/octet-stream", "content-disposition": "attachment"}
RAW = "application/octet-stream"
TEXT: dict[str, Any] = {"type": "string"}
PAGE = (
    Query("prefix", "Only keys with this prefix", TEXT),
    Query("limit", "The most keys in a page", {"type": "integer", "minimum": 1, "maximum": limits.MAX_KEYS}),
    Query("cursor", "The `cursor` of the previous page", TEXT),
)
PUT_QUERY = (
    Query("expiration", "Seconds since 1970", {"type": "integer"}),
    Query("expiration_ttl", "Seconds from now", {"type": "integer", "minimum": limits.MIN_TTL}),
    Query("metadata", "JSON", TEXT),
)


class NewNamespace(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class NamespaceAnswer(msgspec.Struct):
    name: str
    created_at: str


class NamespacesAnswer(msgspec.Struct, omit_defaults=True):
    namespaces: list[NamespaceAnswer]
    cursor: str = ""


class SizedNamespaceAnswer(msgspec.Struct):
    name: str
    created_at: str
    keys: int
    bytes: int


class KeysAnswer(msgspec.Struct, omit_defaults=True):
    keys: list[dict[str, Any]]
    cursor: str = ""


class KvApi:
    def __init__(self, store: KVStore, audit: AuditLog, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        one, value = "/api/kv/{namespace}", "/api/kv/{namespace}/values/{key:path}"
        gives, many = NamespaceAnswer, list[Pair]
        bulk = KvBulk(self._store, self._audit, clock=self._clock)
        return [
            Route(
                "GET", "/api/kv", self.namespaces, read, "The namespaces of a tenant, by name", gives=NamespacesAnswer,
                query=name_query(),
            ),
            Route(
                "POST", "/api/kv", self.create, change, "Create a namespace", takes=NewNamespace, gives=gives,
                status=201,
            ),
            Route("GET", one, self.measure, read, "The size of a namespace", gives=SizedNamespaceAnswer),
            Route("DELETE", one, self.drop, change, "Delete a namespace and all its entries", status=204),
            Route("GET", f"{one}/keys", self.keys, read, "The keys of a namespace", gives=KeysAnswer, query=PAGE),
            Route("GET", value, self.get, read, "A value, as raw bytes", media="application/octet-stream"),
            Route("PUT", value, self.put, change, "Store the body under a key", status=204, query=PUT_QUERY, raw=RAW),
            Route("DELETE", value, self.delete, change, "Delete a key", status=204),
            Route("POST", f"{one}/bulk", bulk.put, change, "Store many entries", takes=many, gives=WrittenAnswer),
            Route("POST", f"{one}/bulk/delete", bulk.delete, change, "Delete many keys", list[str], DeletedAnswer),
            Route("GET", f"{one}/export", bulk.export, read, "All entries, one per line", media=LINES),
        ]  # fmt: skip

    # Namespaces

    async def namespaces(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("namespaces", self._listed(caller_of(request).tenant, after), limit)

    async def _listed(self, tenant: str, after: str) -> AsyncIterator[tuple[str, NamespaceAnswer]]:
        for name, at in await self._store.namespaces(tenant):
            if name > after:
                yield name, NamespaceAnswer(name, iso_seconds(at))

    async def create(self, request: Request) -> Response:
        body = await read_shape(request, NewNamespace)
        if not NAME.fullmatch(body.name):
            raise bad_body(f"`name` is {body.name!r:.80}", "use up to 128 letters, digits, dots, dashes and _")
        now, space = self._clock(), Space(caller_of(request).tenant, body.name)
        taken = Refused(ApiCode.NAME_TAKEN, f"a namespace named `{body.name}` already exists")
        if await self._store.exists(space):
            raise taken
        await self._audit.note(caller_of(request), "kv.create", body.name)
        if not await self._store.create(space, now):
            raise taken
        answer = NamespaceAnswer(body.name, iso_seconds(now))
        return json_answer(answer, status=201, headers={"location": f"/api/kv/{body.name}"})

    async def measure(self, request: Request) -> Response:
        space = await space_of(self._store, request)
        size = await self._store.measure(space)
        found = await self._store.namespaces(space.tenant)
        [created_at] = [at for name, at in found if name == space.namespace]
        return json_answer(SizedNamespaceAnswer(space.namespace, iso_seconds(created_at), size.keys, size.bytes))

    async def drop(self, request: Request) -> Response:
        space = await space_of(self._store, request)
        await self._audit.note(caller_of(request), "kv.drop", space.namespace)
        await self._store.drop(space)
        return no_content()

    # Single values

    async def keys(self, request: Request) -> Response:
        asked = request.query_params
        page = await self._store.list(
            await space_of(self._store, request),
            limits.checked_prefix(asked.get("prefix")),
            limits.checked_cursor(asked.get("cursor")),
            limits.checked_limit(asked.get("limit")),
            self._clock(),
        )
        keys = [shown(*listed) for listed in page.keys]
        return json_answer(KeysAnswer(keys, "" if page.after is None else limits.cursor_of(page.after)))

    async def get(self, request: Request) -> Response:
        key = request.path_params["key"]
        space, wanted = await space_of(self._store, request), [limits.checked_key(key)]
        try:
            [entry] = await self._store.get(space, wanted, self._clock(), HELD_BYTES)
        except TooMuch:
            return await self._get_large(request, space, wanted)
        if entry is None:
            raise no_key(space, key)
        return Response(entry.value, headers=_value_headers(entry))

    async def _get_large(self, request: Request, space: Space, wanted: list[bytes]) -> Response:
        """Reserve room before the value is read: of many requests a few are held, and the others are refused."""
        room, tenant = room_of(request), caller_of(request).tenant
        room.take(tenant, limits.MAX_VALUE)
        try:
            [entry] = await self._store.get(space, wanted, self._clock())
            if entry is None:
                raise no_key(space, wanted[0].decode())
            headers = _value_headers(entry) | {"content-length": str(len(entry.value))}
            return HeldResponse(request, entry.value, headers, limits.MAX_VALUE)
        except BaseException:
            room.give_back(tenant, limits.MAX_VALUE)
            raise

    async def put(self, request: Request) -> Response:
        space, asked = await space_of(self._store, request), request.query_params
        key = limits.checked_key(request.path_params["key"])
        expires_at = limits.checked_expiry(asked.get("expiration_ttl"), asked.get("expiration"), self._clock())
        metadata = limits.checked_metadata(asked.get("metadata"))
        with await receive_body(request, limits.MAX_VALUE, "a value has at most 25 MiB") as body:
            await self._audit.note(caller_of(request), "kv.put", space.namespace, key.decode())
            await self._store.put(space, [(key, StoredValue(await body.read(), metadata, expires_at))])
        return no_content()

    async def delete(self, request: Request) -> Response:
        space, key = await space_of(self._store, request), limits.checked_key(request.path_params["key"])
        await self._audit.note(caller_of(request), "kv.delete", space.namespace, key.decode())
        await self._store.delete(space, [key])
        return no_content()


def _value_headers(entry: StoredValue) -> dict[str, str]:
    headers = dict(VALUE_HEADERS)
    if entry.expires_at is not None:
        headers["x-atoll-expiration"] = str(entry.expires_at)
    if entry.metadata is not None:
        headers["x-atoll-metadata"] = json.dumps(json.loads(entry.metadata))  # in ASCII
    return headers


def no_key(space: Space, key: str) -> Refused:
    return Refused(
        ApiCode.NOT_FOUND, f"there is no key `{key[:200]}`", f"GET /api/kv/{space.namespace}/keys lists the keys"
    )


def iso_seconds(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
