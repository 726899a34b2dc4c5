"""What a store of cached responses promises, whatever it is made of: tests/bindings/cache/test_cache_store.py has it.

Nothing in it must last, and every fault may be answered with "not there". A tenant has so many bytes; beyond them what
was not used for longest goes. What HTTP says about caching is not the store's business (http_cache.py).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

MAX_VARIANTS = 20  # of one URL


class Place(NamedTuple):
    """A cache of a tenant, and a URL in it."""

    tenant: str
    cache: str
    url: str


class Stored(NamedTuple):
    """A response that is kept. A small body comes with it, a larger one is to be opened. Times are in seconds."""

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
    """A response as a list of them shows it."""

    id: int
    url: str
    status: int
    size: int
    stored_at: int
    expires_at: int


class BodyReader(Protocol):
    async def read(self, most: int) -> bytes:
        """The next piece; b"" at the end. OSError if it cannot be read any more."""

    def close(self) -> None: ...


class BodyWriter(Protocol):
    """A body on its way in, all of it or nothing: what was not saved is gone when it is closed."""

    async def write(self, piece: bytes) -> None:
        """Take a piece. One at a time; OSError if there is no room for it."""

    async def save(self, place: Place, stored: Stored) -> None:
        """Keep it, in the place of the variant it replaces. `size`, `body` and `file` are the writer's to fill in."""

    def close(self) -> None: ...


class CacheStore(Protocol):
    async def find(self, place: Place) -> list[Stored]:
        """Every variant that is kept for a URL, the newest first; also those whose time is over."""

    def open(self, stored: Stored, start: int, end: int) -> BodyReader:
        """A body that did not come with its response, or part of it. OSError if it is gone."""

    def create(self) -> BodyWriter:
        """Begin to keep a response."""

    def touch(self, number: int) -> None:
        """A response was used."""

    async def measure(self, tenant: str) -> list[CacheSize]:
        """The caches of a tenant."""

    async def kept(self, tenant: str, cache: str, after: int, limit: int) -> list[Kept]:
        """What is in a cache, from after a response (its id) on."""

    async def remove(self, place: Place) -> bool:
        """Forget a URL in all its variants; whether it was there."""

    async def remove_tagged(self, tenant: str, cache: str, tag: str) -> bool:
        """Forget what has a tag in its Cache-Tag header; whether there was any."""

    async def clear(self, tenant: str, cache: str) -> bool:
        """Forget a whole cache; whether anything was in it."""

    async def forget(self, tenant: str) -> None:
        """Forget all caches of a tenant."""

    async def close(self) -> None: ...
