"""R2 over HTTP: the buckets of a tenant and their objects. Contents are raw bytes, streamed in both directions."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.paging import name_page_of, name_query, page_answer
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import HEADERS, Query, Route, caller_of, json_answer, no_content, read_shape
from atoll.bindings.r2 import limits
from atoll.bindings.r2.http_objects import ObjectResponse, http_of_headers, receive_into
from atoll.bindings.r2.limits import R2Refused
from atoll.bindings.r2.ops import BUCKET_NAME, NAME_RULE, shown
from atoll.bindings.r2.store import (
    BucketFacts,
    BucketPlace,
    ContentUpload,
    ListQuery,
    ObjectMeta,
    ObjectStore,
    StoredObject,
)
from atoll.errors import InvalidArgument

RAW = "application/octet-stream"
# Content is untrusted: no browser may render it as a page of this host.
CONTENT_HEADERS = HEADERS | {"content-type": RAW, "content-disposition": "attachment"}
TEXT: dict[str, Any] = {"type": "string"}
FORCE = (Query("force", "`true` deletes its objects too", {"type": "boolean"}),)
PART_QUERY = (
    Query("upload_id", "The upload", TEXT),
    Query("part", "The number of the part, from 1", {"type": "integer", "minimum": 1, "maximum": limits.MAX_PARTS}),
)
PAGE = (
    Query("prefix", "Only keys with this prefix", TEXT),
    Query("delimiter", "Group keys up to this text", TEXT),
    Query("limit", "The most keys in a page", {"type": "integer", "minimum": 1, "maximum": limits.MAX_KEYS}),
    Query("cursor", "The `cursor` of the previous page", TEXT),
)
REASONS = {403: ApiCode.QUOTA, 404: ApiCode.NOT_FOUND, 409: ApiCode.NOT_EMPTY, 507: ApiCode.STORAGE}


class NewBucket(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class BucketAnswer(msgspec.Struct):
    name: str
    created_at: str
    objects: int
    bytes: int


class BucketsAnswer(msgspec.Struct, omit_defaults=True):
    buckets: list[BucketAnswer]
    cursor: str = ""


class ObjectAnswer(msgspec.Struct):
    key: str
    size: int
    etag: str
    version: str
    uploaded_at: str
    storage_class: str
    http: dict[str, Any]
    custom: dict[str, str]
    checksums: dict[str, str]


class ObjectsAnswer(msgspec.Struct, omit_defaults=True):
    objects: list[ObjectAnswer]
    prefixes: list[str] = []
    cursor: str = ""


class R2UploadAnswer(msgspec.Struct):
    upload_id: str


class R2PartAnswer(msgspec.Struct):
    part: int
    etag: str


class R2Completion(msgspec.Struct, forbid_unknown_fields=True):
    upload_id: str
    parts: list[R2PartAnswer]


class DeletedObjects(msgspec.Struct):
    deleted: int


class R2Api:
    def __init__(self, store: ObjectStore, audit: AuditLog, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        one, value = "/api/r2/{bucket}", "/api/r2/{bucket}/objects/{key:path}"
        facts, upload = "/api/r2/{bucket}/facts/{key:path}", "/api/r2/{bucket}/uploads/{key:path}"
        routes = [
            Route(
                "GET", "/api/r2", self.buckets, read, "The buckets of a tenant, by name", gives=BucketsAnswer,
                query=name_query(),
            ),
            Route("POST", "/api/r2", self.create, change, "Create a bucket", NewBucket, BucketAnswer, status=201),
            Route("GET", one, self.measure, read, "The size of a bucket", gives=BucketAnswer),
            Route("DELETE", one, self.drop, change, "Delete an empty bucket", status=204, query=FORCE),
            Route("GET", f"{one}/objects", self.list, read, "The objects of a bucket", gives=ObjectsAnswer, query=PAGE),
            Route("GET", value, self.get, read, "The content of an object, as raw bytes", media=RAW),
            Route("PUT", value, self.put, change, "Store the body as an object", gives=ObjectAnswer, raw=RAW),
            Route("DELETE", value, self.delete, change, "Delete an object", status=204),
            Route("GET", facts, self.facts, read, "An object without its content", gives=ObjectAnswer),
            Route("POST", f"{one}/delete", self.delete_many, change, "Delete many objects", list[str], DeletedObjects),
            Route("POST", upload, self.begin, change, "Begin an upload in parts", gives=R2UploadAnswer, status=201),
            Route(
                "PUT", upload, self.part, change, "Store the body as a part", gives=R2PartAnswer, raw=RAW,
                query=PART_QUERY,
            ),
            Route("DELETE", upload, self.abort, change, "Drop an upload", status=204, query=PART_QUERY[:1]),
            Route(
                "POST", "/api/r2/{bucket}/complete/{key:path}", self.complete, change, "Make an object of parts",
                R2Completion, ObjectAnswer,
            ),
        ]  # fmt: skip
        return [told(route) for route in routes]

    # Buckets

    async def buckets(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("buckets", self._listed(caller_of(request).tenant, after), limit)

    async def _listed(self, tenant: str, after: str) -> AsyncIterator[tuple[str, BucketAnswer]]:
        for facts in await self._store.buckets(tenant):
            if facts.name > after:
                yield facts.name, _bucket(facts)

    async def create(self, request: Request) -> Response:
        body = await read_shape(request, NewBucket)
        if not BUCKET_NAME.fullmatch(body.name):
            raise bad_body(f"`name` is {body.name!r:.80}", NAME_RULE)
        place = BucketPlace(caller_of(request).tenant, body.name)
        taken = Refused(ApiCode.NAME_TAKEN, f"a bucket named `{body.name}` already exists")
        if await self._store.exists(place):
            raise taken
        await self._audit.note(caller_of(request), "r2.create", body.name)
        now = self._clock()
        if not await self._store.create(place, now):
            raise taken
        answer = _bucket(BucketFacts(body.name, int(now * 1000), 0, 0))
        return json_answer(answer, status=201, headers={"location": f"/api/r2/{body.name}"})

    async def measure(self, request: Request) -> Response:
        place = await self._place(request)
        [facts] = [each for each in await self._store.buckets(place.tenant) if each.name == place.bucket]
        return json_answer(_bucket(facts))

    async def drop(self, request: Request) -> Response:
        place = await self._place(request)
        force = request.query_params.get("force", "") in ("true", "1")
        await self._audit.note(caller_of(request), "r2.drop", place.bucket)
        await self._store.drop(place, force=force)
        return no_content()

    # Objects

    async def list(self, request: Request) -> Response:
        asked = request.query_params
        limit = asked.get("limit")
        query = ListQuery(
            limits.checked_text(asked.get("prefix")),
            limits.checked_text(asked.get("delimiter")),
            limits.checked_cursor(asked.get("cursor")),
            limits.checked_limit(None if limit is None else int(limit) if limit.isdecimal() else limit),
            True,
            True,
        )
        page = await self._store.list(await self._place(request), query)
        prefixes = [group.decode("utf-8", "replace") for group in page.groups]
        cursor = "" if page.start is None else limits.cursor_of(page.start)
        return json_answer(ObjectsAnswer([_object(each) for each in page.objects], prefixes, cursor))

    async def facts(self, request: Request) -> Response:
        place, key = await self._place(request), limits.checked_key(request.path_params["key"])
        stored = await self._store.head(place, key)
        if stored is None:
            raise no_object(place, key)
        return json_answer(_object(stored))

    async def get(self, request: Request) -> Response:
        place, key = await self._place(request), limits.checked_key(request.path_params["key"])
        opened = await self._store.open(place, key)
        if opened is None:
            raise no_object(place, key)
        stored, content = opened
        headers = CONTENT_HEADERS | {"etag": f'"{stored.etag}"'}
        return await ObjectResponse.begin(content.reader(0, stored.size), headers)

    async def put(self, request: Request) -> Response:
        place, key = await self._place(request), limits.checked_key(request.path_params["key"])
        meta = meta_of_headers(request)
        await self._audit.note(caller_of(request), "r2.put", place.bucket, key.decode())
        upload = await self._store.begin(place, announced(request))
        try:
            stored = await _received(request, upload, key, meta)
        finally:
            upload.close()
        return json_answer(_object(stored))

    async def delete(self, request: Request) -> Response:
        place, key = await self._place(request), limits.checked_key(request.path_params["key"])
        await self._audit.note(caller_of(request), "r2.delete", place.bucket, key.decode())
        await self._store.delete(place, [key])
        return no_content()

    async def delete_many(self, request: Request) -> Response:
        place = await self._place(request)
        keys = limits.checked_keys(await read_shape(request, list[str], limit=2 << 20))
        await self._audit.note(caller_of(request), "r2.delete_many", place.bucket)
        return json_answer(DeletedObjects(await self._store.delete(place, keys)))

    # Uploads in parts

    async def begin(self, request: Request) -> Response:
        place, key = await self._place(request), limits.checked_key(request.path_params["key"])
        upload_id = await self._store.create_upload(place, key, meta_of_headers(request))
        return json_answer(R2UploadAnswer(upload_id), status=201)

    async def part(self, request: Request) -> Response:
        place, key = await self._place(request), limits.checked_key(request.path_params["key"])
        asked = request.query_params
        given = asked.get("part", "")
        number = limits.checked_part_number(int(given) if given.isdecimal() else given)
        upload = await self._store.begin(place, announced(request))
        try:
            await receive_into(upload, request.stream())
            part = await upload.put_part(limits.checked_upload_id(asked.get("upload_id")), key, number)
        finally:
            upload.close()
        return json_answer(R2PartAnswer(part.number, part.etag))

    async def abort(self, request: Request) -> Response:
        place, key = await self._place(request), limits.checked_key(request.path_params["key"])
        await self._store.abort(place, key, limits.checked_upload_id(request.query_params.get("upload_id")))
        return no_content()

    async def complete(self, request: Request) -> Response:
        place, key = await self._place(request), limits.checked_key(request.path_params["key"])
        body = await read_shape(request, R2Completion, limit=2 << 20)
        parts = [(limits.checked_part_number(each.part), each.etag) for each in body.parts]
        await self._audit.note(caller_of(request), "r2.put", place.bucket, key.decode())
        return json_answer(_object(await self._store.complete(place, key, body.upload_id, parts)))

    async def _place(self, request: Request) -> BucketPlace:
        return await existing_place(self._store, request)


async def existing_place(store: ObjectStore, request: Request) -> BucketPlace:
    """The bucket that a request names. Refused if the caller's tenant has none of that name."""
    place = BucketPlace(caller_of(request).tenant, request.path_params["bucket"])
    if not await store.exists(place):
        hint = "GET /api/r2 lists the buckets; POST /api/r2 creates one"
        raise Refused(ApiCode.NOT_FOUND, f"there is no bucket `{place.bucket[:80]}`", hint)
    return place


