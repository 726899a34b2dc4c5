"""Public buckets: anybody may read their objects, on a host of their own below the domain of public buckets.

    pub-<16 digits>.buckets.<base domain>/<key>

The host is made by the node and belongs to the bucket: a tenant cannot choose one, so none can take another's. It is
an origin of its own: pages of one bucket cannot read those of another. Objects are never listed.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from atoll.bindings.r2.around.cors import Cors, allowed, answered
from atoll.bindings.r2.around.settings import BucketSettings
from atoll.bindings.r2.conditions import WHOLE, ByteRange, OnlyIf, range_of_header
from atoll.bindings.r2.http_objects import ObjectResponse, headers_of_http, http_date, http_time
from atoll.bindings.r2.limits import R2Refused, checked_key
from atoll.bindings.r2.records import BucketRecords
from atoll.bindings.r2.s3.asked import only_if_of
from atoll.bindings.r2.store import BucketPlace, NoBucket, ObjectStore, StoredObject
from atoll.errors import AtollError, StorageFailed
from atoll.public_address import PublicAddress

log = logging.getLogger("atoll.bindings")

ALLOW = "GET, HEAD, OPTIONS"


class PublicBuckets:
    """Which buckets are public. `domain` is the domain of their hosts; "" if this node has none."""

    def __init__(self, records: BucketRecords, domain: str, address: PublicAddress) -> None:
        self._records = records
        self.domain = domain
        self._address = address

    async def url_of(self, place: BucketPlace) -> str:
        """The address of a public bucket; "" if it is not public."""
        label = await self._records.label_of(place)
        return self._address.at(f"{label}.{self.domain}") if label and self.domain else ""

    async def find(self, host: str) -> BucketPlace | None:
        label, _, domain = host.partition(".")
        if not self.domain or domain != self.domain:
            return None
        return await self._records.place_of(label)

    async def show(self, place: BucketPlace) -> None:
        """Make a bucket public, if it is not."""
        await self._records.show(place, f"pub-{secrets.token_hex(8)}")

    async def hide(self, place: BucketPlace) -> None:
        """From now on nobody reads it. If it becomes public again, it has another host."""
        await self._records.hide(place)


class PublicSite:
    """Answers on the hosts of public buckets."""

    def __init__(self, store: ObjectStore, public: PublicBuckets, settings: BucketSettings) -> None:
        self._store = store
        self._public = public
        self._settings = settings

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except StorageFailed as error:
            response = PlainTextResponse(f"{error}\n", 503, headers={"cache-control": "no-store"})
        except AtollError:
            response = _not_found()
        except Exception:
            log.exception("a public bucket: %s %s failed", request.method, scope["path"][:200])
            response = PlainTextResponse("internal error\n", 500)
        if request.method == "HEAD" and not isinstance(response, ObjectResponse):
            response.body = b""
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        place = await self._public.find(host_of(request))
        if place is None:
            return PlainTextResponse("there is no public bucket on this host\n", 404)
        cors = await self._settings.find(place, Cors)
        if request.method == "OPTIONS":
            fields = None if cors is None else allowed([cors], request.headers)
            if fields is None:
                return PlainTextResponse("no CORS rule of this bucket allows this request\n", 403)
            return Response(status_code=204, headers=fields)
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("a public bucket can only be read\n", 405, headers={"allow": ALLOW})
        response = await self._read(request, place)
        response.headers.update(answered(cors, request.method, request.headers))
        return response

    async def _read(self, request: Request, place: BucketPlace) -> Response:
        try:
            path = unquote_to_bytes(request.scope["raw_path"]).decode()
            opened = await self._store.open(place, checked_key(path.removeprefix("/")))
        except (UnicodeDecodeError, R2Refused) as error:
            if isinstance(error, NoBucket):  # it was deleted just now
                return PlainTextResponse("there is no public bucket on this host\n", 404)
            return _not_found()
        if opened is None:
            return _not_found()
        stored, content = opened
        try:
            headers = public_headers(stored)
            refusal = failed(only_if_of(request.headers), stored, headers)
            if refusal is not None:
                return refusal
            wanted = wanted_range(request.headers, stored)
            try:
                offset, length = wanted.within(stored.size)
            except R2Refused:
                length = 0
            if wanted == WHOLE:
                status = 200
            elif length:
                status = 206
                headers["content-range"] = f"bytes {offset}-{offset + length - 1}/{stored.size}"
            else:
                unsatisfied = {"content-range": f"bytes */{stored.size}", "accept-ranges": "bytes"}
                return PlainTextResponse("the range is not in the object\n", 416, headers=unsatisfied)
            if request.method == "HEAD":  # nothing of the content is read
                return Response(status_code=status, headers=headers | {"content-length": str(length)})
            return await ObjectResponse.begin(content.reader(offset, length), headers, status)
        finally:
            content.close()


def host_of(request: Request) -> str:
    """The host of a request, without its port."""
    return request.headers.get("host", "").lower().partition(":")[0].removesuffix(".")


def public_headers(stored: StoredObject) -> dict[str, str]:
    return {
        "content-type": "application/octet-stream",
        **headers_of_http(stored),
        "etag": f'"{stored.etag}"',
        "last-modified": http_date(stored.uploaded),
        "accept-ranges": "bytes",
        "x-content-type-options": "nosniff",  # the type is what its owner says
    }


def failed(only_if: OnlyIf, stored: StoredObject, headers: Mapping[str, str]) -> Response | None:
    """412 if If-Match or If-Unmodified-Since does not hold; 304 if the client has the object already; else None."""
    if not OnlyIf(only_if.matches, None, only_if.before, None, True).holds(stored.etag, stored.uploaded):
        return PlainTextResponse("the object is not the one that the request is about\n", 412)
    if not OnlyIf(None, only_if.differs, None, only_if.after, True).holds(stored.etag, stored.uploaded):
        kept = ("etag", "last-modified", "cache-control", "expires")
        return Response(status_code=304, headers={name: headers[name] for name in kept if name in headers})
    return None


def wanted_range(headers: Mapping[str, str], stored: StoredObject) -> ByteRange:
    """The range of a request; all of the object if it has none, or is about another version (If-Range)."""
    if "range" not in headers:
        return WHOLE
    about = headers.get("if-range")
    if about is not None and about.strip() != f'"{stored.etag}"':
        at = http_time(about)
        if at is None or at // 1000 != stored.uploaded // 1000:
            return WHOLE
    return range_of_header(headers["range"])


def _not_found() -> Response:
    return PlainTextResponse("there is no such object\n", 404)
