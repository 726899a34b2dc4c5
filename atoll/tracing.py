"""Which trace a call belongs to, in the words of https://www.w3.org/TR/trace-context/. Only where calls are traced.

Whether a trace is kept is read from its id alone, so that all calls of one trace are kept or none is, on every node.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

TRACEPARENT = re.compile(rb"\ntraceparent:[ \t]*00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}[ \t]*\r", re.IGNORECASE)
IDS = 2**64  # the half of a trace id that decides


class Trace(NamedTuple):
    """The place of one call in a trace."""

    id: int
    parent: int  # the span that the client named; 0: none
    span: int  # of the call
    is_kept: bool

    @property
    def header(self) -> str:
        """`traceparent` for whoever the call asks something of."""
        return f"00-{self.id:032x}-{self.span:016x}-01"


def trace_of(head: bytes, share: float) -> Trace:
    """The trace of a call that begins, by its head. `share` is the part of all traces that is kept."""
    found = TRACEPARENT.search(head)
    trace, parent = (int(found[1], 16), int(found[2], 16)) if found is not None else (0, 0)
    if not trace or not parent:  # the standard calls zeros invalid
        trace, parent = random.getrandbits(128) or 1, 0
    return Trace(trace, parent, random.getrandbits(64) or 1, trace % IDS < share * IDS)
