"""The trace of a call, in the terms of https://www.w3.org/TR/trace-context/. Only used where calls are traced.

The id of a trace alone decides whether it is sampled, so that every node keeps all calls of a trace or none.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

TRACEPARENT = re.compile(rb"\ntraceparent:[ \t]*00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}[ \t]*\r", re.IGNORECASE)
IDS = 2**64  # the half of a trace id that decides about sampling


class Trace(NamedTuple):
    """The place of one call in a trace."""

    id: int
    parent: int  # the span that the client named; 0: none
    span: int  # of the call
    is_kept: bool

    @property
    def header(self) -> str:
        """The `traceparent` header for the call's own requests."""
        return f"00-{self.id:032x}-{self.span:016x}-01"


def trace_of(head: bytes, share: float) -> Trace:
    """The trace of a new call, from its request head. `share` is the share of traces that are kept."""
    found = TRACEPARENT.search(head)
    trace, parent = (int(found[1], 16), int(found[2], 16)) if found is not None else (0, 0)
    if not trace or not parent:  # zeros are invalid in the standard
        trace, parent = random.getrandbits(128) or 1, 0
    return Trace(trace, parent, random.getrandbits(64) or 1, trace % IDS < share * IDS)
