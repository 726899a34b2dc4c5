"""How deep JSON may be that is stored. Decoders recurse: a value that one caller could just decode would fail in one
that is nested deeper itself, such as the start of a node. No value is stored that comes near that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MAX_LEVELS: Final = 100


def is_too_deep(value: object) -> bool:
    """Whether a value of JSON has more than MAX_LEVELS objects and lists within each other."""
    level: list[object] = [value]
    for _ in range(MAX_LEVELS + 1):
        level = [each for holder in level for each in _within(holder)]
        if not level:
            return False
    return True


def _within(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()
