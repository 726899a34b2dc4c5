"""Contents in a bucket of the service, each an object that is written once and named by its number.

    <prefix><folder>/<xx>/<number>  a content, or a part of one
    <prefix><folder>/owner          which node writes here

The folder is a random name in the index, so that nodes may share a bucket. A copy of the index, restored from a backup,
has the same folder. Two nodes that delete each other's garbage would lose data, so only the one that `owner` names
writes and deletes.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import re
from collections.abc import AsyncIterator, Callable, Sequence
from xml.sax.saxutils import escape

from atoll.bindings.r2.service.client import Payload, ServiceClient, ServiceReply
from atoll.egress.exchange import ServerExchange

AT_ONCE = 8  # deletions in progress
OWN = ""  # the tenant of the node's own requests: no tenant has this name
KEYS = re.compile(rb"<Key>([^<]*)</Key>")
NEXT = re.compile(rb"<NextContinuationToken>([^<]*)</NextContinuationToken>")
UPLOAD_ID = re.compile(rb"<UploadId>([^<]+)</UploadId>")
UPLOAD = re.compile(rb"<Upload>((?:[^<]|<(?!/?Upload>))*)</Upload>")


class ServiceContents:
    def __init__(self, client: ServiceClient, folder: str, owner: Callable[[], bytes]) -> None:
        self._client = client
        self._folder = folder
        self._owner = owner  # the text by which whoever writes here knows the contents as its own
        self._is_owner = False
        self._claiming = asyncio.Lock()

    @property
    def keep_seconds(self) -> int:
        return self._client.settings.keep_seconds

    def close(self) -> None:
        self._client.close()

    # Who writes here

    async def claim(self) -> None:
        """Make sure that this node may write and delete. StorageFailed if the contents belong to another node."""
        if self._is_owner:
            return
        async with self._claiming:
            if not self._is_owner:
                await self._claim()

    async def _claim(self) -> None:
        own = self._owner()
        name = f"{self._folder}/owner"
        found = await self._client.call(OWN, "GET", name)
        if found.status == 404 and found.code in ("NoSuchKey", "404"):
            found = await self._done("PUT", name, payload=payload_of(own))
        elif found.status != 200:
            raise self._client.refusal(f"GET {name}", found)
        elif found.body != own:
            raise self._client.failure(
                "the contents of R2 belong to another node: this one can read them, and cannot change anything",
                f"the object {name} is of another node, perhaps the one that this data folder is a copy of. If that"
                " node will never run again, delete the object",
            )
        self._is_owner = True

    # Writing

    async def put(self, tenant: str, number: int, payload: Payload) -> None:
        await self.claim()
        await self._done("PUT", self._name(number), payload=payload, tenant=tenant)

    async def begin_parts(self, tenant: str, number: int) -> str:
        """Begin an upload in parts, for a content that is larger than one part. Returns its id."""
        await self.claim()
        reply = await self._done("POST", self._name(number), [("uploads", "")], tenant=tenant)
        found = UPLOAD_ID.search(reply.body)
        if found is None:
            raise self._client.refusal("POST ?uploads", reply)
        return html.unescape(found[1].decode())

    async def put_part(self, tenant: str, number: int, upload: str, part: int, payload: Payload) -> str:
        """Store a part, counted from 1. Returns its etag."""
        query = [("partNumber", str(part)), ("uploadId", upload)]
        reply = await self._done("PUT", self._name(number), query, payload, tenant)
        return reply.headers.get("etag", "")

    async def finish_parts(self, tenant: str, number: int, upload: str, etags: Sequence[str], size: int) -> None:
        name = self._name(number)
        parts = "".join(
            f"<Part><PartNumber>{part}</PartNumber><ETag>{escape(etag)}</ETag></Part>"
            for part, etag in enumerate(etags, 1)
        )
        body = payload_of(f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode())
        reply = await self._client.call(tenant, "POST", name, [("uploadId", upload)], body)
        if reply.status == 200 and b"<Error>" not in reply.body:  # the status is sent before the work is done
            return
        if reply.status == 404:  # an earlier attempt may have done it, and its answer was lost
            head = await self._client.call(tenant, "HEAD", name)
            if head.status == 200 and head.headers.get("content-length") == str(size):
                return
        raise self._client.refusal(f"POST {name}?uploadId", reply)

    async def drop_parts(self, number: int) -> None:
        """Abort every unfinished upload of a content."""
        name = self._name(number)
        query = [("prefix", self._client.settings.prefix + name), ("uploads", "")]
        reply = await self._client.call(OWN, "GET", "", query)
        if reply.code in ("NoSuchUpload", "NotImplemented"):  # the answers of some services if there are none
            return
        if reply.status != 200:
            raise self._client.refusal("GET ?uploads", reply)
        for upload in UPLOAD.findall(reply.body):
            found = UPLOAD_ID.search(upload)
            if found is not None and name.encode() in upload:
                reply = await self._client.call(OWN, "DELETE", name, [("uploadId", html.unescape(found[1].decode()))])
                if reply.status not in (200, 204, 404):
                    raise self._client.refusal(f"DELETE {name}?uploadId", reply)

    # Reading

    async def stream(self, tenant: str, number: int, start: int, end: int) -> ServerExchange:
        return await self._client.stream(tenant, self._name(number), start, end - 1)

    # Garbage

    async def remove(self, numbers: Sequence[int]) -> None:
        await self.claim()
        for first in range(0, len(numbers), AT_ONCE):
            names = [self._name(number) for number in numbers[first : first + AT_ONCE]]
            replies = await asyncio.gather(*(self._client.call(OWN, "DELETE", name) for name in names))
            for reply in replies:
                if reply.status not in (200, 204, 404):
                    raise self._client.refusal("DELETE", reply)

    async def numbers(self) -> AsyncIterator[list[int]]:
        """All contents that are there, page by page."""
        prefix = f"{self._client.settings.prefix}{self._folder}/"
        token = ""
        while True:
            query = [("list-type", "2"), ("prefix", prefix)]
            if token:
                query.append(("continuation-token", token))
            reply = await self._done("GET", "", sorted(query))
            yield [n for key in KEYS.findall(reply.body) if (n := _number(key, prefix.encode())) is not None]
            found = NEXT.search(reply.body)
            if found is None:
                return
            token = html.unescape(found[1].decode())

    def _name(self, number: int) -> str:
        return f"{self._folder}/{number & 0xFF:02x}/{number:016x}"

    async def _done(
        self,
        method: str,
        name: str,
        query: Sequence[tuple[str, str]] = (),
        payload: Payload | None = None,
        tenant: str = OWN,
    ) -> ServiceReply:
        reply = await self._client.call(tenant, method, name, query, payload)
        if reply.status not in (200, 204):
            raise self._client.refusal(f"{method} {name}", reply)
        return reply


def payload_of(data: bytes) -> Payload:
    async def read(offset: int, length: int) -> bytes:
        return data[offset : offset + length]

    return Payload(len(data), hashlib.sha256(data).hexdigest(), read)


def _number(key: bytes, prefix: bytes) -> int | None:
    name = key.removeprefix(prefix)
    try:
        return int(name.rpartition(b"/")[2], 16) if name != key and b"/" in name else None
    except ValueError:
        return None
