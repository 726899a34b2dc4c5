"""Turns the received body of a deploy, JSON or a form, into fields and modules. Pure, and run in two places.

A body that is small, or has little besides its code, is unpacked in place (`unpack_light`). A job process unpacks every
other body. It returns a bounded number of fields, followed by the bytes of the modules. So the event loop never decodes
unbounded input.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from atoll.api.refusals import ApiCode, Refused
from atoll.control.checks.body import MAX_MODULES, DeployBody, checked_env, parse_body
from atoll.control.checks.code import CODE_FIELDS, Unpacked, code_bytes, unpacked, without_code
from atoll.control.checks.form import form_body
from atoll.offload.jobs import Buffer, Job

SMALL: Final = 64 << 10  # bytes of any body: decoding them takes a few milliseconds
FIELD_BYTES: Final = 4 << 20  # bytes of one field that is not code, as sent
MAX_VALUES: Final = 20_000  # values in all fields that are not code, nested values included

UNPACK: Final = Job("atoll.control.checks.unpack:unpack_job", seconds=20)

_NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_Sketch: Final = msgspec.defstruct("_Sketch", [(name, Raw, Raw()) for name in DeployBody.__struct_fields__])


class Packed(Struct):
    """The result of the job process: a refusal, or the fields and the size of each piece of code that follows."""

    refused: tuple[int, str, str] | None = None
    body: Unpacked | None = None
    sizes: list[int] = []


def unpack_light(raw: bytes, boundary: bytes) -> Unpacked | None:
    """Unpack a body that takes a few milliseconds; None for a body that might take longer."""
    if len(raw) <= SMALL:
        return _unpack(raw, boundary)
    if boundary:
        return None
    code = sum(size for name, size in field_sizes(raw).items() if name in CODE_FIELDS)
    # Modules and maps are objects: every entry has a colon after a quote. The code may contain more of these.
    if len(raw) - code > SMALL or raw.count(b'":') > 4 * MAX_MODULES:
        return None
    try:
        return unpacked(msgspec.json.decode(raw, type=DeployBody))  # typed: rejects other fields without reading them
    except _NOT_JSON:
        return None  # the job process gives a better message


def field_sizes(raw: Buffer) -> dict[str, int]:
    """The size of each field of a JSON object, without decoding the values; empty if the body is not an object."""
    try:
        sketch = msgspec.json.decode(raw, type=_Sketch)
    except _NOT_JSON:
        return {}
    return {name: len(memoryview(getattr(sketch, name))) for name in DeployBody.__struct_fields__}


def _unpack(raw: bytes, boundary: bytes) -> Unpacked:
    return form_body(raw, boundary) if boundary else unpacked(parse_body(raw))


# In a job process


def unpack_job(data: Buffer, args: dict[str, Any]) -> list[bytes]:
    try:
        body = _bounded(data, args["boundary"])
        pieces = code_bytes(body)
        packed = Packed(body=without_code(body), sizes=list(map(len, pieces)))
    except Refused as error:
        packed, pieces = Packed(refused=(int(error.reason), str(error)[:2000], error.hint[:2000])), []
    head = msgspec.json.encode(packed)
    return [len(head).to_bytes(4, "big"), head, *pieces]


def _bounded(data: Buffer, boundary: bytes) -> Unpacked:
    """Unpack a body. Refused if its fields, code aside, are too large for the event loop to decode."""
    if not boundary:
        for name, size in field_sizes(data).items():
            if name not in CODE_FIELDS and size > FIELD_BYTES:
                raise Refused(
                    ApiCode.TOO_LARGE,
                    f"`{name}` has {size:,} bytes, more than the limit of {FIELD_BYTES:,}",
                    "send less",
                )
    body = _unpack(data[:], boundary)
    if body.env is not UNSET:
        checked_env(body.env)
    total = 0
    for name in DeployBody.__struct_fields__:
        count = count_values(msgspec.to_builtins(getattr(body, name))) if getattr(body, name) is not UNSET else 0
        total += count
        if total > MAX_VALUES:
            message = f"`{name}` has {count:,} values; the limit for all fields together is {MAX_VALUES:,}"
            raise Refused(ApiCode.TOO_LARGE, message, "put large values into a module")
    return body


def count_values(value: object) -> int:
    """The number of values in a value, itself and nested values included."""
    count, rest = 0, [value]
    while rest:
        each = rest.pop()
        count += 1
        if isinstance(each, dict):
            rest += each.values()
        elif isinstance(each, list | tuple):
            rest += each
    return count
