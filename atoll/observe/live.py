"""Streams records to live listeners.

A listener has a small box. `put` runs on the hot path, so it only appends; what does not fit is counted, and the count
is part of the stream. The reader empties the box and then pauses, which bounds the cost of a listener for a busy
worker to one box per pause.
"""

from __future__ import annotations

import asyncio

from atoll.logs import Invocation, Said

BOX = 50  # records and lines between two reads: 250 per second cost a busy worker a few per cent
REST_SECONDS = 0.2


class Listener:
    __slots__ = ("_arrived", "_box", "_closed", "dropped", "wants_lines")

    def __init__(self, *, wants_lines: bool = False) -> None:
        self.wants_lines = wants_lines  # also send each console line as it is written
        self._box: list[Invocation | Said] = []
        self._arrived = asyncio.Event()
        self._closed = False
        self.dropped = 0  # since the last read

    @property
    def has_room(self) -> bool:
        return len(self._box) < BOX

    def put(self, record: Invocation | Said) -> None:
        box = self._box
        if len(box) >= BOX:
            self.dropped += 1
            return
        if not box:
            self._arrived.set()
        box.append(record)

    def close(self) -> None:
        """End the stream: the worker is deleted or the node stops."""
        self._closed = True
        self._arrived.set()

    async def next(self, seconds: float) -> tuple[list[Invocation | Said], int] | None:
        """What came since the last call, and how much was dropped. Both are empty after a timeout; None at the end.

        The reader must pause between calls: see REST_SECONDS.
        """
        if not self._box and not self._closed:
            try:
                await asyncio.wait_for(self._arrived.wait(), seconds)
            except TimeoutError:
                pass
        if self._closed and not self._box:
            return None
        self._arrived.clear()
        box, self._box = self._box, []
        dropped, self.dropped = self.dropped, 0
        if self._closed:
            self._arrived.set()
        return box, dropped
