"""The hibernatable WebSockets of all objects of a node, whether the objects live or not.

An eviction leaves the sockets of an object open, and their next message opens the object again, in whatever engine has
room. Everything that loses the state of a running object closes them with it: a reset, a deploy, an engine that died.
Messages that such an object had taken may be lost with it, and a closed socket tells its client so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from struct import Struct
from typing import Final, Protocol

from atoll.bindings.services import ListedSocket, ObjectTarget
from atoll.engine.calls.call import Call, CallListener
from atoll.engine.loaded.engine_session import Isolate
from atoll.engine.objects.failures import DELETED, UPDATED
from atoll.engine.objects.held_socket import NO_ATTACHMENT, RECORD, HeldSocket
from atoll.engine.objects.live_object import LiveObject
from atoll.engine.objects.object_sockets import ObjectSockets
from atoll.engine.objects.socket_event import SocketEvent
from atoll.errors import Failure, ObjectFailure
from atoll.holdings import Holdings
from atoll.objects.store import ObjectKey
from atoll.wire.generated import ErrorCode, Event
from atoll.wire.sockets import INTERNAL_ERROR
from atoll.workers import Version

SERVICE_RESTART: Final = 1012
TOO_LATE: Final = ObjectFailure(
    ErrorCode.OBJECT_RESET, "Actor exceeded event execution time and was disconnected.", is_reset=True
)
BACKGROUND: Final = int(Event.BACKGROUND)
TAG: Final = Struct("<H")  # the length before each tag


def listed_socket(socket: HeldSocket) -> ListedSocket:
    tags, rest = [], socket.tags
    while len(rest) >= TAG.size:
        end = TAG.size + TAG.unpack_from(rest)[0]
        tags.append(rest[TAG.size : end].decode("utf-8", "replace"))
        rest = rest[end:]
    attached = RECORD.unpack_from(socket.record)[5]
    responded = socket.responded_ms
    return ListedSocket(
        socket.number, tags, attached if attached != NO_ATTACHMENT else None, responded if responded >= 0 else None
    )


class Runtime(Protocol):
    """What is used of the runtime of objects."""

    resolve: Callable[[ObjectKey], tuple[ObjectTarget, Version] | None]

    def call(
        self,
        target: ObjectTarget,
        version: Version,
        head: bytes,
        body: bytes,
        ended: bool,
        caller: CallListener,
        event: int,
        hops: int,
    ) -> Call: ...


class Hibernation:
    def __init__(self, runtime: Runtime, holdings: Holdings) -> None:
        self._runtime = runtime
        self._holdings = holdings
        self._homes: dict[ObjectKey, ObjectSockets] = {}
        self._watched: set[ObjectSockets] = set()  # those that may need a look
        self.events = 0

    def count(self, namespace: str | None = None, id: str | None = None) -> int:
        """The sockets of an object, of a namespace, or of all."""
        if namespace is not None and id is not None:
            home = self._homes.get(ObjectKey(namespace, id))
            return len(home) if home is not None else 0
        return sum(len(home) for key, home in self._homes.items() if namespace in (None, key.namespace))

    def listed(self, key: ObjectKey, after: int, limit: int) -> list[ListedSocket]:
        """The sockets of an object with numbers above `after`, the oldest first."""
        home = self._homes.get(key)
        found = (each for number, each in home.held.items() if number > after) if home is not None else ()
        return [listed_socket(each) for each in islice(found, limit)]

    # --- objects that live ---

    def on_opened(self, live: LiveObject, isolate: Isolate) -> None:
        home = self._homes.get(live.key)
        if home is not None:
            live.name = live.name or home.target.name
            live.has_table = True
            home.wake(isolate, live.slot)

    def on_frame(self, live: LiveObject, isolate: Isolate, what: int, number: int, payload: bytes) -> None:
        home = self._homes.get(live.key)
        if home is None:
            target = live.target._replace(name=live.name, path=())
            home = ObjectSockets(live.key, target, live.version, self._holdings, self._start, self._watched.add)
            home.wake(isolate, live.slot)
            self._homes[live.key] = home
        calls, worker = isolate.session.calls.calls, isolate.load_id

        def call_of(id: int) -> Call | None:
            call = calls.get(id)
            return call if call is not None and call.worker == worker and call.object is live else None

        home.on_frame(call_of, what, number, payload)

    def may_leave(self, live: LiveObject) -> bool:
        """Whether everything that an object sent to its clients has left."""
        home = self._homes.get(live.key)
        return home is None or not home.unsent

    def on_evicted(self, live: LiveObject) -> None:
        home = self._homes.get(live.key)
        if home is not None:
            home.sleep()
            self._watched.add(home)

    def on_lost(self, live: LiveObject) -> None:
        """The object was reset, or is gone with its engine."""
        failure = live.failure
        is_fault = failure is not None and failure.is_reset and failure is not UPDATED
        self._close(live.key, failure, INTERNAL_ERROR if is_fault else SERVICE_RESTART)

    # --- events ---

    def _start(self, home: ObjectSockets, event: SocketEvent, payload: bytes) -> None:
        found = self._runtime.resolve(home.key)
        if found is None:
            event.on_failure(DELETED)
            return
        target, version = found
        head = event.head(target.class_name)
        named = target._replace(name=home.target.name)
        self.events += 1
        self._watched.add(home)
        event.call = self._runtime.call(named, version, head, payload, True, event, BACKGROUND, 0)

    # --- ends ---

    def update(self, version: Version) -> None:
        """A version is active: sockets that another version of its worker accepted are closed."""
        for key, home in list(self._homes.items()):
            if home.version.worker_id == version.worker_id and home.version is not version:
                self._close(key, UPDATED, SERVICE_RESTART)

    def delete(self, is_deleted: Callable[[ObjectKey], bool]) -> None:
        for key in [key for key in self._homes if is_deleted(key)]:
            self._close(key, DELETED, INTERNAL_ERROR)

    def leave(self, key: ObjectKey | None = None) -> None:
        """Another process, or another node, has the objects: their clients are told to connect again."""
        for each in list(self._homes) if key is None else [key]:
            self._close(each, None, SERVICE_RESTART)

    def _close(self, key: ObjectKey, failure: Failure | None, code: int) -> None:
        home = self._homes.pop(key, None)
        if home is not None:
            self._watched.discard(home)
            home.sleep()
            home.close_all(code, failure.message if failure is not None else "")

    def sweep(self, late: Callable[[ObjectKey, ObjectFailure], None], is_live: Callable[[ObjectKey], bool]) -> None:
        """Reset objects whose events take too long; drop what no client has."""
        now = time.monotonic()
        for home in list(self._watched):
            if home.unjoined:
                home.sweep()
            if home.events and home.is_late(now):
                late(home.key, TOO_LATE)
            if not home.unjoined and not home.events:
                self._watched.discard(home)
                if not home and not is_live(home.key) and self._homes.get(home.key) is home:
                    del self._homes[home.key]
