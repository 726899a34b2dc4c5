"""What a store of KV promises, whatever it is made of: tests/bindings/kv/test_kv_store.py says the same as a suite.

A space is a namespace of one tenant: nothing is ever looked up without the tenant. Keys are UTF-8 and sorted by their
bytes. A write that has returned is durable and seen by every read that begins after it. An entry whose time has come
is invisible at once, and goes for good at a later sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from atoll.errors import BindingRefused

ANY = 1 << 62  # bytes, keys: more than there can be
MAX_NAMESPACES = 1_000  # of one tenant: all of them are in memory


class Space(NamedTuple):
    tenant: str
    namespace: str


class Entry(NamedTuple):
    value: bytes
    metadata: str | None = None  # JSON
    expires_at: int | None = None  # seconds since 1970


class Listed(NamedTuple):
    """An entry without its value."""

    key: bytes
    metadata: str | None
    expires_at: int | None


class Page(NamedTuple):
    """Part of a list. `after` is the key to go on from; None when that was all. A page may be empty before the end."""

    keys: list[Listed]
    after: bytes | None


class Namespace(NamedTuple):
    name: str
    created_at: int


class Size(NamedTuple):
    """How much is stored: what has expired counts until it is swept."""

    keys: int
    bytes: int  # of keys, values and metadata


class Bound(NamedTuple):
    """The most a tenant may have in all its namespaces together; None is no bound."""

    keys: int | None = None
    bytes: int | None = None


class OverQuota(BindingRefused):
    """A write would give a tenant more than it may have."""

    def __init__(self, size: Size, bound: Bound) -> None:
        what, most = (size.keys, bound.keys) if _exceeds(size.keys, bound.keys) else (size.bytes, bound.bytes)
        unit = "keys" if _exceeds(size.keys, bound.keys) else "bytes"
        super().__init__(
            f"403 the tenant would have {what:,} {unit} in KV, more than its quota of {most:,}: delete some, or ask the"
            " operator of this node for a larger quota"
        )


class TooManyNamespaces(BindingRefused):
    def __init__(self) -> None:
        super().__init__(f"403 the tenant has {MAX_NAMESPACES:,} namespaces, the most it may have: delete some")


class NoNamespace(BindingRefused):
    """There is no such namespace, or no longer."""

    def __init__(self, name: str) -> None:
        super().__init__(f"404 the namespace `{name}` does not exist any more: deploy the worker again to make it anew")


class TooMuch(BindingRefused):
    """What was asked for is more than the one who asks can take."""

    def __init__(self) -> None:
        super().__init__("413 Total size of request exceeds the limit of 25MB")


class KVStore(Protocol):
    """Everything that may wait for a disk or a server is a coroutine; one that need not wait costs no task."""

    def bound(self, tenant: str, bound: Bound) -> None:
        """From now on a tenant may have so much; what it has already stays."""

    async def namespaces(self, tenant: str) -> list[Namespace]:
        """Those of a tenant, by name."""

    async def exists(self, space: Space) -> bool: ...

    async def create(self, space: Space, now: float) -> bool:
        """Make a namespace; False if there was one already. TooManyNamespaces if the tenant has as many as it may."""

    async def drop(self, space: Space) -> bool:
        """Remove a namespace with all that is in it; False if there was none. What is in it is invisible at once."""

    async def measure(self, space: Space) -> Size:
        """How much is in a namespace."""

    async def total(self, tenant: str) -> Size:
        """How much is in all namespaces of a tenant."""

    # All below raise NoNamespace where there is none.

    async def get(self, space: Space, keys: Sequence[bytes], now: float, most: int = ANY) -> list[Entry | None]:
        """What is under some keys, in their order, all as of one moment.

        TooMuch if the values have more than `most` bytes together, of which not many more may be held meanwhile.
        """

    async def put(self, space: Space, entries: Sequence[tuple[bytes, Entry]]) -> None:
        """Store some entries: all of them, or none if it fails. OverQuota if that is more than the tenant may have."""

    async def delete(self, space: Space, keys: Sequence[bytes]) -> None:
        """Remove what is under some keys, if it is there."""

    async def list(self, space: Space, prefix: bytes, after: bytes, limit: int, now: float) -> Page:
        """At most `limit` keys that begin with `prefix` and come after `after`."""

    async def sweep(self, before: float) -> int:
        """Remove for good some of what expired before a moment or was dropped; how many. 0: there is no more."""

    async def close(self) -> None: ...


def over(size: Size, bound: Bound) -> bool:
    return _exceeds(size.keys, bound.keys) or _exceeds(size.bytes, bound.bytes)


def _exceeds(amount: int, most: int | None) -> bool:
    return most is not None and amount > most


def after_prefix(prefix: bytes) -> bytes | None:
    """The first string that comes after all those that begin with `prefix`. UTF-8 never holds a byte of 0xff."""
    return prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else None
