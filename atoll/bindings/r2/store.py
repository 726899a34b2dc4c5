"""The protocol of an object store. Every implementation passes the suite tests/bindings/r2/test_r2_store.py.

A place is a bucket of one tenant: every lookup names the tenant. Keys are UTF-8 and sorted by their bytes. An object
appears as a whole or not at all: a put that has returned is durable, and a put that failed or was killed leaves nothing
that can be listed or read. A reader sees the version it was opened on to its end, even if that is replaced or deleted.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

from atoll.bindings.r2.conditions import ALWAYS, OnlyIf
from atoll.bindings.r2.limits import R2Refused

MAX_BUCKETS = 1_000  # of one tenant: all of them are in memory
UPLOAD_DAYS = 7  # after which an unfinished upload is deleted


class BucketPlace(NamedTuple):
    tenant: str
    bucket: str


class BucketFacts(NamedTuple):
    name: str
    created_at: int  # milliseconds since 1970
    objects: int
    bytes: int  # of contents, keys and metadata, parts of unfinished uploads included


class ObjectMeta(NamedTuple):
    """The metadata that a put gives to an object."""

    http: str = ""  # JSON; "" for none
    custom: str = ""
    storage_class: str = "Standard"


class StoredObject(NamedTuple):
    """An object without its content."""

    key: bytes
    version: str
    size: int
    etag: str
    uploaded: int  # milliseconds since 1970
    storage_class: str
    checksums: str  # JSON of hex digests
    http: str  # JSON; "" for none, or if a list did not ask for it
    custom: str


class R2Usage(NamedTuple):
    """What a tenant has in all its buckets."""

    objects: int
    bytes: int


class R2Bound(NamedTuple):
    """The quota of a tenant for all its buckets together; None is unbounded."""

    buckets: int | None = None
    objects: int | None = None
    bytes: int | None = None


class ListQuery(NamedTuple):
    """What to list. `start` is the first key that may be listed."""

    prefix: bytes = b""
    delimiter: bytes = b""
    start: bytes = b""
    limit: int = 1_000
    with_http: bool = False
    with_custom: bool = False


class ListPage(NamedTuple):
    """A page of a list. `start` is where the next page begins; None at the end. A page may be short before the end."""

    objects: list[StoredObject]
    groups: list[bytes]  # prefixes up to the delimiter
    start: bytes | None


class UploadFacts(NamedTuple):
    """An unfinished multipart upload."""

    key: bytes
    id: str
    created_at: int
    storage_class: str


class PartFacts(NamedTuple):
    number: int
    etag: str
    size: int
    uploaded: int


class Checksum(NamedTuple):
    """A hash that the content must have."""

    name: str  # of hashlib
    hex: str


class Change(NamedTuple):
    """What happened to an object, for notifications. The actions have Cloudflare's names."""

    action: str
    key: bytes
    size: int = 0
    etag: str = ""  # "" if it was deleted
    source: tuple[str, str] | None = None  # bucket and key that it was copied from


class NoBucket(R2Refused):
    def __init__(self) -> None:
        super().__init__(10006)


class R2OverQuota(R2Refused):
    """A write would exceed a quota of the tenant."""

    def __init__(self, amount: int, unit: str, most: int) -> None:
        super().__init__(
            19014,
            f"the tenant would have {amount:,} {unit} in R2, more than its quota of {most:,}: delete some, or ask the"
            " operator of this node for a larger quota",
        )


class OpenFile(NamedTuple):
    """A part of a file. Its owner closes the descriptor."""

    descriptor: int
    start: int
    end: int
    threads: ThreadPoolExecutor  # read what is not in memory


class ContentReader(Protocol):
    """The content of one version of an object, or a part of it. The caller closes it."""

    @property
    def left(self) -> int:
        """Bytes that are not read yet."""

    @property
    def left_in_file(self) -> int:
        """Bytes that `open_file` would take; 0 if the content is not in a file of this machine."""

    async def read(self, most: int) -> bytes:
        """The next piece; b"" at the end. One read at a time."""

    async def open_file(self) -> OpenFile:
        """Take the next bytes as an open file instead of reading them."""

    def rewind(self) -> None:
        """Begin again. Only for content in a file."""

    def close(self) -> None: ...


