"""Lists that are given in pages: `limit` says how many, `cursor` goes on where the answer before ended."""

from __future__ import annotations

from starlette.requests import Request

from atoll.control.boundary import Query
from atoll.control.check import bad_body

USUAL = 100


def page_query(most: int) -> tuple[Query, ...]:
    return (
        Query("limit", "How many", {"type": "integer", "minimum": 1, "maximum": most}),
        Query("cursor", "Where the answer before ended", {"type": "string", "pattern": "^[0-9]{1,18}$"}),
    )


def page_of(request: Request, most: int) -> tuple[int, int]:
    """The number after which to go on, and how many are wanted."""
    limit, cursor = request.query_params.get("limit", str(USUAL)), request.query_params.get("cursor", "0")
    if not _is_number(limit) or not 1 <= int(limit) <= most:
        raise bad_body(f"`limit` is {limit[:80]!r}", f"use a number from 1 to {most}")
    if not _is_number(cursor):
        raise bad_body(f"`cursor` is {cursor[:80]!r}", "use the cursor of the answer before, as it was")
    return int(cursor), int(limit)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
