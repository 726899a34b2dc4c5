"""The protocol of a KV store. Every implementation passes the suite tests/bindings/kv/test_kv_store.py.

A space is a namespace of one tenant: every lookup names the tenant. Keys are UTF-8 and sorted by their bytes. A write
that has returned is durable, and every read that begins after it sees it. An expired entry is invisible at once and is
deleted by a later sweep.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from atoll.errors import BindingRefused

ANY = 1 << 62  # bytes, keys: no bound
MAX_NAMESPACES = 1_000  # of one tenant: all of them are in memory


class Space(NamedTuple):
    tenant: str
    namespace: str


class StoredValue(NamedTuple):
    value: bytes
    metadata: str | None = None  # JSON
    expires_at: int | None = None  # seconds since 1970


class Listed(NamedTuple):
    """An entry without its value."""

    key: bytes
    metadata: str | None
    expires_at: int | None


class Page(NamedTuple):
    """A page of a list. `after` is the key to continue from; None at the end. A page before the end may be empty."""

    keys: list[Listed]
    after: bytes | None


class Namespace(NamedTuple):
    name: str
    created_at: int


class Size(NamedTuple):
    """The stored size. Expired entries count until they are swept."""

    keys: int
    bytes: int  # of keys, values and metadata


class Bound(NamedTuple):
    """The quota of a tenant for all its namespaces together; None is unbounded."""

    keys: int | None = None
    bytes: int | None = None


class KVOverQuota(BindingRefused):
    """A write would exceed the quota of the tenant."""

    def __init__(self, size: Size, bound: Bound) -> None:
        what, most = (size.keys, bound.keys) if _exceeds(size.keys, bound.keys) else (size.bytes, bound.bytes)
        unit = "keys" if _exceeds(size.keys, bound.keys) else "bytes"
        super().__init__(
            f"403 the tenant would have {what:,} {unit} in KV, more than its quota of {most:,}: delete some, or ask the"
            " operator of this node for a larger quota"
        )


class TooManyNamespaces(BindingRefused):
    def __init__(self) -> None:
        super().__init__(f"403 the tenant has reached the limit of {MAX_NAMESPACES:,} namespaces: delete some")


class NoNamespace(BindingRefused):
    """The namespace does not exist, or not any more."""

    def __init__(self, name: str) -> None:
        super().__init__(f"404 the namespace `{name}` does not exist any more: deploy the worker again to create it")


class TooMuch(BindingRefused):
    """The values are larger than the caller can take."""

    def __init__(self) -> None:
        super().__init__("413 Total size of request exceeds the limit of 25MB")


class Batch(Protocol):
    """Entries that the thread of the store makes one by one as it stores them."""

    bytes: int  # of keys, values and metadata

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[builtins.bytes, StoredValue]]: ...


class KVStore(Protocol):
    """Methods that may wait for a disk or a server are coroutines; if they need not wait they cost no task."""

    def bound(self, tenant: str, bound: Bound) -> None:
        """Set the quota of a tenant. Existing data above it stays."""

    async def namespaces(self, tenant: str) -> list[Namespace]:
        """The namespaces of a tenant, by name."""

    async def exists(self, space: Space) -> bool: ...

    async def create(self, space: Space, now: float) -> bool:
        """Create a namespace; False if it exists. TooManyNamespaces if the tenant has reached the limit."""

    async def drop(self, space: Space) -> bool:
        """Delete a namespace and its entries; False if there is none. The entries are invisible at once."""

    async def measure(self, space: Space) -> Size:
        """The size of a namespace."""

    async def total(self, tenant: str) -> Size:
        """The size of all namespaces of a tenant."""

    # All methods below raise NoNamespace if the namespace does not exist.

    async def get(self, space: Space, keys: Sequence[bytes], now: float, most: int = ANY) -> list[StoredValue | None]:
        """The entries of some keys, in their order, as of one moment.

        TooMuch if the values have more than `most` bytes together. Not many more than that are held meanwhile.
        """

    async def put(self, space: Space, entries: Sequence[tuple[bytes, StoredValue]] | Batch) -> None:
        """Store some entries: all of them, or none if it fails. OverQuota if the tenant's quota does not allow it."""

    async def delete(self, space: Space, keys: Sequence[bytes]) -> None:
        """Delete some keys, if they exist."""

    async def list(self, space: Space, prefix: bytes, after: bytes, limit: int, now: float) -> Page:
        """At most `limit` keys that begin with `prefix` and come after `after`."""

    async def sweep(self, before: float) -> int:
        """Delete some entries that expired before a time or were dropped; returns how many. 0: there are no more."""

    async def close(self) -> None: ...


def over(size: Size, bound: Bound) -> bool:
    return _exceeds(size.keys, bound.keys) or _exceeds(size.bytes, bound.bytes)


def _exceeds(amount: int, most: int | None) -> bool:
    return most is not None and amount > most


def after_prefix(prefix: bytes) -> bytes | None:
    """The first byte string after all those that begin with `prefix`. UTF-8 never contains the byte 0xff."""
    return prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else None
