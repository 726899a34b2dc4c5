"""The objects of one isolate: their slots, and the frames about them that its engine may send.

An engine is not trusted. A commit of a slot that was never open, out of sequence or with impossible pages ends it. A
commit of a slot that was closed is dropped: it crossed our CLOSE, and a new copy of the object may be open elsewhere.
"""

from __future__ import annotations

import heapq
import logging
import socket
from collections.abc import Callable
from typing import TypeAlias

from atoll.engine.calls.doors import SHUT
from atoll.engine.loaded.engine_session import Isolate
from atoll.engine.objects.failures import LOST, reset_failure
from atoll.engine.objects.live_object import CLOSED, LIVE, LiveObject
from atoll.errors import EngineError, Failure, ObjectFailure
from atoll.objects.store import Commit, InvalidCommit, ObjectStorage, Opened
from atoll.wire.generated import ErrorCode
from atoll.wire.objects import ADDRESS, encode_close, encode_open, encode_stored, read_commit, read_socket

log = logging.getLogger("atoll.objects")

# Takes a SOCKET frame: the object, its isolate, what it is about, the number of the socket, the rest.
SocketHandler: TypeAlias = Callable[[LiveObject, Isolate, int, int, bytes], None]

OBJECTS_PER_MB = 3.0  # of the memory limit of an isolate; an open database takes about 80 KB
STORAGE_TEXT = "Durable Object was reset because what it wrote could not be stored."


class IsolateResidents:
    def __init__(
        self,
        isolate: Isolate,
        store: ObjectStorage,
        on_closed: Callable[[LiveObject], None],
        on_socket: SocketHandler,
    ) -> None:
        self._isolate = isolate
        self._store = store
        self._on_closed = on_closed
        self._on_socket = on_socket
        self._slots: dict[int, LiveObject] = {}
        self._last = 0  # slots are never used again

    def open(self, live: LiveObject, opened: Opened, most_pages: int) -> bool:
        """Send the file of an object to the engine, and open it there. False: the engine must read others first."""
        session, worker, slot = self._isolate.session, self._isolate.load_id, self._last + 1
        assert session.descriptors is not None
        try:
            socket.send_fds(session.descriptors, [ADDRESS.pack(worker, slot)], [opened.fd])
        except BlockingIOError:
            return False
        except OSError:
            raise EngineError("the engine took no file") from None
        self._last = slot
        live.isolate, live.slot, live.state = self._isolate, slot, LIVE
        live.sequence = live.durable = live.merged = opened.sequence
        live.pages = opened.pages
        self._slots[slot] = live
        frame = encode_open(worker, slot, opened.pages, opened.sequence, most_pages, opened.alarm_ms)
        session.link.send(frame)
        return True

    def make_room(self, may_leave: Callable[[LiveObject], bool]) -> int:
        """Close objects that are not in use, the longest idle first, if there are very many. Returns how many.

        Each takes a little of the memory that the databases of an isolate may have, in use or not.
        """
        most = int(OBJECTS_PER_MB * self._isolate.version.limits.memory_mb)
        if len(self._slots) < most:
            return 0
        idle = [live for live in self._slots.values() if may_leave(live)]
        left = heapq.nsmallest(len(self._slots) - most + most // 8 + 1, idle, key=lambda live: live.idle_since)
        for live in left:
            self.close_idle(live, may_leave)
        return len(left)

    def close_idle(self, live: LiveObject, may_leave: Callable[[LiveObject], bool]) -> None:
        """Close an object that has no calls: at once, or when its door is shut and it still has none."""
        if live.door == SHUT:
            self.close(live)
        elif not live.after_shut:
            live.after_shut.append(lambda: self.close(live) if may_leave(live) else None)
            live.shut()

    def close(self, live: LiveObject) -> None:
        """Take the object out of the isolate. Frames that its engine sends about it from now on are dropped."""
        if self._slots.pop(live.slot, None) is not None:
            live.shut()  # first: calls that come through the door would find no object
            self._isolate.session.link.send(encode_close(self._isolate.load_id, live.slot))
            self._left(live)

    def _left(self, live: LiveObject) -> None:
        live.state = CLOSED
        live.shut()
        self._on_closed(live)

    def reset(self, live: LiveObject, failure: ObjectFailure) -> None:
        """Close the object and fail its calls. What it sent and is not durable is dropped."""
        live.failure = failure
        self.close(live)
        try:
            live.fail_all(failure)
        except EngineError as error:
            self._isolate.session.link.break_off(str(error))

    def on_gone(self) -> None:
        slots, self._slots = self._slots, {}
        for live in slots.values():
            live.failure = live.failure or LOST
            self._left(live)
            if self._isolate.session.link.broken:
                live.drop_held()
            else:  # an isolate that ends while its engine goes on: the engine still reports the end of each call
                live.fail_all(LOST)

    # --- frames of the engine ---

    def _find(self, kind: str, slot: int) -> LiveObject | None:
        live = self._slots.get(slot)
        if live is None and slot > self._last:
            raise EngineError(f"{kind} for slot {slot}, which was never open")
        return live

    def on_reset(self, slot: int, failure: Failure) -> None:
        live = self._find("RESET", slot)
        if live is not None:
            del self._slots[slot]
            live.failure = reset_failure(failure)
            self._left(live)
            live.fail_all(live.failure)

    def on_commit(self, slot: int, data: bytes, start: int, end: int) -> None:
        parts = read_commit(data, start, end)
        live = self._find("COMMIT", slot)
        if live is None:
            return
        if parts.sequence != live.sequence + 1:
            raise EngineError(f"COMMIT {parts.sequence} of slot {slot}, after {live.sequence}")
        commit = Commit(parts.sequence, parts.pages, parts.numbers, parts.contents, parts.alarm, parts.alarm_ms)
        live.on_commit(parts.sequence)
        live.pages = parts.pages
        try:
            self._store.commit(live.key, commit, lambda error: self._on_stored(live, parts.sequence, error))
        except InvalidCommit as error:
            raise EngineError(f"COMMIT of slot {slot}: {error}") from None

    def on_socket(self, slot: int, data: bytes, start: int, end: int) -> None:
        what, number, payload = read_socket(data, start, end)
        live = self._find("SOCKET", slot)
        if live is None:
            return
        if live.is_gated:
            live.hold_step(lambda: self._socket(live, what, number, payload), len(payload))
        else:
            self._socket(live, what, number, payload)

    def _socket(self, live: LiveObject, what: int, number: int, payload: bytes) -> None:
        if live.state != CLOSED:
            self._on_socket(live, self._isolate, what, number, payload)

    def _on_stored(self, live: LiveObject, sequence: int, error: Exception | None) -> None:
        if live.state == CLOSED:
            return
        if error is not None:
            log.error("a commit of an object of %s failed: %s", live.version.worker_name, error)
            self.reset(live, ObjectFailure(ErrorCode.STORAGE, STORAGE_TEXT, is_reset=True))
            return
        live.merged = self._store.merged(live.key)
        self.tell_stored(live, sequence)
        try:
            live.on_durable(sequence)
        except EngineError as broken:
            self._isolate.session.link.break_off(str(broken))

    def tell_stored(self, live: LiveObject, durable: int) -> None:
        self._isolate.session.link.send(encode_stored(self._isolate.load_id, live.slot, durable, live.merged))


def residents_of(isolate: Isolate) -> IsolateResidents:
    found = isolate.residents
    assert isinstance(found, IsolateResidents)
    return found
