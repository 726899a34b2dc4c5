"""KV below /client/v4: namespaces, values and bulk. The native endpoints (admin.py, bulk.py) do the work."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.bodies import media_type
from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareRefusal, CloudflareTools, envelope, paged, read_v4
from atoll.api.multipart import FORM, read_parts
from atoll.api.refusals import ApiCode, Refused, refuse_many
from atoll.api.routes import Route, caller_of
from atoll.bindings.kv import limits
from atoll.bindings.kv.admin import KvApi, no_key
from atoll.bindings.kv.bulk import KvBulk
from atoll.bindings.kv.bulk import space_of as native_space_of
from atoll.bindings.kv.ops import NAME, shown
from atoll.bindings.kv.store import KVStore, Space, StoredValue, TooMuch

NO_NAMESPACE, NO_KEY, TAKEN = 10013, 10009, 10014
MAX_FORM = limits.MAX_VALUE + (64 << 10)
MAX_GOT = 4 << 20  # bytes of the values that one bulk get answers with


class WantedTitle(Struct):
    title: str


class WantedKeys(Struct):
    keys: list[str]
    type: str = "text"


class CloudflareKv:
    def __init__(self, store: KVStore, tools: CloudflareTools) -> None:
        self._store = store
        self._audit = tools.audit
        self._values = KvApi(store, tools.audit)
        self._bulk = KvBulk(store, tools.audit)

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        many = f"{ACCOUNT}/storage/kv/namespaces"
        one, value = f"{many}/{{namespace}}", f"{many}/{{namespace}}/values/{{key:path}}"
        return [
            Route("GET", many, self.list, read, "The namespaces of an account"),
            Route("POST", many, self.create, change, "Create a namespace"),
            Route("GET", one, self.show, read, "One namespace"),
            Route("PUT", one, self.rename, change, "Rename a namespace: refused, since the id is the name"),
            Route("DELETE", one, self.drop, change, "Delete a namespace and all its entries"),
            Route("GET", f"{one}/keys", self.keys, read, "The keys of a namespace"),
            Route("PUT", f"{one}/bulk", self.bulk_put, change, "Store many entries"),
            Route("DELETE", f"{one}/bulk", self.bulk_delete, change, "Delete many keys"),
            Route("POST", f"{one}/bulk/delete", self.bulk_delete, change, "Delete many keys"),
            Route("POST", f"{one}/bulk/get", self.bulk_get, read, "Many values"),
            Route("GET", f"{one}/metadata/{{key:path}}", self.metadata, read, "The metadata of a key"),
            Route("GET", value, self.get, read, "A value, as raw bytes"),
            Route("PUT", value, self.put, change, "Store a value"),
            Route("DELETE", value, self.delete, change, "Delete a key"),
        ]

    async def _space(self, request: Request) -> Space:
        try:
            return await native_space_of(self._store, request)
        except Refused as error:
            raise CloudflareRefusal(404, NO_NAMESPACE, str(error)) from None

    # Namespaces

    async def list(self, request: Request) -> Response:
        found = await self._store.namespaces(caller_of(request).tenant)
        return await paged(request, found, lambda each: namespace(each[0]))

    async def create(self, request: Request) -> Response:
        title = (await read_v4(request, WantedTitle)).title
        if not NAME.fullmatch(title):
            hint = "use up to 128 letters, digits, dots, dashes and _: here the title is also the id"
            raise CloudflareRefusal(400, 10026, f"`title` is {title!r:.80}", hint)
        space = Space(caller_of(request).tenant, title)
        await self._audit.note(caller_of(request), "kv.create", title)
        if not await self._store.create(space, time.time()):
            raise CloudflareRefusal(400, TAKEN, f"a namespace with the title `{title}` already exists")
        return envelope(namespace(title))

    async def show(self, request: Request) -> Response:
        return envelope(namespace((await self._space(request)).namespace))

    async def rename(self, request: Request) -> Response:
        space, title = await self._space(request), (await read_v4(request, WantedTitle)).title
        if title != space.namespace:
            text = "a namespace cannot be renamed here: its title is its id, and workers are bound to it"
            raise CloudflareRefusal(400, 10026, text, "create another one and copy the entries")
        return envelope(namespace(title))

    async def drop(self, request: Request) -> Response:
        await self._space(request)
        await self._values.drop(request)
        return envelope(None)

    # Values

    async def keys(self, request: Request) -> Response:
        asked = request.query_params
        page = await self._store.list(
            await self._space(request),
            limits.checked_prefix(asked.get("prefix")),
            limits.checked_cursor(asked.get("cursor") or None),
            limits.checked_limit(asked.get("limit")),
            time.time(),
        )
        cursor = "" if page.after is None else limits.cursor_of(page.after)
        return envelope([shown(*each) for each in page.keys], info={"count": len(page.keys), "cursor": cursor})

    async def get(self, request: Request) -> Response:
        await self._space(request)
        try:
            return await self._values.get(request)
        except Refused as error:
            if error.reason is ApiCode.NOT_FOUND:
                raise CloudflareRefusal(404, NO_KEY, "get: 'key not found'") from None
            raise

    async def metadata(self, request: Request) -> Response:
        space, key = await self._space(request), limits.checked_key(request.path_params["key"])
        [entry] = await self._store.get(space, [key], time.time(), limits.MAX_VALUE)
        if entry is None:
            raise CloudflareRefusal(404, NO_KEY, str(no_key(space, request.path_params["key"])))
        return envelope(None if entry.metadata is None else msgspec.Raw(entry.metadata.encode()))

    async def put(self, request: Request) -> Response:
        space, asked = await self._space(request), request.query_params
        if media_type(request) != FORM:
            await self._values.put(request)
            return envelope(None)
        key = limits.checked_key(request.path_params["key"])
        expires_at = limits.checked_expiry(asked.get("expiration_ttl"), asked.get("expiration"), time.time())
        parts = {part.name: part.content for part in await read_parts(request, MAX_FORM, 8)}
        if "value" not in parts:
            raise CloudflareRefusal(400, 10026, "the form has no part `value`")
        told = parts.get("metadata", b"")
        if len(told) > limits.MAX_METADATA:  # replacing what is not UTF-8 takes long
            raise CloudflareRefusal(413, 10027, f"`metadata` has more than {limits.MAX_METADATA} bytes")
        metadata = limits.checked_metadata(told.decode("utf-8", "replace") or None)
        await self._audit.note(caller_of(request), "kv.put", space.namespace, key.decode())
        await self._store.put(space, [(key, StoredValue(limits.checked_value(parts["value"]), metadata, expires_at))])
        return envelope(None)

    async def delete(self, request: Request) -> Response:
        await self._space(request)
        await self._values.delete(request)
        return envelope(None)

    async def bulk_put(self, request: Request) -> Response:
        await self._space(request)
        written = answered(await self._bulk.put(request))["written"]
        return envelope({"successful_key_count": written, "unsuccessful_keys": []})

    async def bulk_delete(self, request: Request) -> Response:
        await self._space(request)
        deleted = answered(await self._bulk.delete(request))["deleted"]
        return envelope({"successful_key_count": deleted, "unsuccessful_keys": []})

    async def bulk_get(self, request: Request) -> Response:
        space, wanted = await self._space(request), await read_v4(request, WantedKeys)
        refuse_many("keys", wanted.keys, limits.MAX_BULK_KEYS)
        keys = [limits.checked_key(key) for key in wanted.keys]
        try:
            found = await self._store.get(space, keys, time.time(), MAX_GOT)
        except TooMuch as error:
            raise CloudflareRefusal(413, 10027, str(error)) from None
        values: dict[str, Any] = {}
        for key, entry in zip(wanted.keys, found, strict=True):
            values[key] = None if entry is None else _value(entry, wanted.type)
        return envelope({"values": values})


def _value(entry: StoredValue, kind: str) -> dict[str, Any]:
    text = entry.value.decode("utf-8", "replace")
    shown: dict[str, Any] = {"value": text}
    if kind == "json":
        try:
            shown["value"] = msgspec.json.decode(entry.value, type=msgspec.Raw)
        except (msgspec.DecodeError, RecursionError):
            raise CloudflareRefusal(400, 10026, "a value is not JSON") from None
    if entry.metadata is not None:
        shown["metadata"] = msgspec.Raw(entry.metadata.encode())
    return shown


def namespace(name: str) -> dict[str, Any]:
    return {"id": name, "title": name, "supports_url_encoding": True}


def answered(response: Response) -> Mapping[str, Any]:
    """What a native endpoint answered with."""
    found: Mapping[str, Any] = msgspec.json.decode(response.body)
    return found
