"""The parts of a deploy besides its code: flags, source maps, message and tag. Pure, like body.py."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from atoll.api.refusals import ApiCode, Refused, bad_body, refuse_many
from atoll.control.checks.body import MAX_PATH
from atoll.workers import Module

MAX_FLAGS = 100
MAX_MESSAGE = 1_000
MAX_TAG = 100

FLAG = re.compile(r"[a-z0-9_]{1,100}")
CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


def checked_flags(flags: Sequence[str]) -> tuple[str, ...]:
    refuse_many("compatibility_flags", flags, MAX_FLAGS)
    for flag in flags:
        if not FLAG.fullmatch(flag):
            raise bad_body(f"`compatibility_flags` has {flag[:80]!r}", "flags look like nodejs_compat")
    return tuple(dict.fromkeys(flags))


def checked_maps(maps: Mapping[str, bytes], modules: Sequence[Module], max_bytes: int) -> dict[str, bytes]:
    """Source maps by the path of their module. They are for readable stack traces; the engine does not get them."""
    paths = {module.path for module in modules}
    for path in maps:
        if path not in paths:
            raise bad_body(f"`source_maps` has {path[:MAX_PATH]!r}, which is not one of `modules`")
    size = sum(map(len, maps.values()))
    if size > max_bytes:
        raise Refused(
            ApiCode.TOO_LARGE,
            f"the source maps have {size:,} bytes, more than the {max_bytes:,} this node allows",
            "leave out sourcesContent",
        )
    return dict(maps)


def checked_words(field: str, text: str, limit: int) -> str:
    if len(text) > limit or CONTROLS.search(text.replace("\n", " ")):
        raise bad_body(f"`{field}` is longer than {limit} characters or has control characters")
    return text
