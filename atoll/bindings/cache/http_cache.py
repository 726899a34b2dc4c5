"""A cache of responses with the semantics of HTTP, for whoever asks on behalf of a tenant: the Cache API and fetch().

    hit = cache.match(Place(tenant, "default", url), request_headers)
    if hit is None:
        upload = cache.begin(Place(tenant, "default", url), request_headers, status, response_headers, ttl=60)
        if upload is not None:                      # else it may not be kept
            await upload.write(chunk)               # False: it became too large, and is not kept
            await upload.finish()
            upload.close()                          # in any case, at the end

A cache that fails is a cache that has nothing: faults of the disk are logged, and never reach the one who asks.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine
from typing import NamedTuple

from atoll.bindings.cache.disk import INLINE, CacheDisk, Place, Stored, vary_pairs, vary_text
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
from atoll.errors import StorageFailed

log = logging.getLogger("atoll.bindings")

MAX_URL = 16 * 1024
MAX_HEAD = 128 * 1024
# Of a response that has no body to speak of.
NO_BODY_304 = ("content-length", "content-encoding", "content-range", "transfer-encoding")


class Hit(NamedTuple):
    """What the cache answers: a whole response, a part (206), 304 or 416. The body is bytes, or has to be read."""

    status: int
    headers: Headers
    is_manual: bool
    body: bytes
    rest: Download | None = None


class Download:
    """A body in a file, or part of it."""

    def __init__(self, descriptor: int, span: Span) -> None:
        self._descriptor = descriptor
        self._at, self._end = span
        self._reads = 0
        self._is_closed = False

    async def read(self, most: int) -> bytes:
        """The next piece; b"" at the end. OSError if the disk fails or the file is shorter than it was."""
        length = min(most, self._end - self._at)
        if length <= 0 or self._is_closed:
            return b""
        self._reads += 1  # the descriptor must not go, and its number be another file's, while a thread reads from it
        try:
            piece = await asyncio.to_thread(os.pread, self._descriptor, length, self._at)
        finally:
            self._reads -= 1
            self._let_go()
        if not piece:
            raise OSError("the file of a cached body is shorter than it was")
        self._at += len(piece)
        return piece

    def close(self) -> None:
        self._is_closed = True
        self._let_go()

    def _let_go(self) -> None:
        if self._is_closed and self._reads == 0 and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Upload:
    """A response on its way into the cache."""

    def __init__(self, disk: CacheDisk, place: Place, stored: Stored, most: int, length: int | None) -> None:
        self._disk = disk
        self._place = place
        self._stored = stored
        self._most = most
        self._length = length  # what Content-Length says
        self._pieces: list[bytes] = []  # of a small body, until there is a file
        self._size = 0
        self._file = ""
        self._descriptor = -1
        self._is_over = False
        self._is_writing = False

    async def write(self, piece: bytes) -> bool:
        """Take the next piece; False if there is no use in more of them."""
        if self._is_over or self._is_writing:
            return False
        self._size += len(piece)
        if self._size > self._most:
            self.close()
            return False
        self._pieces.append(piece)
        if self._size <= INLINE:
            return True
        self._is_writing = True
        try:
            await asyncio.to_thread(self._spill)
        except OSError as error:
            log.error("the cache cannot write its file: %s", error)
            self._is_over = True
        finally:
            self._is_writing = False
            if self._is_over:
                self._let_go()
        return not self._is_over

    async def finish(self) -> bool:
        """That was all of it: keep it, if it is as long as it said. Whether it is kept."""
        if self._is_over or self._is_writing or self._length not in (None, self._size):
            self.close()
            return False
        body = None if self._file else b"".join(self._pieces)
        stored = self._stored._replace(size=self._size, body=body, file=self._file)
        try:
            await self._disk.save(self._place, stored)
        except StorageFailed as error:
            log.error("the cache cannot keep a response: %s", error)
            self.close()
            return False
        self._file = ""  # it is the index's now
        self.close()
        return True

    def close(self) -> None:
        self._is_over = True
        self._let_go()

    def _spill(self) -> None:
        if self._descriptor < 0:
            self._file, self._descriptor = self._disk.new_file()
        left = memoryview(b"".join(self._pieces))
        self._pieces.clear()
        while left:
            left = left[os.write(self._descriptor, left) :]

    def _let_go(self) -> None:
        if self._is_writing:
            return
        self._pieces.clear()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._file:
            self._disk.unlink_all([self._file])
            self._file = ""


class HttpCache:
    def __init__(self, disk: CacheDisk, object_bytes: int, *, clock: Callable[[], float] = time.time) -> None:
        self.disk = disk
        self._object_bytes = object_bytes
        self._clock = clock
        self._later: set[asyncio.Task[None]] = set()

    def match(self, place: Place, request: Headers) -> Hit | None:
        """What is kept for a request, if it is fresh. Ranges and conditions of the request are obeyed."""
        try:
            found = self.disk.find(place)
        except StorageFailed:
            return None
        now = self._clock()
        for stored in found:
            # A moment before it was stored means that the clock was set back: then nobody knows how old it is.
            if stored.stored_at - 1 <= now < stored.expires_at and all(
                request.get(name) == value for name, value in vary_pairs(stored.vary)
            ):
                try:
                    hit = self._hit(stored, request, now)
                except OSError as error:
                    log.warning("a cached body is gone: %s", error)
                    continue
                self.disk.touch(stored.id)
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
        return Hit(status, headers, is_manual, b"", Download(self.disk.open(stored), span))

    def begin(
        self,
        place: Place,
        request: Headers,
        status: int,
        response: Headers,
        *,
        ttl: float | None = None,
        is_manual: bool = False,
    ) -> Upload | None:
        """Begin to keep a response; None if it may not be kept. `ttl` overrides what the response says of itself."""
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
        return Upload(self.disk, place, stored, self._object_bytes, length)

    async def delete(self, place: Place) -> bool:
        """Forget a URL; whether it was there."""
        try:
            return await self.disk.remove(place)
        except StorageFailed as error:
            log.error("the cache cannot forget a response: %s", error)
            return False

    def later(self, act: Coroutine[None, None, None]) -> None:
        """Do something for the cache after whoever caused it has been answered."""
        task = asyncio.ensure_future(act)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def close(self) -> None:
        if self._later:
            await asyncio.wait(self._later)
        await self.disk.close()


def is_encoded(kept: Keeping) -> bool:
    """Whether the length in the head may be that of an encoding which the body does not have any more."""
    return kept.headers.get("content-encoding") is not None
