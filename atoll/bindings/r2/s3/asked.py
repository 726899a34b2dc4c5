"""One request to the S3 endpoint, after its signature was verified."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from starlette.datastructures import Headers

from atoll.bindings.r2 import limits
from atoll.bindings.r2.conditions import EtagTest, OnlyIf
from atoll.bindings.r2.http_objects import http_of_headers, http_time
from atoll.bindings.r2.records import Credential
from atoll.bindings.r2.s3.documents import MAX_DOCUMENT
from atoll.bindings.r2.s3.faults import S3Fault
from atoll.bindings.r2.s3.payload import CHUNKED
from atoll.bindings.r2.s3.sigv4 import Signature
from atoll.bindings.r2.store import BucketPlace, ObjectMeta

META = "x-amz-meta-"
CLASSES = {"STANDARD": "Standard", "STANDARD_IA": "InfrequentAccess"}
CLASS_NAMES = {ours: theirs for theirs, ours in CLASSES.items()}


class S3Request(NamedTuple):
    method: str
    bucket: str
    key: str
    query: Mapping[str, str]
    headers: Headers
    signature: Signature
    credential: Credential
    body: AsyncIterator[bytes]  # unwrapped and checked

    @property
    def place(self) -> BucketPlace:
        return BucketPlace(self.credential.tenant, self.bucket)

    @property
    def key_bytes(self) -> bytes:
        return limits.checked_key(self.key)

    def size(self) -> int:
        """The announced length of the content."""
        name = "x-amz-decoded-content-length" if self.signature.payload in CHUNKED else "content-length"
        length = self.headers.get(name, "0" if "transfer-encoding" not in self.headers else "")
        if not length.isdecimal():
            raise S3Fault("MissingContentLength", "You must provide the Content-Length HTTP header.")
        return limits.checked_size(int(length[:20]))

    async def document(self) -> bytes:
        """A small body."""
        body = bytearray()
        async for piece in self.body:
            body += piece
            if len(body) > MAX_DOCUMENT:
                raise S3Fault("MalformedXML", "The XML you provided is too large.")
        return bytes(body)

    def whole(self, name: str, usual: int, low: int, high: int) -> int:
        text = self.query.get(name, "")
        if not text:
            return usual
        if not text.isdecimal() or len(text) > 9 or int(text) < low:
            raise S3Fault("InvalidArgument", f"{name} must be a number from {low} to {high}.")
        return min(int(text), high)


def meta_of(headers: Headers) -> ObjectMeta:
    custom = {
        name[len(META) :]: _decoded(value) for name, value in headers.items() if name.startswith(META) and name != META
    }
    given = headers.get("x-amz-storage-class", "STANDARD")
    if given not in CLASSES:
        raise S3Fault("InvalidArgument", f"The storage class must be {' or '.join(CLASSES)}.")
    return ObjectMeta(http_of_headers(headers), limits.checked_custom(custom), CLASSES[given])


def _decoded(value: str) -> str:
    """A header value: clients write UTF-8."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def only_if_of(headers: Headers, prefix: str = "") -> OnlyIf:
    """The conditions in headers, by the rules of HTTP: a date equal to that of the object means not modified."""
    before = http_time(headers.get(f"{prefix}if-unmodified-since"))
    return OnlyIf(
        _etags(headers.get(f"{prefix}if-match")),
        _etags(headers.get(f"{prefix}if-none-match")),
        None if before is None else before + 1000,
        http_time(headers.get(f"{prefix}if-modified-since")),
        True,
    )


def _etags(text: str | None) -> tuple[EtagTest, ...] | None:
    if text is None:
        return None
    tests = []
    for part in text.split(",")[: limits.MAX_ETAGS]:
        tag = part.strip()
        is_weak = tag.startswith("W/")
        tests.append(EtagTest(tag.removeprefix("W/").strip('"'), is_weak))
    return tuple(tests)