def told(route: Route) -> Route:
    """The route, with errors of R2 as errors of the API."""
    endpoint = route.endpoint

    async def run(request: Request) -> Response:
        try:
            return await endpoint(request)
        except R2Refused as error:
            hint = "add ?force=true to delete its objects too" if error.number == 10008 else ""
            raise Refused(REASONS.get(error.status, ApiCode.BAD_BODY), str(error), hint) from None
        except InvalidArgument as error:
            raise Refused(ApiCode.BAD_BODY, str(error)) from None

    run.__name__ = endpoint.__name__
    return Route(**{name: getattr(route, name) for name in Route.__slots__} | {"endpoint": run})


def announced(request: Request) -> int:
    """The length of a body that is stored."""
    length = request.headers.get("content-length", "0" if "transfer-encoding" not in request.headers else "")
    if not length.isdecimal():
        raise bad_body("the length of the body is not known", "send the header Content-Length")
    return limits.checked_size(int(length[:20]))


def meta_of_headers(request: Request) -> ObjectMeta:
    custom = request.headers.get("x-atoll-metadata")
    try:
        fields = None if custom is None else msgspec.json.decode(custom.encode("latin-1"))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise bad_body(
            "the header X-Atoll-Metadata is not JSON", 'write an object of strings, as {"by": "me"}'
        ) from None
    storage_class = limits.checked_storage_class(request.headers.get("x-atoll-storage-class"))
    return ObjectMeta(http_of_headers(request.headers), limits.checked_custom(fields), storage_class)


async def _received(request: Request, upload: ContentUpload, key: bytes, meta: ObjectMeta) -> StoredObject:
    await receive_into(upload, request.stream())
    stored = await upload.put(key, meta)
    assert stored is not None  # there is no condition
    return stored


def _bucket(facts: BucketFacts) -> BucketAnswer:
    return BucketAnswer(facts.name, iso_ms(facts.created_at), facts.objects, facts.bytes)


def _object(stored: StoredObject) -> ObjectAnswer:
    facts = shown(stored)
    return ObjectAnswer(
        facts["key"], stored.size, stored.etag, stored.version, iso_ms(stored.uploaded), stored.storage_class,
        facts["http"], facts["custom"], facts["checksums"],
    )  # fmt: skip


def no_object(place: BucketPlace, key: bytes) -> Refused:
    name = key.decode("utf-8", "replace")[:200]
    return Refused(
        ApiCode.NOT_FOUND, f"there is no object `{name}`", f"GET /api/r2/{place.bucket}/objects lists the objects"
    )


def iso_ms(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at / 1000)) + f".{at % 1000:03d}Z"
