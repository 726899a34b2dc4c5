"""Operations of the S3 endpoint on buckets, and lists."""

from __future__ import annotations

import time
from typing import Any, TypeAlias
from urllib.parse import quote

from starlette.responses import Response

from atoll.bindings.r2 import limits
from atoll.bindings.r2.ops import BUCKET_NAME, NAME_RULE
from atoll.bindings.r2.s3.asked import CLASS_NAMES, S3Request
from atoll.bindings.r2.s3.documents import document
from atoll.bindings.r2.s3.faults import S3Fault
from atoll.bindings.r2.s3.objects import iso, xml
from atoll.bindings.r2.store import ListPage, ListQuery, NoBucket, ObjectStore, StoredObject, after_prefix

Fields: TypeAlias = list[tuple[str, Any]]


class S3Buckets:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def list_buckets(self, asked: S3Request) -> Response:
        found = [
            each
            for each in await self._store.buckets(asked.credential.tenant)
            if asked.credential.may(each.name, False)
        ]
        buckets = [("Bucket", [("Name", each.name), ("CreationDate", iso(each.created_at))]) for each in found]
        owner = [("ID", asked.credential.tenant), ("DisplayName", asked.credential.tenant)]
        return xml(document("ListAllMyBucketsResult", [("Owner", owner), ("Buckets", buckets)]))

    async def head(self, asked: S3Request) -> Response:
        if not await self._store.exists(asked.place):
            raise NoBucket
        return Response(headers={"x-amz-bucket-region": "auto"})

    async def location(self, asked: S3Request) -> Response:
        await self.head(asked)
        return xml(document("LocationConstraint", []))

    async def create(self, asked: S3Request) -> Response:
        await asked.document()  # a region, which has no meaning here
        if not BUCKET_NAME.fullmatch(asked.bucket):
            raise S3Fault("InvalidBucketName", f"The specified bucket is not valid: {NAME_RULE}.")
        if not await self._store.create(asked.place, time.time()):
            raise S3Fault("BucketAlreadyOwnedByYou", "Your previous request to create the named bucket succeeded.")
        return Response(headers={"location": f"/{asked.bucket}"})

    async def delete(self, asked: S3Request) -> Response:
        await self._store.drop(asked.place)
        return Response(status_code=204)

    async def list(self, asked: S3Request) -> Response:
        """ListObjects, of both versions."""
        query = asked.query
        is_second = query.get("list-type") == "2"
        after = query.get("start-after" if is_second else "marker", "")
        token = query.get("continuation-token", "") if is_second else ""
        limit = asked.whole("max-keys", limits.MAX_KEYS, 0, limits.MAX_KEYS)
        delimiter = query.get("delimiter", "")
        marker = limits.checked_text(after)
        start = marker + b"\0" if after else b""
        if not is_second and delimiter and after.endswith(delimiter):  # a group of the page before
            start = after_prefix(marker) or b""
        wanted = ListQuery(
            limits.checked_text(query.get("prefix")),
            limits.checked_text(delimiter),
            max(start, limits.checked_cursor(token)),
            max(limit, 1),
        )
        page = await self._store.list(asked.place, wanted)
        if limit == 0:
            page = ListPage([], [], None)
        return xml(document("ListBucketResult", self._listed(asked, page, limit, is_second)))

    def _listed(self, asked: S3Request, page: ListPage, limit: int, is_second: bool) -> Fields:
        query = asked.query
        shown = (lambda text: quote(text, safe="/-_.~")) if query.get("encoding-type") == "url" else str
        fields: Fields = [
            ("Name", asked.bucket), ("Prefix", shown(query.get("prefix", ""))), ("MaxKeys", limit),
            ("IsTruncated", page.start is not None),
        ]  # fmt: skip
        for name, parameter in (("Delimiter", "delimiter"), ("StartAfter", "start-after"), ("Marker", "marker")):
            if parameter in query:
                fields.append((name, shown(query[parameter])))
        if "encoding-type" in query:
            fields.append(("EncodingType", "url"))
        keys = [each.key.decode() for each in page.objects]
        groups = [group.decode() for group in page.groups]
        if is_second:
            fields.append(("KeyCount", len(keys) + len(groups)))
            if "continuation-token" in query:
                fields.append(("ContinuationToken", query["continuation-token"]))
            if page.start is not None:
                fields.append(("NextContinuationToken", limits.cursor_of(page.start)))
        elif page.start is not None:
            fields.append(("NextMarker", shown(max([*keys, *groups], key=str.encode))))
        fields += [("Contents", _contents(each, shown(key))) for each, key in zip(page.objects, keys, strict=True)]
        return fields + [("CommonPrefixes", [("Prefix", shown(group))]) for group in groups]

    async def uploads(self, asked: S3Request) -> Response:
        """ListMultipartUploads."""
        limit = asked.whole("max-uploads", 1000, 1, 1000)
        after = (asked.query.get("key-marker", "").encode(), asked.query.get("upload-id-marker", "") or "\U0010ffff")
        if not after[0]:
            after = (b"", "")
        prefix = limits.checked_text(asked.query.get("prefix"))
        found = await self._store.uploads(asked.place, prefix, after, limit + 1)
        shown, is_cut = found[:limit], len(found) > limit
        fields: Fields = [
            ("Bucket", asked.bucket), ("Prefix", prefix.decode()), ("MaxUploads", limit), ("IsTruncated", is_cut),
        ]  # fmt: skip
        if is_cut:
            fields += [("NextKeyMarker", shown[-1].key.decode()), ("NextUploadIdMarker", shown[-1].id)]
        for each in shown:
            facts = [("Key", each.key.decode()), ("UploadId", each.id), ("Initiated", iso(each.created_at))]
            fields.append(("Upload", [*facts, ("StorageClass", CLASS_NAMES[each.storage_class])]))
        return xml(document("ListMultipartUploadsResult", fields))


def _contents(stored: StoredObject, key: str) -> Fields:
    return [
        ("Key", key), ("LastModified", iso(stored.uploaded)), ("ETag", f'"{stored.etag}"'), ("Size", stored.size),
        ("StorageClass", CLASS_NAMES[stored.storage_class]),
    ]  # fmt: skip
