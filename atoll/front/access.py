"""What the access log needs of finished requests, noted on the event loop until access_log.py writes it.

A request costs two looks at the clock and one append. What waits is bounded: if the file or pipe takes less than the
requests bring, further requests are counted instead of noted.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final, TypeAlias

from atoll.front.peer import Peer
from atoll.workers import Version

WAITING_BYTES: Final = 16 << 20  # of notes that are not taken yet
NOTE_BYTES: Final = 300  # of a note without the head of its request
KEPT_HEAD: Final = 8192  # bytes of a head that are kept
HEAD_END: Final = b"\r\n\r\n"


# One request: when it began and ended (by perf_counter), its client, its head, HTTP/1.<minor>, status, bytes of the
# body that were sent, whether the response is whole, and its version (None for the control API and unknown hosts).
# The head is that of its CALL frame or, if it was refused, what came from the client.
Note: TypeAlias = tuple[float, float, Peer, bytes, int, int, int, bool, Version | None]


class AccessNotes:
    """`share` of the requests are noted, spread evenly. `on_first` is called with the first note after a `take`."""

    __slots__ = ("_credit", "_on_first", "_share", "_waiting", "_weight", "dropped")

    def __init__(self, share: float, on_first: Callable[[], None]) -> None:
        self._share = share
        self._on_first = on_first
        self._credit = 0.0  # when it reaches 1, a request is noted
        self._waiting: list[Note] = []
        self._weight = 0
        self.dropped = 0

    def begin(self) -> float:
        """When a request begins that is to be noted. 0: it is not."""
        if self._share < 1.0:
            self._credit += self._share
            if self._credit < 1.0:
                return 0.0
            self._credit -= 1.0
        return perf_counter()

    def add(
        self,
        began: float,
        peer: Peer,
        head: bytes,
        minor: int,
        status: int,
        size: int,
        is_whole: bool,
        version: Version | None,
    ) -> None:
        if self._weight > WAITING_BYTES:
            self.dropped += 1
            return
        if len(head) > KEPT_HEAD:
            head = head[:KEPT_HEAD]
        self._weight += len(head) + NOTE_BYTES
        waiting = self._waiting
        if not waiting:
            self._on_first()
        waiting.append((began, perf_counter(), peer, head, minor, status, size, is_whole, version))

    def add_ready(self, peer: Peer, head: bytes, answer: bytes, version: Version) -> None:
        """Note a request that was answered with kept bytes: there is no exchange."""
        began = self.begin()
        if began > 0.0:
            size = len(answer) - answer.find(HEAD_END) - 4
            self.add(began, peer, head, 1, int(answer[9:12]), size, True, version)

    def add_refused(self, peer: Peer, head: bytes, status: int) -> None:
        """Note a request that was refused before there was an exchange."""
        began = self.begin()
        if began > 0.0:
            self.add(began, peer, head, 1, status, 0, True, None)

    def take(self) -> list[Note]:
        taken, self._waiting, self._weight = self._waiting, [], 0
        return taken
