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

# Blocks with such a line are not in `known_blocks`: whether they may be sent depends on the node's base domain.
HAS_DOMAIN: Final = re.compile(rb"(?:\A|\n)set-cookie:[^\r]*?;[\t ]*domain[\t ]*=", re.IGNORECASE)
REFUSED: Final = b"x-atoll-refused-cookie: its Domain is the base domain of this node, above it, or no host name\r\n"


def guarded(block: bytes, base: str) -> bytes:
    """A checked header block, without cookies that are refused on a node with this base domain."""
    return _refused_line(base).sub(REFUSED, block)


@lru_cache(maxsize=16)
def _refused_line(base: str) -> re.Pattern[bytes]:
    """A line that sets a cookie with a refused Domain. Each attribute is read once, however long the line."""
    labels = base.lower().split(".")
    wide = "|".join(re.escape(".".join(labels[at:])) for at in range(len(labels)))
    end = r'[\t "]*+(?=[;\r])'
    is_wide = rf'[\t "]*+\.*+(?:{wide})\.*+(?::[0-9]*+)?{end}'
    is_plain = rf'[\t "]*+[a-z0-9_.:\[\]-]*+{end}'
    text = rf"^set-cookie:[^\r]*?;[\t ]*+domain[\t ]*+=(?:{is_wide}|(?!{is_plain}))[^\r]*+\r\n"
    return re.compile(text.encode(), re.IGNORECASE | re.MULTILINE)
