"""Lists come in pages: `limit` is the number of entries, `cursor` continues where the previous page ended.

A page is bounded twice: by `limit`, and by PAGE_BYTES, since tenants decide how large an entry is. Entries are encoded
one by one, and other tasks of the event loop run in between. A page with a `cursor` is not the last one, however few
entries it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.bodies import JSON_TYPE
from atoll.api.refusals import bad_body
from atoll.api.routes import HEADERS, Query

USUAL = 100
MOST = 1_000
PAGE_BYTES = 1 << 20  # of entries: the entry that exceeds it is the last
STEP_ENTRIES, STEP_BYTES = 10, 64 << 10  # bytes encoded before other tasks get a turn
MAX_CURSOR = 600  # characters


def limit_query(most: int = MOST, usual: int = USUAL) -> Query:
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": usual}
    return Query("limit", "The most entries in a page; a page may have fewer and still a `cursor`", schema)


def page_query(most: int = MOST, usual: int = USUAL) -> tuple[Query, ...]:
    """The parameters of a list whose cursor is a number."""
    cursor = {"type": "string", "pattern": "^[0-9]{1,18}$"}
    return limit_query(most, usual), Query("cursor", "The `cursor` of the previous page", cursor)


def name_query(most: int = MOST, usual: int = USUAL) -> tuple[Query, ...]:
    """The parameters of a list whose cursor is a name."""
    cursor = {"type": "string", "minLength": 1, "maxLength": MAX_CURSOR}
    return limit_query(most, usual), Query("cursor", "The `cursor` of the previous page", cursor)


def page_of(request: Request, most: int = MOST, usual: int = USUAL) -> tuple[int, int]:
    """The number to continue after, and the limit."""
    cursor = request.query_params.get("cursor", "0")
    if not _is_number(cursor):
        raise bad_cursor(cursor)
    return int(cursor), limit_of(request, most, usual)


def name_page_of(request: Request, most: int = MOST, usual: int = USUAL) -> tuple[str, int]:
    """The name to continue after, and the limit."""
    cursor = request.query_params.get("cursor", "")
    if len(cursor) > MAX_CURSOR:
        raise bad_cursor(cursor)
    return cursor, limit_of(request, most, usual)


def limit_of(request: Request, most: int = MOST, usual: int = USUAL) -> int:
    limit = request.query_params.get("limit", str(usual))
    if not _is_number(limit) or not 1 <= int(limit) <= most:
        raise bad_body(f"`limit` is {limit[:80]!r}", f"use a number from 1 to {most}")
    return int(limit)


def bad_cursor(cursor: str) -> Exception:
    return bad_body(f"`cursor` is {cursor[:80]!r}", "use the `cursor` of the previous page, unchanged")


async def page_answer(field: str, found: AsyncIterator[tuple[str, object]], limit: int, **more: object) -> Response:
    """A page with the first of the entries in `found`, each paired with the cursor that continues after it."""
    parts: list[bytes] = []
    size, told, cursor, last = 0, 0, "", ""
    async for place, entry in found:
        if len(parts) == limit or size >= PAGE_BYTES:
            cursor = last
            break
        parts.append(msgspec.json.encode(entry))
        size, last = size + len(parts[-1]), place
        if len(parts) % STEP_ENTRIES == 0 or size - told >= STEP_BYTES:
            told = size
            await asyncio.sleep(0)
    rest: dict[str, object] = {**more, "cursor": cursor} if cursor else dict(more)
    tail = b"".join(b",%b:%b" % (msgspec.json.encode(k), msgspec.json.encode(v)) for k, v in rest.items())
    content = b'{"%b":[%b]%b}' % (field.encode(), b",".join(parts), tail)
    return Response(content, headers=HEADERS, media_type=JSON_TYPE)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
