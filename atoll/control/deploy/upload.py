"""Receives a deploy and unpacks it, here or in a job process (unpack.py).

A form is the one kind of body that a page of another site could send. So a deploy by form needs a header that such a
page cannot add: Authorization or X-Atoll-Tenant.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from starlette.requests import Request

from atoll.api.bodies import media_type, receive_body, receive_json
from atoll.api.multipart import FORM, boundary_of
from atoll.api.refusals import ApiCode, Refused
from atoll.api.work import offloaded
from atoll.config import Settings
from atoll.control.checks.code import Unpacked, with_code
from atoll.control.checks.unpack import UNPACK, Packed, unpack_light
from atoll.offload.jobs import Result

STEP: Final = 1 << 20  # bytes of modules that are copied before other tasks get a turn


def max_body(settings: Settings) -> int:
    """The largest body of a deploy. Base64 and JSON's escapes make a script longer."""
    return settings.script_bytes * 2 + (1 << 20)


async def read_deploy(request: Request, limit: int, hint: str) -> Unpacked:
    """The deploy in a request."""
    boundary = boundary_of(request) if media_type(request) == FORM else b""
    receive = receive_body if boundary else receive_json
    with await receive(request, limit, hint) as body:
        if body.is_small:
            found = unpack_light(body.data, boundary)
            if found is not None:
                return found
        with await offloaded(
            request, UNPACK, body if not body.is_small else body.data, {"boundary": boundary}
        ) as result:
            return await _brought_back(result)


async def _brought_back(result: Result) -> Unpacked:
    size = int.from_bytes(await result.read(0, 4))
    packed = msgspec.json.decode(await result.read(4, size), type=Packed)
    if packed.refused is not None:
        reason, message, hint = packed.refused
        raise Refused(ApiCode(reason), message, hint)
    assert packed.body is not None
    offset, copied, pieces = 4 + size, 0, []
    for length in packed.sizes:
        pieces.append(await result.read(offset, length))
        offset, copied = offset + length, copied + length
        if copied >= STEP:
            copied = 0
            await asyncio.sleep(0)  # other tasks get a turn
    return with_code(packed.body, pieces)
