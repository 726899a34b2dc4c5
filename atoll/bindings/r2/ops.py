"""R2 as ops: checks the arguments and calls the store. Content is transferred in pieces.

r2.head, r2.delete, r2.list
r2.get       the object and the first piece of its content; the reply has a number to read the rest with
r2.read      the next piece
r2.send      send the rest as the body of the worker's own response, past the engine
r2.put       store the body of this op, or begin an upload; the reply has its number
r2.write     a piece of an upload; the reply is the back-pressure. The last piece stores the object
r2.create, r2.part, r2.complete, r2.abort    multipart uploads; r2.part is like r2.put
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.r2 import limits
from atoll.bindings.r2.conditions import read_only_if, read_range
from atoll.bindings.r2.credentials import Credentials
from atoll.bindings.r2.limits import R2Refused
from atoll.bindings.r2.store import (
    BucketPlace,
    Checksum,
    ContentUpload,
    ListQuery,
    ObjectMeta,
    ObjectStore,
    R2Bound,
    StoredObject,
)
from atoll.bindings.r2.transfers import PIECE, WHOLE, Download, Upload
from atoll.errors import BindingRefused, InvalidArgument, StorageFailed

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from atoll.bindings.r2.around.parts import Around

BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
NAME_RULE = "use 3 to 63 lower-case letters, digits and dashes, not a dash at either end"
FIRST = 16 << 10  # bytes of the first, if there are more: most workers pass the rest on without a look at it
MAX_WRITE = 4 << 20  # bytes of one piece of an upload
HEX = re.compile(r"[0-9a-f]*")

R2Op: TypeAlias = Callable[["R2", OpCall], Coroutine[Any, Any, Reply]]


def named(method: str) -> Callable[[R2Op], R2Op]:
    """Raise errors with Cloudflare's texts: `put: … (10020)`."""

    def wrap(handler: R2Op) -> R2Op:
        @wraps(handler)
        async def run(self: R2, call: OpCall) -> Reply:
            try:
                return await handler(self, call)
            except R2Refused as error:
                raise BindingRefused(f"{_method(call, method)}: {error}") from None
            except StorageFailed as error:
                raise StorageFailed(f"{_method(call, method)}: {error} (19030)") from None

        return run

    return wrap


def _method(call: OpCall, method: str) -> str:
    return "uploadPart" if call.meta.get("isPart") is True else method


class R2Entry(msgspec.Struct, forbid_unknown_fields=True):
    bucket: str


