"""esbuild's protocol with the program that drives it: values in little-endian packets over stdin and stdout.

esbuild's own JavaScript package uses it. It has no specification, so the binary is pinned to one version
(bundler/package-lock.json); esbuild refuses a driver of another version.
"""

from __future__ import annotations

import struct
from typing import Any

U32 = struct.Struct("<I")
INT = struct.Struct("<i")
NULL, BOOL, NUMBER, STRING, BYTES, ARRAY, OBJECT = range(7)


def encode_packet(number: int, value: object) -> bytes:
    """A request to esbuild."""
    body = bytearray(U32.pack(number << 1))
    _encode(body, value)
    return U32.pack(len(body)) + bytes(body)


def decode_packet(body: bytes) -> tuple[int, bool, Any]:
    """Decodes a packet without its length: its id, whether it is a request from esbuild, and its value."""
    (head,) = U32.unpack_from(body)
    value, _ = _decode(body, 4)
    return head >> 1, head & 1 == 0, value


def _encode(out: bytearray, value: object) -> None:
    if value is None:
        out.append(NULL)
    elif isinstance(value, bool):
        out += bytes((BOOL, value))
    elif isinstance(value, int):
        out.append(NUMBER)
        out += INT.pack(value)
    elif isinstance(value, str | bytes):
        raw = value.encode() if isinstance(value, str) else value
        out.append(STRING if isinstance(value, str) else BYTES)
        out += U32.pack(len(raw)) + raw
    elif isinstance(value, list | tuple):
        out.append(ARRAY)
        out += U32.pack(len(value))
        for item in value:
            _encode(out, item)
    elif isinstance(value, dict):
        out.append(OBJECT)
        out += U32.pack(len(value))
        for key, item in value.items():
            raw = str(key).encode()
            out += U32.pack(len(raw)) + raw
            _encode(out, item)
    else:
        raise TypeError(f"esbuild takes no {type(value).__name__}")


def _decode(data: bytes, at: int) -> tuple[Any, int]:
    kind, at = data[at], at + 1
    if kind == NULL:
        return None, at
    if kind == BOOL:
        return bool(data[at]), at + 1
    if kind == NUMBER:
        return INT.unpack_from(data, at)[0], at + 4
    (count,) = U32.unpack_from(data, at)
    at += 4
    if kind in (STRING, BYTES):
        raw = data[at : at + count]
        return (raw.decode("utf-8", "replace") if kind == STRING else raw), at + count
    if kind == ARRAY:
        items = []
        for _ in range(count):
            item, at = _decode(data, at)
            items.append(item)
        return items, at
    if kind != OBJECT:
        raise ValueError(f"esbuild sent a value of kind {kind}")
    fields = {}
    for _ in range(count):
        (size,) = U32.unpack_from(data, at)
        key = data[at + 4 : at + 4 + size].decode()
        fields[key], at = _decode(data, at + 4 + size)
    return fields, at


def encode_reply(number: int, value: object) -> bytes:
    """The answer to a request from esbuild."""
    packet = bytearray(encode_packet(number, value))
    packet[4] |= 1
    return bytes(packet)