class ContentUpload(Protocol):
    """Content that arrives in pieces. The caller closes it; content that was not stored by then is dropped."""

    async def write(self, piece: bytes) -> None:
        """Add a piece; returns once it is written, so that a fast sender waits. R2Refused if it is too long."""

    async def put(self, key: bytes, meta: ObjectMeta, only_if: OnlyIf = ALWAYS) -> StoredObject | None:
        """Store it as an object; None if the condition does not hold of the present one at that moment."""

    async def put_part(self, upload_id: str, key: bytes, number: int) -> PartFacts:
        """Store it as a part of a multipart upload, in place of an earlier part of that number."""

    def close(self) -> None: ...


class ObjectStore(Protocol):
    """Methods that may wait for a disk or a server are coroutines; if they need not wait they cost no task."""

    def bound(self, tenant: str, bound: R2Bound) -> None:
        """Set the quota of a tenant. Existing data above it stays."""

    async def buckets(self, tenant: str) -> builtins.list[BucketFacts]:
        """The buckets of a tenant, by name."""

    async def some(self, most: int) -> builtins.list[tuple[BucketPlace, BucketFacts]]:
        """The first buckets of all tenants, for metrics."""

    async def exists(self, place: BucketPlace) -> bool: ...

    async def create(self, place: BucketPlace, now: float) -> bool:
        """Create a bucket; False if it exists. R2OverQuota if the tenant has reached its limit."""

    async def drop(self, place: BucketPlace, *, force: bool = False) -> None:
        """Delete a bucket. R2Refused(10008) if it has objects, unless `force`: they are invisible at once."""

    async def total(self, tenant: str) -> R2Usage: ...

    # All methods below raise NoBucket if the bucket does not exist.

    async def head(self, place: BucketPlace, key: bytes) -> StoredObject | None: ...

    async def open(self, place: BucketPlace, key: bytes) -> tuple[StoredObject, OpenContent] | None:
        """An object and the way to its content."""

    async def begin(
        self,
        place: BucketPlace,
        size: int,
        checksum: Checksum | None = None,
        *,
        source: tuple[str, str] | None = None,
    ) -> ContentUpload:
        """Begin to receive content of `size` bytes; `source` has bucket and key of what is copied.

        R2OverQuota if it cannot fit.
        """

    async def delete(self, place: BucketPlace, keys: Sequence[bytes]) -> int:
        """Delete some objects, if they exist; returns how many did."""

    async def expire(self, place: BucketPlace, versions: Sequence[tuple[bytes, str]]) -> int:
        """Delete objects, given by key and version, unless they were replaced; returns how many were deleted."""

    async def list(self, place: BucketPlace, query: ListQuery) -> ListPage: ...

    # Multipart uploads

    async def create_upload(self, place: BucketPlace, key: bytes, meta: ObjectMeta) -> str: ...

    async def complete(
        self, place: BucketPlace, key: bytes, upload_id: str, parts: Sequence[tuple[int, str]]
    ) -> StoredObject:
        """Make an object of parts, given by number and etag in any order."""

    async def abort(self, place: BucketPlace, key: bytes, upload_id: str) -> None: ...

    async def uploads(
        self, place: BucketPlace, prefix: bytes, after: tuple[bytes, str], limit: int
    ) -> builtins.list[UploadFacts]:
        """Unfinished uploads by key and id."""

    async def parts(
        self, place: BucketPlace, key: bytes, upload_id: str, after: int, limit: int
    ) -> builtins.list[PartFacts]: ...

    async def close(self) -> None: ...


class OpenContent(Protocol):
    """The content of an object that was looked up. Use it, or close it."""

    def reader(self, offset: int, length: int) -> ContentReader: ...

    def close(self) -> None: ...


def after_prefix(prefix: bytes) -> bytes | None:
    """The first byte string after all those that begin with `prefix`. UTF-8 never contains the byte 0xff."""
    return prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else None
