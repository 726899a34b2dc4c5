"""object_history: bookmarks of the Durable Object that a call belongs to, and the wish to go back to one."""

from __future__ import annotations

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.services import Services
from atoll.errors import InvalidArgument
from atoll.objects.store import ObjectKey, Past

MAX_MS = 8_640_000_000_000_000  # of a Date


class ObjectHistory(Binding):
    kind = "object_history"
    ambient = True

    def __init__(self, services: Services) -> None:
        self._services = services

    def _past(self, call: OpCall) -> tuple[Past, ObjectKey]:
        key, objects = call.scope.object_key, self._services.objects
        if objects is None or not isinstance(key, ObjectKey):
            raise InvalidArgument("only a Durable Object has a history")
        return objects.store.past, key

    @op("object_history.current", free=True)
    def current(self, call: OpCall) -> Reply:
        past, key = self._past(call)
        return Reply({"bookmark": past.current(key)})

    @op("object_history.at", free=True)
    async def at(self, call: OpCall) -> Reply:
        past, key = self._past(call)
        at_ms = call.meta.get("at")
        if not isinstance(at_ms, int | float) or not -MAX_MS <= at_ms <= MAX_MS:
            raise InvalidArgument("getBookmarkForTime() needs a Date, or milliseconds since 1970.")
        return Reply({"bookmark": await past.at(key, int(at_ms))})

    @op("object_history.restore", free=True)
    async def restore(self, call: OpCall) -> Reply:
        past, key = self._past(call)
        bookmark = call.meta.get("bookmark")
        if not isinstance(bookmark, str):
            raise InvalidArgument("This is not a bookmark of this object.")
        return Reply({"bookmark": await past.ask(key, bookmark)})
