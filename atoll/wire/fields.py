"""The JSON inside frames, with checks against a hostile engine."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from atoll.errors import EngineError

MESSAGE_CHARS = 8 << 10  # longer texts from the engine are cut, not rejected: a worker can cause them

_read_json = msgspec.json.Decoder().decode  # takes a quarter of the time of the standard library
_write_json = msgspec.json.Encoder().encode  # takes a tenth of it


def to_json(value: object) -> bytes:
    try:
        text = _write_json(value)
        if text.isascii():
            return text
    except (ValueError, TypeError):
        pass
    return to_exact_json(value)


def to_exact_json(value: object) -> bytes:
    """Slower. Lone surrogates, legal in JavaScript strings, stay as escapes, and NaN is an error, not null."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def read_json(data: bytes) -> dict[str, Any]:
    """A JSON object from an engine. Ill-formed text in it is replaced, not rejected: a worker can cause it."""
    try:
        value = _read_json(data)
    except (ValueError, RecursionError):  # the slower parser accepts more
        try:
            value = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise EngineError("malformed JSON") from None
    if not isinstance(value, dict):
        raise EngineError("the JSON is not an object")
    return value


def text_field(fields: dict[str, Any], name: str, longest: int = MESSAGE_CHARS) -> str:
    """A text, cut to `longest` characters, lone surrogates replaced so that it can be stored; "" for anything else.

    Not rejected, because a worker can cause it: `throw {name: 5}` must not end the engine of its neighbours.
    """
    value = fields.get(name)
    if not isinstance(value, str):
        return ""
    return value[:longest].encode("utf-8", "replace").decode("utf-8")


def int_field(fields: dict[str, Any], name: str) -> int:
    """An optional whole number that fits 53 bits and is not negative."""
    value = fields.get(name, 0)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise EngineError(f"{name} is not a count")
    return value
