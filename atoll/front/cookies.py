"""Cookies that a worker may not set: those that browsers would send to other workers too.

A cookie with the Domain of the node's base domain, or of one above it, is sent to every worker of the node. Browsers
refuse such a cookie for domains in the Public Suffix List; a base domain is rarely in it, so the front refuses it: the
line is taken out of the response, and a header in its place says so.

Browsers read Domain in many spellings. Some decode percent signs or map Unicode to ASCII, some take the last of several
attributes and some the first. So every Domain attribute counts, and a value that is not plainly a host name or an
address is refused. Browsers refuse such values too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# Blocks with such an attribute, in whatever line, are not in `known_blocks`: whether they may be sent depends on the
# node's base domain. The pattern starts with one character, because a search for that is the fastest that there is.
HAS_DOMAIN: Final = re.compile(rb";[\t ]*+domain[\t ]*+=", re.IGNORECASE)
SET_COOKIE: Final = re.compile(rb"set-cookie:", re.IGNORECASE)
REFUSED: Final = b"x-atoll-refused-cookie: its Domain is the base domain of this node, above it, or no host name\r\n"


def guarded(block: bytes, base: str) -> bytes:
    """A checked header block, without cookies that are refused on a node with this base domain."""
    pattern = _refused_attribute(base)
    kept: list[bytes] = []
    at = 0
    while found := pattern.search(block, at):
        start = block.rfind(b"\n", at, found.start()) + 1 or at
        end = block.index(b"\n", found.end()) + 1
        if SET_COOKIE.match(block, start):
            kept += (block[at:start], REFUSED)
        else:
            kept.append(block[at:end])
        at = end
    return b"".join((*kept, block[at:])) if kept else block


@lru_cache(maxsize=16)
def _refused_attribute(base: str) -> re.Pattern[bytes]:
    """A Domain attribute that is refused. Each one is read once, however long the line."""
    labels = base.lower().split(".")
    wide = "|".join(re.escape(".".join(labels[at:])) for at in range(len(labels)))
    end = r'[\t "]*+(?=[;\r])'
    is_wide = rf'[\t "]*+\.*+(?:{wide})\.*+(?::[0-9]*+)?{end}'
    is_plain = rf'[\t "]*+[a-z0-9_.:\[\]-]*+{end}'
    return re.compile(rf";[\t ]*+domain[\t ]*+=(?:{is_wide}|(?!{is_plain}))".encode(), re.IGNORECASE)
