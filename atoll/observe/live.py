"""Records as they happen, for whoever listens now.

A listener has a small box. `put` runs on the request path, so it only appends; what does not fit is counted and told.
Whoever reads takes what is there and then rests a moment, which bounds what a listener costs a busy worker: a box per
rest, however many calls there are.
"""

from __future__ import annotations

import asyncio

from atoll.logs import Invocation, Said

BOX = 50  # records and lines between two looks: 250 a second cost a busy worker some per cent
REST_SECONDS = 0.2


class Listener:
    __slots__ = ("_arrived", "_box", "_closed", "dropped", "wants_lines")

    def __init__(self, *, wants_lines: bool = False) -> None:
        self.wants_lines = wants_lines  # each console line when it is said, not only with its record
        self._box: list[Invocation | Said] = []
        self._arrived = asyncio.Event()
        self._closed = False
        self.dropped = 0  # since the last look

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
        """There will be no more: the worker or the node is gone."""
        self._closed = True
        self._arrived.set()

    async def next(self, seconds: float) -> tuple[list[Invocation | Said], int] | None:
        """What came since the last call and how much was dropped; both empty after so long in silence, None at the end.

        Resting is the reader's to do: see REST_SECONDS.
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
