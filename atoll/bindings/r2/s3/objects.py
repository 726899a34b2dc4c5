"""Operations of the S3 endpoint on objects and multipart uploads."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from starlette.responses import Response

from atoll.bindings.r2 import limits
from atoll.bindings.r2.conditions import ByteRange, range_of_header
from atoll.bindings.r2.http_objects import ObjectResponse, headers_of_http, http_date, receive_into, safe
from atoll.bindings.r2.limits import R2Refused
from atoll.bindings.r2.s3.asked import CLASS_NAMES, META, S3Request, meta_of, only_if_of
from atoll.bindings.r2.s3.documents import document, read_document
from atoll.bindings.r2.s3.faults import S3Fault
from atoll.bindings.r2.store import BucketPlace, ContentUpload, ObjectMeta, ObjectStore, StoredObject

PIECE = 256 << 10
# Parameters of a link that replace headers of the answer.
OVERRIDES = {
    "response-content-type": "content-type",
    "response-content-language": "content-language",
    "response-expires": "expires",
    "response-cache-control": "cache-control",
    "response-content-disposition": "content-disposition",
    "response-content-encoding": "content-encoding",
}


class S3Objects:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def get(self, asked: S3Request) -> Response:
        opened = await self._store.open(asked.place, asked.key_bytes)
        if opened is None:
            raise R2Refused(10007)
        stored, content = opened
        try:
            headers = object_headers(stored)
            headers |= {header: safe(asked.query[name]) for name, header in OVERRIDES.items() if name in asked.query}
            only_if = only_if_of(asked.headers)
            if not only_if.holds(stored.etag, stored.uploaded):
                return _not_held(asked, stored)
            ranged = asked.headers.get("range")
            wanted = ByteRange() if ranged is None else range_of_header(ranged)
            offset, length = wanted.within(stored.size)
            status = 200
            if wanted != ByteRange():
                if not length:
                    raise R2Refused(10039)
                status = 206
                headers["content-range"] = f"bytes {offset}-{offset + length - 1}/{stored.size}"
            return await ObjectResponse.begin(content.reader(offset, length), headers, status)
        finally:
            content.close()

    async def put(self, asked: S3Request) -> Response:
        key, meta, only_if = asked.key_bytes, meta_of(asked.headers), only_if_of(asked.headers)
        upload = await self._store.begin(asked.place, asked.size())
        try:
            await receive_into(upload, asked.body)
            stored = await upload.put(key, meta, only_if)
        finally:
            upload.close()
        if stored is None:
            raise R2Refused(10031)
        return Response(headers={"etag": f'"{stored.etag}"', "x-amz-version-id": stored.version})

    async def delete(self, asked: S3Request) -> Response:
        await self._store.delete(asked.place, [asked.key_bytes])
        return Response(status_code=204)

    async def delete_many(self, asked: S3Request) -> Response:
        entries = await read_document(await asked.document(), "Delete", "Object")
        if len(entries) > limits.MAX_KEYS:
            raise S3Fault("MalformedXML", f"At most {limits.MAX_KEYS} keys can be deleted at once.")
        keys = [limits.checked_key(entry.get("Key")) for entry in entries]
        await self._store.delete(asked.place, keys)
        return xml(document("DeleteResult", [("Deleted", [("Key", key.decode())]) for key in keys]))

    async def copy(self, asked: S3Request) -> Response:
        source, content, length = await self._source(asked)
        try:
            replaces = asked.headers.get("x-amz-metadata-directive", "COPY") == "REPLACE"
            meta = meta_of(asked.headers) if replaces else ObjectMeta(source.http, source.custom, source.storage_class)
            if (source.size > limits.MAX_UPLOAD) or length != source.size:
                raise R2Refused(100100)
            upload = await self._store.begin(asked.place, length, source=_source_of(asked))
            try:
                await _pour(content, upload)
                stored = await upload.put(asked.key_bytes, meta)
            finally:
                upload.close()
        finally:
            content.close()
        assert stored is not None
        return xml(document("CopyObjectResult", [("LastModified", iso(stored.uploaded)), ("ETag", f'"{stored.etag}"')]))

    async def _source(self, asked: S3Request) -> tuple[StoredObject, Any, int]:
        """The object that is copied, and a reader of it. Its bucket is of the same tenant, by construction."""
        name, key = _source_of(asked)
        if not asked.credential.may(name, False):
            raise S3Fault("AccessDenied", "The access key is not for the bucket that is copied from.")
        opened = await self._store.open(BucketPlace(asked.credential.tenant, name), limits.checked_key(key))
        if opened is None:
            raise R2Refused(10007)
        stored, content = opened
        try:
            if not only_if_of(asked.headers, "x-amz-copy-source-").holds(stored.etag, stored.uploaded):
                raise R2Refused(10031)
            offset, length = range_of_header(asked.headers.get("x-amz-copy-source-range", "")).within(stored.size)
            return stored, content.reader(offset, length), length
        finally:
            content.close()

    # Multipart uploads

    async def create_upload(self, asked: S3Request) -> Response:
        upload_id = await self._store.create_upload(asked.place, asked.key_bytes, meta_of(asked.headers))
        return xml(
            document(
                "InitiateMultipartUploadResult",
                [("Bucket", asked.bucket), ("Key", asked.key), ("UploadId", upload_id)],
            )
        )

    async def put_part(self, asked: S3Request) -> Response:
        number = limits.checked_part_number(asked.whole("partNumber", 0, 0, limits.MAX_PARTS + 1))
        upload_id, key = limits.checked_upload_id(asked.query.get("uploadId")), asked.key_bytes
        if "x-amz-copy-source" in asked.headers:
            return await self._copy_part(asked, key, upload_id, number)
        upload = await self._store.begin(asked.place, asked.size())
        try:
            await receive_into(upload, asked.body)
            part = await upload.put_part(upload_id, key, number)
        finally:
            upload.close()
        return Response(headers={"etag": f'"{part.etag}"'})

    async def _copy_part(self, asked: S3Request, key: bytes, upload_id: str, number: int) -> Response:
        _, content, length = await self._source(asked)
        try:
            upload = await self._store.begin(asked.place, limits.checked_size(length))
            try:
                await _pour(content, upload)
                part = await upload.put_part(upload_id, key, number)
            finally:
                upload.close()
        finally:
            content.close()
        return xml(document("CopyPartResult", [("LastModified", iso(part.uploaded)), ("ETag", f'"{part.etag}"')]))

    async def complete(self, asked: S3Request) -> Response:
        entries = await read_document(await asked.document(), "CompleteMultipartUpload", "Part")
        parts = []
        for entry in entries:
            number = entry.get("PartNumber", "")
            if not number.strip().isdecimal():
                raise S3Fault("MalformedXML", "A part has no PartNumber.")
            tag = entry.get("ETag", "").strip().strip('"')
            parts.append((limits.checked_part_number(int(number.strip()[:9])), tag))
        upload_id = limits.checked_upload_id(asked.query.get("uploadId"))
        stored = await self._store.complete(asked.place, asked.key_bytes, upload_id, parts)
        fields = [("Bucket", asked.bucket), ("Key", asked.key), ("ETag", f'"{stored.etag}"')]
        return xml(document("CompleteMultipartUploadResult", fields))

    async def abort(self, asked: S3Request) -> Response:
        upload_id = limits.checked_upload_id(asked.query.get("uploadId"))
        await self._store.abort(asked.place, asked.key_bytes, upload_id)
        return Response(status_code=204)

    async def parts(self, asked: S3Request) -> Response:
        upload_id = limits.checked_upload_id(asked.query.get("uploadId"))
        limit = asked.whole("max-parts", 1000, 1, 1000)
        after = asked.whole("part-number-marker", 0, 0, limits.MAX_PARTS)
        found = await self._store.parts(asked.place, asked.key_bytes, upload_id, after, limit + 1)
        shown, is_cut = found[:limit], len(found) > limit
        fields: list[tuple[str, Any]] = [
            ("Bucket", asked.bucket), ("Key", asked.key), ("UploadId", upload_id), ("PartNumberMarker", after),
            ("MaxParts", limit), ("IsTruncated", is_cut),
        ]  # fmt: skip
        if is_cut:
            fields.append(("NextPartNumberMarker", shown[-1].number))
        for part in shown:
            facts = [("PartNumber", part.number), ("LastModified", iso(part.uploaded)), ("ETag", f'"{part.etag}"')]
            fields.append(("Part", [*facts, ("Size", part.size)]))
        return xml(document("ListPartsResult", fields))


def _source_of(asked: S3Request) -> tuple[str, str]:
    """Bucket and key that are copied."""
    name, _, key = unquote(asked.headers.get("x-amz-copy-source", "")).removeprefix("/").partition("/")
    return name, key


async def _pour(content: Any, upload: ContentUpload) -> None:
    while piece := await content.read(PIECE):
        await upload.write(piece)


def _not_held(asked: S3Request, stored: StoredObject) -> Response:
    """304 if the client has the object already, else 412."""
    has_none_match = "if-none-match" in asked.headers or "if-modified-since" in asked.headers
    is_asked = "if-match" in asked.headers or "if-unmodified-since" in asked.headers
    if has_none_match and not is_asked:
        return Response(
            status_code=304, headers={"etag": f'"{stored.etag}"', "last-modified": http_date(stored.uploaded)}
        )
    raise R2Refused(10031)


def object_headers(stored: StoredObject) -> dict[str, str]:
    headers = {"content-type": "application/octet-stream", **headers_of_http(stored)}
    for name, value in limits.fields_of(stored.custom).items():
        field = f"{META}{name}".lower()
        if field.isascii() and all(char.isalnum() or char in "-_." for char in field):
            headers[field] = safe(value.encode().decode("latin-1"))
    headers |= {
        "etag": f'"{stored.etag}"',
        "last-modified": http_date(stored.uploaded),
        "accept-ranges": "bytes",
        "x-content-type-options": "nosniff",
    }
    if stored.storage_class != "Standard":
        headers["x-amz-storage-class"] = CLASS_NAMES[stored.storage_class]
    return headers


def xml(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/xml")


def iso(milliseconds: int) -> str:
    from atoll.bindings.r2.admin import iso_ms

    return iso_ms(milliseconds)
