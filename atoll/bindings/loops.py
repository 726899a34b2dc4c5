"""Detects chains of workers that leave over the network and return, with the header CDN-Loop (RFC 8586).

Each fetch to a server adds a member of this node: the number of workers in the chain, with a random id for that number
that only this process knows. So a returning chain is counted, and a client cannot forge a number, because it does not
know the id. Members of other nodes are passed on, so those nodes find theirs.
"""

from __future__ import annotations

import re
import secrets

from atoll.bindings.scope import QUIET
from atoll.wire.generated import MAX_HOPS

MAX_READ = 4_096  # bytes of the header that are parsed, from its end: members are added there
MAX_OTHERS = 512  # bytes of other nodes' members that are passed on, the newest
LINE = re.compile(rb"\ncdn-loop:[ \t]*+([\t -~]*+)\r", re.IGNORECASE)
ID = re.compile(r";[ \t]*id=([0-9a-f]{16})[ \t]*$")

_ids = {hops: secrets.token_hex(8) for hops in range(1, MAX_HOPS + 1)}
_hops = {known: hops for hops, known in _ids.items()}


def read_loops(head: bytes) -> tuple[int, str]:
    """The number of workers of this node that led to a request, and the members of other nodes, from a CALL head."""
    found = LINE.findall(head)
    if not found:
        return 0, ""
    members = [member.strip() for member in b",".join(found)[-MAX_READ:].decode("ascii").split(",")]
    hops, others, size = 0, [], 0
    for member in reversed(members):
        name = ID.search(member)
        depth = _hops.get(name[1]) if name is not None else None
        size += len(member) + 2
        if depth is not None:
            hops = max(hops, depth)
        elif member and size <= MAX_OTHERS:
            others.append(member)
    return hops, ", ".join(reversed(others))


def loop_lines(hops: int, others: str) -> str:
    """The header lines of a request that a worker sends; `hops` counts the workers before it."""
    depth = min(hops % QUIET + 1, MAX_HOPS)
    before = f"{others}, " if others else ""
    return f"cf-ew-via: {depth}\r\ncdn-loop: {before}atoll; loops={depth}; id={_ids[depth]}\r\n"
