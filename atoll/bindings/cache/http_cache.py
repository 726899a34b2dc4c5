"""A cache of responses with HTTP semantics, for the Cache API and fetch().

    hit = await cache.match(Place(tenant, "default", url), request_headers)
    if hit is None:
        upload = cache.begin(Place(tenant, "default", url), request_headers, status, response_headers, ttl=60)
        if upload is not None:                      # else it may not be kept
            await upload.write(chunk)               # False: it became too large, and is not kept
            await upload.finish()
            upload.close()                          # in any case, at the end

A failing cache acts like an empty one: disk errors are logged and never reach the caller.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import NamedTuple

import msgspec

from atoll.bindings.cache.freshness import (
    Headers,
    Keeping,
    Span,
    is_unchanged,
    keeping,
    range_of,
    varying,
    whole_number,
)
from atoll.bindings.cache.store import BodyReader, BodyWriter, CachePlace, CacheStore, Stored
from atoll.errors import StorageFailed

log = logging.getLogger("atoll.bindings")

MAX_URL = 16 * 1024
MAX_HEAD = 128 * 1024
# Headers that a response without a body does not keep.
NO_BODY_304 = ("content-length", "content-encoding", "content-range", "transfer-encoding")


class Hit(NamedTuple):
    """A response from the cache: whole, a part (206), 304 or 416. The body is bytes, or is read in pieces."""

    status: int
    headers: Headers
    is_manual: bool
    body: bytes
    rest: CacheDownload | None = None


class CacheDownload:
    """A body that is read in pieces."""

    def __init__(self, reader: BodyReader) -> None:
        self._reader = reader

    async def read(self, most: int) -> bytes:
        """The next piece; b"" at the end. OSError if it cannot be read."""
        return await self._reader.read(most)

    def close(self) -> None:
        self._reader.close()


class CacheUpload:
    """A response that is being stored."""

    def __init__(self, writer: BodyWriter, place: CachePlace, stored: Stored, most: int, length: int | None) -> None:
        self._writer = writer
        self._place = place
        self._stored = stored
        self._most = most
        self._length = length  # from Content-Length
        self._size = 0
        self._is_over = False
        self._is_writing = False

    async def write(self, piece: bytes) -> bool:
        """Take the next piece; False if further pieces are not needed."""
        if self._is_over or self._is_writing:
            return False
        self._size += len(piece)
        if self._size > self._most:
            self.close()
            return False
        self._is_writing = True
        try:
            await self._writer.write(piece)
        except OSError as error:
            log.error("the cache cannot keep a body: %s", error)
            self.close()
        finally:
            self._is_writing = False
        return not self._is_over

    async def finish(self) -> bool:
        """End the body. Store the response if its length matches; returns whether it was stored."""
        is_whole = not self._is_over and not self._is_writing and self._length in (None, self._size)
        try:
            if is_whole:
                await self._writer.save(self._place, self._stored)
        except StorageFailed as error:
            log.error("the cache cannot keep a response: %s", error)
            is_whole = False
        self.close()
        return is_whole

    def close(self) -> None:
        self._is_over = True
        self._writer.close()


class HttpCache:
    def __init__(self, store: CacheStore, object_bytes: int, *, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self._object_bytes = object_bytes
        self._clock = clock
        self._later: set[asyncio.Task[None]] = set()

    async def match(self, place: CachePlace, request: Headers) -> Hit | None:
        """The fresh response for a request, if there is one. Honours ranges and conditions of the request."""
        try:
            found = await self.store.find(place)
        except StorageFailed:
            return None
        now = self._clock()
        for stored in found:
            # A time before it was stored means that the clock was set back: its age is unknown.
            if stored.stored_at - 1 <= now < stored.expires_at and all(
                request.get(name) == value for name, value in vary_pairs(stored.vary)
            ):
                try:
                    hit = self._hit(stored, request, now)
                except OSError as error:
                    log.warning("a cached body is gone: %s", error)
                    continue
                self.store.touch(stored.id)
                return hit
        return None

    def _hit(self, stored: Stored, request: Headers, now: float) -> Hit:
        kept = Headers.parse(stored.head)
        age = int(now) - stored.stored_at + (whole_number(kept.get("age") or "") or 0)
        headers = kept.without("age", "cf-cache-status")
        headers.pairs += [("age", str(max(age, 0))), ("cf-cache-status", "HIT")]
        is_manual = bool(stored.is_manual)
        if is_unchanged(request, kept):
            return Hit(304, headers.without(*NO_BODY_304), is_manual, b"")
        status, span = stored.status, Span(0, stored.size)
        wanted = range_of(request, kept, stored.size) if status == 200 else None
        if wanted is not None:
            headers = headers.without("content-length", "content-range")
            if wanted.start == wanted.end:
                headers.pairs.append(("content-range", f"bytes */{stored.size}"))
                return Hit(416, headers, is_manual, b"")
            status, span = 206, wanted
            place = f"bytes {span.start}-{span.end - 1}/{stored.size}"
            headers.pairs += [("content-range", place), ("content-length", str(span.end - span.start))]
        if stored.body is not None:
            return Hit(status, headers, is_manual, stored.body[span.start : span.end])
        return Hit(status, headers, is_manual, b"", CacheDownload(self.store.open(stored, span.start, span.end)))

    def begin(
        self,
        place: CachePlace,
        request: Headers,
        status: int,
        response: Headers,
        *,
        ttl: float | None = None,
        is_manual: bool = False,
    ) -> CacheUpload | None:
        """Begin to store a response; None if it must not be stored. `ttl` overrides the lifetime in the response."""
        now = self._clock()
        kept = keeping(status, response, now, ttl=ttl)
        if kept is None or len(place.url) > MAX_URL:
            return None
        head = kept.headers.text()
        length = None if is_encoded(kept) else whole_number(kept.headers.get("content-length") or "")
        if len(head) > MAX_HEAD or (length or 0) > self._object_bytes:
            return None
        vary = vary_text(varying(request, kept.headers))
        stored = Stored(0, vary, status, head, is_manual, int(now), int(now) + kept.seconds, 0, None, "")
        return CacheUpload(self.store.create(), place, stored, self._object_bytes, length)

    async def delete(self, place: CachePlace) -> bool:
        """Delete a URL; returns whether it was cached."""
        try:
            return await self.store.remove(place)
        except StorageFailed as error:
            log.error("the cache cannot delete a response: %s", error)
            return False

    def later(self, act: Coroutine[None, None, None]) -> None:
        """Run work of the cache in the background, after the op has been answered."""
        task = asyncio.ensure_future(act)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def close(self) -> None:
        if self._later:
            await asyncio.wait(self._later)
        await self.store.close()


def is_encoded(kept: Keeping) -> bool:
    """Whether Content-Length may be that of the encoded body, which was decoded since."""
    return kept.headers.get("content-encoding") is not None


def vary_text(pairs: Sequence[tuple[str, str | None]]) -> str:
    return msgspec.json.encode(pairs).decode()


def vary_pairs(text: str) -> list[tuple[str, str | None]]:
    return [] if text == "[]" else msgspec.json.decode(text, type=list[tuple[str, str | None]])