class R2(Binding):
    kind = "r2"
    Entry = R2Entry

    def __init__(
        self,
        store: ObjectStore,
        credentials: Credentials,
        around: Around,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.credentials = credentials
        self.around = around
        self._clock = clock

    def claim(self, tenant: str, entry: R2Entry) -> str:
        if not BUCKET_NAME.fullmatch(entry.bucket):
            raise InvalidArgument(f"the bucket is named {entry.bucket!r:.80}: {NAME_RULE}")
        return entry.bucket

    async def prepare(self, tenant: str, resource: str) -> None:
        await self.store.create(BucketPlace(tenant, resource), self._clock())

    async def exists(self, tenant: str, resource: str) -> bool:
        return await self.store.exists(BucketPlace(tenant, resource))

    async def holdings(self, tenant: str) -> list[str]:
        return [bucket.name for bucket in await self.store.buckets(tenant)]

    async def usage(self, tenant: str) -> dict[str, int]:
        total = await self.store.total(tenant)
        return {
            "r2_buckets": len(await self.store.buckets(tenant)),
            "r2_objects": total.objects,
            "r2_bytes": total.bytes,
        }

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        self.store.bound(tenant, R2Bound(most["r2_buckets"], most["r2_objects"], most["r2_bytes"]))

    async def forget(self, tenant: str) -> None:
        await self.credentials.forget(tenant)
        await self.around.notifications.forget(tenant)

    async def seal_anew(self) -> None:
        await self.credentials.seal_anew()

    async def metrics(self) -> Sequence[Metric]:
        from atoll.bindings.r2.metrics import r2_metrics

        return await r2_metrics(self.store)

    async def close(self) -> None:
        await self.around.close()
        await self.store.close()

    # Reading

    @op("r2.head")
    @named("head")
    async def head(self, call: OpCall) -> Reply:
        found = await self.store.head(place_of(call), limits.checked_key(call.meta.get("key")))
        return Reply({"found": False} if found is None else {"found": True, "object": shown(found)})

    @op("r2.get")
    @named("get")
    async def get(self, call: OpCall) -> Reply:
        meta = call.meta
        key, only_if = limits.checked_key(meta.get("key")), read_only_if(meta.get("onlyIf"))
        wanted = read_range(meta.get("range"))
        opened = await self.store.open(place_of(call), key)
        if opened is None:
            return Reply({"found": False})
        stored, content = opened
        try:
            answer: dict[str, Any] = {"found": True, "object": shown(stored)}
            if not only_if.holds(stored.etag, stored.uploaded):
                return Reply(answer)
            offset, length = wanted.within(stored.size)
            answer["range"] = {"offset": offset, "length": length}
            reader = content.reader(offset, length)
        finally:
            content.close()
        try:
            piece = await reader.read(PIECE if length <= PIECE else FIRST)
            if not reader.left:
                return Reply(answer, piece)
        except BaseException:
            reader.close()
            raise
        answer["reader"] = call.scope.keep(Download(reader))
        answer["whole"] = length <= WHOLE and reader.left_in_file > 0
        return Reply(answer, piece)

    @op("r2.read", free=True)
    @named("get")
    async def read(self, call: OpCall) -> Reply:
        """The next piece of a content, whose length the worker knows."""
        number = call.meta.get("reader")
        if call.meta.get("cancel") is True:
            call.scope.release(number)
            return Reply()
        download = call.scope.find(number, Download)
        piece = await (download.read_whole() if call.meta.get("whole") is True else download.read(PIECE))
        if not download.left:
            call.scope.release(number)
        return Reply({}, piece)

    @op("r2.send", free=True)
    @named("get")
    async def send(self, call: OpCall) -> Reply:
        number, response = call.meta.get("reader"), call.scope.response
        download = call.scope.find(number, Download)
        try:
            if response is not None and await response.send(call.body):
                await download.send(response)
        finally:
            call.scope.release(number)
        return Reply()

    @op("r2.list")
    @named("list")
    async def list(self, call: OpCall) -> Reply:
        """A page, as JSON in the body."""
        meta = call.meta
        start_after = limits.checked_text(meta.get("startAfter"))
        include = meta.get("include")
        names = include if isinstance(include, list) else []
        query = ListQuery(
            prefix=limits.checked_text(meta.get("prefix")),
            delimiter=limits.checked_text(meta.get("delimiter")),
            start=max(limits.checked_cursor(meta.get("cursor")), start_after + b"\0" if start_after else b""),
            limit=limits.checked_limit(meta.get("limit")),
            with_http="httpMetadata" in names,
            with_custom="customMetadata" in names,
        )
        page = await self.store.list(place_of(call), query)
        answer = {
            "objects": [shown(each) for each in page.objects],
            "groups": [group.decode("utf-8", "replace") for group in page.groups],
        }
        cursor = None if page.start is None else limits.cursor_of(page.start)
        return Reply({"cursor": cursor}, msgspec.json.encode(answer))

    # Writing

    @op("r2.put")
    @named("put")
    async def put(self, call: OpCall) -> Reply:
        meta = call.meta
        key, object_meta = limits.checked_key(meta.get("key")), meta_of(call)
        only_if, checksum = read_only_if(meta.get("onlyIf")), checksum_of(meta.get("hash"))

        async def finish(content: ContentUpload) -> Reply:
            stored = await content.put(key, object_meta, only_if)
            return Reply({"object": None if stored is None else shown(stored)})

        return await self._begin(call, checksum, finish)

    @op("r2.part")
    @named("uploadPart")
    async def part(self, call: OpCall) -> Reply:
        meta = call.meta
        key, upload_id = limits.checked_key(meta.get("key")), limits.checked_upload_id(meta.get("uploadId"))
        number = limits.checked_part_number(meta.get("number"))

        async def finish(content: ContentUpload) -> Reply:
            part = await content.put_part(upload_id, key, number)
            return Reply({"etag": part.etag})

        return await self._begin(call, None, finish)

    async def _begin(
        self, call: OpCall, checksum: Checksum | None, finish: Callable[[ContentUpload], Coroutine[Any, Any, Reply]]
    ) -> Reply:
        """Store the body of the op, or begin an upload of the length in its meta.

        With `divert` its content is the request body, which is taken past the engine: `before` is how much of it the
        worker gets and writes itself.
        """
        length = call.meta.get("length")
        size = limits.checked_size(len(call.body) if length is None else length)
        upload = Upload(await self.store.begin(place_of(call), size, checksum), finish)
        if length is not None:
            answer = {"upload": call.scope.keep(upload)}
            if call.meta.get("divert") is True and call.scope.request is not None:
                before = call.scope.request.divert()
                if before is not None:
                    answer["before"] = before
            return Reply(answer)
        try:
            return await upload.finish(call.body)
        finally:
            upload.close()

    @op("r2.write", free=True)
    @named("put")
    async def write(self, call: OpCall) -> Reply:
        """The next piece of an upload; `ended` marks the last, `cancel` a broken one. After `rest` the diverted request
        body follows."""
        number = call.meta.get("upload")
        upload = call.scope.find(number, Upload)
        if call.meta.get("cancel") is True:
            call.scope.release(number)
            return Reply()
        try:
            if len(call.body) > MAX_WRITE:
                raise InvalidArgument("a piece of the upload is too long")
            request = call.scope.request
            if call.meta.get("rest") is True and request is not None:
                reply = await upload.finish_with(call.body, request)
            elif call.meta.get("ended") is True:
                reply = await upload.finish(call.body)
            else:
                await upload.write(call.body)
                return Reply()
        except BaseException:
            call.scope.release(number)
            raise
        call.scope.release(number)
        return reply

    @op("r2.delete")
    @named("delete")
    async def delete(self, call: OpCall) -> Reply:
        """Delete some keys. A missing key is not an error."""
        await self.store.delete(place_of(call), limits.checked_keys(call.meta.get("keys")))
        return Reply()

    # Multipart uploads

    @op("r2.create")
    @named("createMultipartUpload")
    async def create(self, call: OpCall) -> Reply:
        key = limits.checked_key(call.meta.get("key"))
        return Reply({"uploadId": await self.store.create_upload(place_of(call), key, meta_of(call))})

    @op("r2.complete")
    @named("completeMultipartUpload")
    async def complete(self, call: OpCall) -> Reply:
        meta = call.meta
        key, upload_id = limits.checked_key(meta.get("key")), limits.checked_upload_id(meta.get("uploadId"))
        parts = meta.get("parts")
        if not isinstance(parts, list) or len(parts) > limits.MAX_PARTS:
            raise R2Refused(10048)
        wanted = []
        for part in parts:
            if not (isinstance(part, list) and len(part) == 2 and isinstance(part[1], str)):
                raise InvalidArgument("a part must have a partNumber and an etag")
            wanted.append((limits.checked_part_number(part[0]), part[1]))
        return Reply({"object": shown(await self.store.complete(place_of(call), key, upload_id, wanted))})

    @op("r2.abort")
    @named("abortMultipartUpload")
    async def abort(self, call: OpCall) -> Reply:
        key = limits.checked_key(call.meta.get("key"))
        await self.store.abort(place_of(call), key, limits.checked_upload_id(call.meta.get("uploadId")))
        return Reply()


def place_of(call: OpCall) -> BucketPlace:
    return BucketPlace(call.scope.version.tenant, call.grant.resource)


def meta_of(call: OpCall) -> ObjectMeta:
    meta = call.meta
    return ObjectMeta(
        limits.checked_http(meta.get("http")),
        limits.checked_custom(meta.get("custom")),
        limits.checked_storage_class(meta.get("storageClass")),
    )


def checksum_of(raw: object) -> Checksum | None:
    if raw is None:
        return None
    name, digest = raw if isinstance(raw, list) and len(raw) == 2 else ("", "")
    if not (isinstance(name, str) and isinstance(digest, str) and name in limits.DIGESTS and HEX.fullmatch(digest)):
        raise InvalidArgument("the hash is malformed")
    return Checksum(name, digest)


def shown(stored: StoredObject) -> dict[str, Any]:
    """An object as the JavaScript half reads it."""
    return {
        "key": stored.key.decode("utf-8", "replace"),
        "version": stored.version,
        "size": stored.size,
        "etag": stored.etag,
        "uploaded": stored.uploaded,
        "storageClass": stored.storage_class,
        "checksums": limits.fields_of(stored.checksums),
        "http": limits.fields_of(stored.http),
        "custom": limits.fields_of(stored.custom),
    }
