"""The calls of one engine that were sent and have not begun, found by reading its ledger.

They are the sign that an isolate is busy. Many calls in flight are not: these may all wait for something else.
"""

from __future__ import annotations

from atoll.engine.calls.call import SENT, Call
from atoll.engine.calls.call_table import CallTable
from atoll.engine.calls.isolate_state import IsolateState
from atoll.engine.link.ledger import Ledger

LATE_SECONDS = 0.02  # a call that has not begun after this time waits for its isolate
BACKLOG_SECONDS = 0.1  # after this time it counts to the queue of its worker


class LateCalls:
    """As they were at the last look."""

    def __init__(self) -> None:
        self.counts: dict[IsolateState, int] = {}
        self.backlog: dict[IsolateState, list[Call]] = {}  # in the order they were sent

    def look(self, calls: CallTable, ledger: Ledger, now: float) -> None:
        counts: dict[IsolateState, int] = {}
        backlog: dict[IsolateState, list[Call]] = {}
        begun = ledger.begun
        for call in calls.calls.values():
            waited = now - call.started
            if waited < LATE_SECONDS or call.state != SENT or begun(call.id):
                continue
            isolate = call.isolate
            if isolate is None or not isolate.ready:
                continue
            counts[isolate] = counts.get(isolate, 0) + 1
            if waited >= BACKLOG_SECONDS:
                backlog.setdefault(isolate, []).append(call)
        self.counts, self.backlog = counts, backlog
