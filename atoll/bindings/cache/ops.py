"""The Cache API as ops. Responses are transferred in pieces, so neither side holds a large one in memory."""

from __future__ import annotations

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.cache.freshness import Headers
from atoll.bindings.cache.http_cache import CacheDownload, CacheUpload, HttpCache
from atoll.bindings.cache.store import CachePlace
from atoll.errors import InvalidArgument

MAX_NAME = 1024
MAX_TEXT = 256 * 1024
PIECE = 256 * 1024


class Cache(Binding):
    kind = "cache"
    ambient = True

    def __init__(self, cache: HttpCache) -> None:
        self.cache = cache

    async def forget(self, tenant: str) -> None:
        await self.cache.store.forget(tenant)

    async def close(self) -> None:
        await self.cache.close()

    @op("cache.match")
    async def match(self, call: OpCall) -> Reply:
        """The cached response for a request: head, first piece of the body, and a number to read the rest with."""
        hit = await self.cache.match(place_of(call), Headers.parse(text(call, "head")))
        if hit is None:
            return Reply({"found": False})
        meta: dict[str, object] = {
            "found": True,
            "status": hit.status,
            "head": hit.headers.text(),
            "manual": hit.is_manual,
        }
        if hit.rest is None:
            return Reply(meta, hit.body)
        number = call.scope.keep(hit.rest)
        meta["reader"] = number
        return Reply(meta, await self._next(call, number))

    @op("cache.read", free=True)
    async def read(self, call: OpCall) -> Reply:
        """The next piece of a body; an empty one at its end."""
        number = call.meta.get("reader")
        if call.meta.get("cancel") is True:
            call.scope.release(number)
            return Reply()
        return Reply({}, await self._next(call, number))

    async def _next(self, call: OpCall, number: object) -> bytes:
        try:
            piece = await call.scope.find(number, CacheDownload).read(PIECE)
        except OSError as error:
            call.scope.release(number)
            raise InvalidArgument(f"the cached body cannot be read: {error}") from None
        if not piece:
            call.scope.release(number)
        return piece

    @op("cache.put")
    async def put(self, call: OpCall) -> Reply:
        """Store a response whose body is in this op, or begin one that comes in pieces and return its number."""
        meta = call.meta
        status = meta.get("status")
        if not isinstance(status, int):
            raise InvalidArgument("status must be a number")
        request, response = Headers.parse(text(call, "head")), Headers.parse(text(call, "reply"))
        upload = self.cache.begin(place_of(call), request, status, response, is_manual=meta.get("manual") is True)
        if upload is None:
            return Reply({"upload": None})
        if meta.get("stream") is True:
            return Reply({"upload": call.scope.keep(upload)})
        try:
            if await upload.write(call.body):
                await upload.finish()
        finally:
            upload.close()
        return Reply({"upload": None})

    @op("cache.write", free=True)
    async def write(self, call: OpCall) -> Reply:
        """The next piece of a response; `ended` marks the last, `cancel` a broken one. Reply `more`: send more."""
        number = call.meta.get("upload")
        upload = call.scope.find(number, CacheUpload)
        more = call.meta.get("cancel") is not True and await upload.write(call.body)
        if more and call.meta.get("ended") is True:
            await upload.finish()
            more = False
        if not more:
            call.scope.release(number)
        return Reply({"more": more})

    @op("cache.delete")
    async def delete(self, call: OpCall) -> Reply:
        """Delete the responses of a URL."""
        return Reply({"found": await self.cache.delete(place_of(call))})


def place_of(call: OpCall) -> CachePlace:
    name = text(call, "cache")
    if len(name) > MAX_NAME:
        raise InvalidArgument("Cache name is too long.")
    return CachePlace(call.scope.version.tenant, name, text(call, "url"))


def text(call: OpCall, name: str) -> str:
    """A well-formed text from the meta."""
    value = call.meta.get(name, "")
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise InvalidArgument(f"{name} must be a text of at most {MAX_TEXT} characters")
    return value.encode("utf-8", "replace").decode()
