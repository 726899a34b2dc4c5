"""Cloudflare's API, /client/v4, as stock tools call it: its envelope, its errors, its ids.

Every answer is `{"success", "errors", "messages", "result"}`. Some tools decide by `success` and others by the status,
so the two always agree. Tools match on the codes of errors: an ApiCode that Cloudflare has too keeps its number, and
CODES has the numbers of the others. Bindings have their part of this API in their folder (`cloudflare.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.bodies import SMALL_BODY, read_body, unwatched
from atoll.api.callers import Caller
from atoll.api.refusals import API_ERRORS, ApiCode, Refused
from atoll.api.routes import HEADERS, json_answer

V4 = "/client/v4"
ACCOUNT = f"{V4}/accounts/{{account}}"
NO_ROUTE = 7003
SHOWN_AT_ONCE = 20  # entries of a list, before other tasks get a turn

# Cloudflare's numbers for errors that have another number in the native API.
CODES: dict[ApiCode, int] = {
    ApiCode.NO_WORKER: 10007,
    ApiCode.PARSE: 10021,
    ApiCode.NO_HANDLERS: 10021,
    ApiCode.UNSUPPORTED_HANDLERS: 10021,
    ApiCode.BAD_TRIGGER: 10021,
    ApiCode.FORBIDDEN: 9109,
    ApiCode.TOO_MANY_LOGINS: 10000,
    ApiCode.NO_TENANT: NO_ROUTE,
    ApiCode.METHOD: 10405,
}

T = TypeVar("T")


class CloudflareRefusal(Refused):
    """A refusal with a code and a status of Cloudflare's."""

    def __init__(self, status: int, code: int, message: str, hint: str = "") -> None:
        super().__init__(ApiCode.BAD_BODY, message, hint)
        self.status = status
        self.number = code


class CloudflareTools(msgspec.Struct, frozen=True):
    """What the node passes to the part of a binding."""

    audit: AuditLog
    # (caller, name of a worker, field of a deploy -> its new value, or a function that makes it of the present one):
    # makes a version, unless nothing changes
    change: Callable[[Caller, str, Mapping[str, Any]], Any]
    find: Callable[[str, Caller], Any]  # a worker by name; Refused if the tenant has none
    workers_of: Callable[[str], Sequence[Any]]  # all workers of a tenant


def account_id(tenant: str) -> str:
    """The id of the account that a tenant is."""
    return hashlib.sha256(b"atoll account " + tenant.encode()).hexdigest()[:32]


def envelope(
    result: object,
    *,
    status: int = 200,
    info: Mapping[str, Any] | None = None,
    messages: Sequence[str] = (),
) -> Response:
    """The answer of a request that succeeded."""
    told = [{"code": 10000, "message": text} for text in messages]
    body: dict[str, Any] = {"success": True, "errors": [], "messages": told, "result": result}
    if info is not None:
        body["result_info"] = info
    return json_answer(body, status=status)


def refusal_envelope(refused: Refused) -> Response:
    """The answer of a request that was refused."""
    facts = API_ERRORS[refused.reason]
    status, code = facts.status, CODES.get(refused.reason, int(refused.reason))
    if isinstance(refused, CloudflareRefusal):
        status, code = refused.status, refused.number
    return failed(status, code, told(refused), refused.retry_after)


def failed(status: int, code: int, message: str, retry_after: int = 0) -> Response:
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    if retry_after:
        headers["retry-after"] = str(retry_after)
    else:
        headers["x-should-retry"] = "false"  # Cloudflare's SDKs repeat a 409 otherwise
    body = {"success": False, "errors": [{"code": code, "message": message}], "messages": [], "result": None}
    return json_answer(body, status=status, headers=headers)


def told(refused: Refused) -> str:
    """A refusal in words, with the place in the script, as wrangler maps it to the source."""
    has_hint = refused.hint and "/api/" not in refused.hint  # hints may name native endpoints
    text = f"{refused}: {refused.hint}" if has_hint else str(refused)
    failure = refused.failure
    if failure is not None and failure.file:
        text += f"\n  at {failure.file}:{failure.line}:{failure.column}"
    return text


async def read_v4(request: Request, shape: type[T], *, limit: int = SMALL_BODY, empty: T | None = None) -> T:
    """A JSON body of a shape. Unknown fields are ignored, and so is the Content-Type: wrangler sends none with some.

    `empty` is what no body means, if it may be missing.
    """
    raw = await read_body(request, limit)
    if not raw and empty is not None:
        return empty
    try:
        with unwatched(len(raw)):
            return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CloudflareRefusal(400, 10026, f"the body does not fit: {error}") from None


def page_info(request: Request, usual: int, most: int) -> tuple[int, int]:
    """The number of the page that a request asks for, and its size."""
    return _number(request, "page", 1, 10**9), min(_number(request, "per_page", usual, 10**9), most)


async def paged(
    request: Request,
    found: Sequence[T],
    show: Callable[[T], object] = lambda each: each,
    *,
    usual: int = 100,
    most: int = 1000,
) -> Response:
    """A page of a list that is in memory. Only what is on the page is shown, in steps: a tenant may have thousands."""
    page, size = page_info(request, usual, most)
    shown: list[object] = []
    for each in found[(page - 1) * size : page * size]:
        shown.append(show(each))
        if len(shown) % SHOWN_AT_ONCE == 0:
            await asyncio.sleep(0)
    counts = {"page": page, "per_page": size, "count": len(shown), "total_count": len(found)}
    return envelope(shown, info=counts | {"total_pages": -(-len(found) // size)})


def _number(request: Request, name: str, usual: int, most: int) -> int:
    raw = request.query_params.get(name) or str(usual)
    if not (raw.isascii() and raw.isdigit() and len(raw) <= 9 and 1 <= int(raw) <= most):
        raise CloudflareRefusal(400, 10026, f"`{name}` is {raw[:80]!r}, which is not a positive number")
    return int(raw)


def raw_answer(content: bytes, headers: Mapping[str, str] | None = None) -> Response:
    """Bytes of a tenant. No browser may render them as a page of this host."""
    safe = {"content-type": "application/octet-stream", "content-disposition": "attachment"}
    return Response(content, headers={**HEADERS, **safe, **(headers or {})})
