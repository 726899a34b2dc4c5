"""Receives request bodies of the control API, within limits of size, spool room and time.

An endpoint sets the size limit before the first byte is read. By then the caller is known, so the body of an
unauthenticated request is never received. Small bodies stay in memory, others go to unnamed files
(offload/spool.py). All of them count against the tenant and the node until they are closed.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from starlette.requests import Request

from atoll.api.callers import Caller
from atoll.api.refusals import ApiCode, Refused
from atoll.api.work import CALLER, WORK, Work
from atoll.offload.spool import Spool

SMALL_BODY: Final = 256 << 10  # the default limit: decoding the worst JSON of this size takes 20 ms
JSON_TYPE: Final = "application/json"

GRACE: Final = 30.0  # seconds that every body gets
SLOWEST: Final = 32 << 10  # bytes that earn one more second
UNWATCHED: Final = 64 << 10
HELD: Final = "atoll.held"  # bodies of a request, in its scope


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


async def receive_body(request: Request, limit: int = SMALL_BODY, hint: str = "") -> Spool:
    """The body, of at most `limit` bytes. The caller closes it."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limit:
        raise _too_large(limit, hint)
    work, caller = request.scope[WORK], request.scope[CALLER]
    assert isinstance(work, Work) and isinstance(caller, Caller)
    spool, began = Spool(work.room, caller.tenant), time.monotonic()
    try:
        chunks = request.stream()
        while True:
            left = began + GRACE + spool.size / SLOWEST - time.monotonic()
            async with asyncio.timeout(max(left, 0.0)):
                chunk = await anext(chunks, None)
            if chunk is None:
                break
            if spool.size + len(chunk) > limit:
                raise _too_large(limit, hint)
            await spool.add(chunk)
        await spool.finish()
    except TimeoutError:
        spool.close()
        message = f"the body arrived too slowly: the limit is {GRACE:g} s plus 1 s for each {SLOWEST >> 10} KB"
        raise Refused(ApiCode.SLOW_BODY, message, "try again on a faster connection, or send less") from None
    except BaseException:
        spool.close()
        raise
    return spool


async def receive_json(request: Request, limit: int = SMALL_BODY, hint: str = "") -> Spool:
    """The body, declared as JSON. It is not parsed here: decoding into a shape gives the better errors."""
    found = media_type(request)
    if found != JSON_TYPE:
        raise Refused(
            ApiCode.MEDIA_TYPE,
            f"the body is declared as {found[:80]}" if found else "the body is not declared as anything",
            "send the header Content-Type: application/json",
        )
    return await receive_body(request, limit, hint)


async def read_body(request: Request, limit: int = SMALL_BODY, hint: str = "") -> bytes:
    """The body as bytes. They count as held until the request is answered."""
    return await _kept(request, await receive_body(request, limit, hint))


async def read_json(request: Request, limit: int = SMALL_BODY, hint: str = "") -> bytes:
    """The bytes of a body that is declared as JSON."""
    return await _kept(request, await receive_json(request, limit, hint))


async def _kept(request: Request, body: Spool) -> bytes:
    request.scope.setdefault(HELD, []).append(body)
    return await body.read()


def let_go(request: Request) -> None:
    """Close the bodies of a request that is answered."""
    for body in request.scope.pop(HELD, ()):
        body.close()


@contextmanager
def unwatched(size: int) -> Iterator[None]:
    """Decode without the garbage collector, which would scan all values again and again."""
    if size <= UNWATCHED or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _too_large(limit: int, hint: str) -> Refused:
    return Refused(ApiCode.TOO_LARGE, f"the body is larger than {limit:,} bytes", hint)
