"""R2 below /client/v4: buckets, and objects as raw bytes. The native endpoints (admin.py) do the work."""

from __future__ import annotations

import time
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareRefusal, CloudflareTools, envelope, page_info, read_v4
from atoll.api.refusals import ApiCode, Refused
from atoll.api.routes import Route, caller_of
from atoll.bindings.r2.admin import R2Api, existing_place, iso_ms, told
from atoll.bindings.r2.ops import BUCKET_NAME, NAME_RULE
from atoll.bindings.r2.store import BucketPlace, ObjectStore

NO_BUCKET, TAKEN, NO_OBJECT, BAD_NAME = 10006, 10004, 10007, 10005


class WantedBucket(Struct):
    name: str


class CloudflareR2:
    def __init__(self, store: ObjectStore, tools: CloudflareTools) -> None:
        self._store = store
        self._audit = tools.audit
        self._native = R2Api(store, tools.audit)

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        many, one = f"{ACCOUNT}/r2/buckets", f"{ACCOUNT}/r2/buckets/{{bucket}}"
        value = f"{one}/objects/{{key:path}}"
        routes = [
            Route("GET", many, self.list, read, "The buckets of an account"),
            Route("POST", many, self.create, change, "Create a bucket"),
            Route("GET", one, self.show, read, "One bucket"),
            Route("DELETE", one, self.drop, change, "Delete an empty bucket"),
            Route("GET", value, self.get, read, "The content of an object"),
            Route("PUT", value, self.put, change, "Store the body as an object"),
            Route("DELETE", value, self.delete, change, "Delete an object"),
        ]
        return [told(route) for route in routes]

    async def _place(self, request: Request) -> BucketPlace:
        try:
            return await existing_place(self._store, request)
        except Refused as error:
            raise CloudflareRefusal(404, NO_BUCKET, f"The specified bucket does not exist: {error}") from None

    async def list(self, request: Request) -> Response:
        asked = request.query_params
        after, part = asked.get("start_after") or asked.get("cursor") or "", asked.get("name_contains") or ""
        _, size = page_info(request, 20, 1000)
        found = [each for each in await self._store.buckets(caller_of(request).tenant) if part in each.name > after]
        shown = [_bucket(each.name, each.created_at) for each in found[:size]]
        cursor = found[size - 1].name if len(found) > size else ""
        return envelope({"buckets": shown}, info={"per_page": size, "cursor": cursor})

    async def create(self, request: Request) -> Response:
        name, caller, now = (await read_v4(request, WantedBucket)).name, caller_of(request), time.time()
        if not BUCKET_NAME.fullmatch(name):
            raise CloudflareRefusal(400, BAD_NAME, f"`name` is {name!r:.80}", NAME_RULE)
        await self._audit.note(caller, "r2.create", name)
        if not await self._store.create(BucketPlace(caller.tenant, name), now):
            raise CloudflareRefusal(409, TAKEN, f"a bucket named `{name}` already exists")
        return envelope(_bucket(name, int(now * 1000)))

    async def show(self, request: Request) -> Response:
        place = await self._place(request)
        [found] = [each for each in await self._store.buckets(place.tenant) if each.name == place.bucket]
        return envelope(_bucket(found.name, found.created_at))

    async def drop(self, request: Request) -> Response:
        place = await self._place(request)
        await self._audit.note(caller_of(request), "r2.drop", place.bucket)
        await self._store.drop(place, force=False)
        return envelope({})

    async def get(self, request: Request) -> Response:
        await self._place(request)
        try:
            return await self._native.get(request)
        except Refused as error:
            if error.reason is not ApiCode.NOT_FOUND:
                raise
            raise CloudflareRefusal(404, NO_OBJECT, "The specified key does not exist.") from None

    async def put(self, request: Request) -> Response:
        await self._place(request)
        await self._native.put(request)
        return envelope({"key": request.path_params["key"]})

    async def delete(self, request: Request) -> Response:
        await self._place(request)
        await self._native.delete(request)
        return envelope({"key": request.path_params["key"]})


def _bucket(name: str, created_at: int) -> dict[str, Any]:
    facts = {"name": name, "creation_date": iso_ms(created_at), "storage_class": "Standard"}
    return facts | {"jurisdiction": "default"}
