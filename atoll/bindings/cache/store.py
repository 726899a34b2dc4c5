"""The protocol of a response store. Every implementation passes the suite tests/bindings/cache/test_cache_store.py.

The data may be lost, and every fault may count as a miss. A tenant has a quota of bytes; above it the least recently
used responses are deleted. The rules of HTTP caching are in http_cache.py, not here.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

MAX_VARIANTS = 20  # of one URL


class CachePlace(NamedTuple):
    """A cache of a tenant, and a URL in it."""

    tenant: str
    cache: str
    url: str


class Stored(NamedTuple):
    """A stored response. A small body comes with it, a larger one must be opened. Times are in seconds."""

    id: int
    vary: str
    status: int
    head: str
    is_manual: int
    stored_at: int
    expires_at: int
    size: int
    body: bytes | None
    file: str


class CacheSize(NamedTuple):
    name: str
    responses: int
    bytes: int


class Kept(NamedTuple):
    """A response in a list."""

    id: int
    url: str
    status: int
    size: int
    stored_at: int
    expires_at: int


class BodyReader(Protocol):
    async def read(self, most: int) -> bytes:
        """The next piece; b"" at the end. OSError if it cannot be read."""

    def close(self) -> None: ...


class BodyWriter(Protocol):
    """Writes a body, all or nothing: closing it before `save` discards it."""

    async def write(self, piece: bytes) -> None:
        """Write a piece. One at a time; OSError if there is no room for it."""

    async def save(self, place: CachePlace, stored: Stored) -> None:
        """Store the response in place of the variant it replaces. The writer fills in `size`, `body` and `file`."""

    def close(self) -> None: ...


class CacheStore(Protocol):
    async def find(self, place: CachePlace) -> list[Stored]:
        """All variants of a URL, newest first, expired ones included."""

    def open(self, stored: Stored, start: int, end: int) -> BodyReader:
        """Open a body that did not come with its response, or part of it. OSError if it is gone."""

    def create(self) -> BodyWriter:
        """Begin to store a response."""

    def touch(self, number: int) -> None:
        """Record that a response was used."""

    async def measure(self, tenant: str, after: str = "", limit: int = 100) -> list[CacheSize]:
        """The caches of a tenant by name, starting after one of them."""

    async def kept(self, tenant: str, cache: str, after: int, limit: int) -> list[Kept]:
        """The responses in a cache, starting after an id."""

    async def remove(self, place: CachePlace) -> bool:
        """Delete all variants of a URL; returns whether there were any."""

    async def remove_tagged(self, tenant: str, cache: str, tag: str) -> bool:
        """Delete responses with a tag in their Cache-Tag header; returns whether there were any."""

    async def clear(self, tenant: str, cache: str) -> bool:
        """Delete a whole cache; returns whether anything was in it."""

    async def forget(self, tenant: str) -> None:
        """Delete all caches of a tenant."""

    async def close(self) -> None: ...
