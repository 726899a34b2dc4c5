"""Entries of KV in bulk: from JSON, checked, and packed for the store. Pure; job processes handle large bodies.

The packed form is the number of entries, their size in bytes, then a length and a msgpack array for each. The result of
a job is b"+" and the packed entries, or b"-" and why the body was refused.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from atoll.bindings.kv import limits
from atoll.bindings.kv.store import StoredValue
from atoll.errors import BindingRefused
from atoll.offload.jobs import Buffer, Job

MAX_PAIRS: Final = 10_000
LINES: Final = "application/x-ndjson"
AS_LINES: Final = f"send lines as {LINES} instead"
HEAD: Final = struct.Struct("<IQ")  # number of entries, and bytes of keys, values and metadata
LENGTH: Final = struct.Struct("<I")
DONE, REFUSED = b"+", b"-"

PACK_PAIRS = Job("atoll.bindings.kv.pairs:packed_pairs")
PACK_LINE = Job("atoll.bindings.kv.pairs:packed_line")
PACK_KEYS = Job("atoll.bindings.kv.pairs:packed_keys")
SHOW_LINE = Job("atoll.bindings.kv.pairs:shown_line")


class Pair(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One entry in bulk. With `base64` the value is bytes in base64, else text."""

    key: str
    value: str
    base64: bool = False
    expiration: int | None = None
    expiration_ttl: int | None = None
    metadata: Any = None


class RawPair(msgspec.Struct, forbid_unknown_fields=True):
    """The same, with its metadata as raw JSON."""

    key: str
    value: str
    base64: bool = False
    expiration: int | None = None
    expiration_ttl: int | None = None
    metadata: msgspec.Raw = msgspec.Raw(b"null")


class PackedEntry(msgspec.Struct, array_like=True):
    key: bytes
    value: bytes
    metadata: str | None
    expires_at: int | None


class BadBulk(Exception):
    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Moment(NamedTuple):
    """When a bulk body arrived, and how soon its entries may expire."""

    now: float
    soonest: int = limits.MIN_TTL


def decoded(content: Buffer, shape: Any, where: str = "the body") -> Any:
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBulk(f"{where} does not fit: {error}", "see docs/bindings/kv.md") from None


def raw_list(content: Buffer, what: str, hint: str) -> list[msgspec.Raw]:
    """The entries of a JSON array, counted before one of them is decoded."""
    found: list[msgspec.Raw] = decoded(content, list[msgspec.Raw])
    if len(found) > MAX_PAIRS:
        raise BadBulk(f"{len(found)} {what} are more than the limit of {MAX_PAIRS}", hint)
    return found


def entry_of(raw: Buffer | msgspec.Raw, where: str, hint: str, at: Moment) -> tuple[bytes, StoredValue] | None:
    """A checked entry of a bulk body. `where` names it in errors. None: an exported entry that has expired."""
    pair: RawPair = decoded(raw, RawPair, where)
    is_over = pair.expiration_ttl is None and pair.expiration is not None and 0 < pair.expiration <= at.now
    if is_over and at.soonest == 0:
        return None
    try:
        key = limits.checked_key(pair.key)
        expires_at = limits.checked_expiry(pair.expiration_ttl, pair.expiration, at.now, at.soonest)
        text = msgspec.json.encode(msgspec.json.decode(pair.metadata))  # without whitespace
        metadata = limits.checked_metadata(None if text == b"null" else text.decode())
        value = base64.b64decode(pair.value, validate=True) if pair.base64 else pair.value.encode()
        return key, StoredValue(limits.checked_value(value), metadata, expires_at)
    except BindingRefused as error:
        raise BadBulk(f"{where}: {str(error)[4:]}", hint) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadBulk(f"{where}: its metadata does not fit: {error}", hint) from None
    except (binascii.Error, ValueError):
        raise BadBulk(f"{where}: the value is not base64", "leave out `base64` for text") from None


def line_of(key: bytes, entry: StoredValue) -> bytes:
    """An entry in the form of an export."""
    try:
        text, is_base64 = entry.value.decode(), False
    except UnicodeDecodeError:
        text, is_base64 = base64.b64encode(entry.value).decode(), True
    metadata = None if entry.metadata is None else msgspec.Raw(_on_one_line(entry.metadata.encode()))
    return msgspec.json.encode(Pair(key.decode(), text, is_base64, entry.expires_at, None, metadata)) + b"\n"


def _on_one_line(json: bytes) -> bytes:
    return json if b"\n" not in json else msgspec.json.encode(msgspec.json.decode(json))


# --- packed ---


def packed(entries: list[tuple[bytes, StoredValue]]) -> list[bytes]:
    pieces = []
    size = 0
    for key, entry in entries:
        raw = msgspec.msgpack.encode(PackedEntry(key, entry.value, entry.metadata, entry.expires_at))
        pieces += [LENGTH.pack(len(raw)), raw]
        size += len(key) + len(entry.value) + len((entry.metadata or "").encode())
    return [HEAD.pack(len(entries), size), *pieces]


class PackedPairs:
    """Entries that a job packed. The thread that stores them unpacks each in turn."""

    def __init__(self, data: Buffer) -> None:
        self._data = data
        count, size = HEAD.unpack_from(data, len(DONE))
        self._count, self.bytes = int(count), int(size)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[bytes, StoredValue]]:
        decode, at = msgspec.msgpack.Decoder(PackedEntry).decode, len(DONE) + HEAD.size
        for _ in range(self._count):
            (length,) = LENGTH.unpack_from(self._data, at)
            at += LENGTH.size
            entry = decode(self._data[at : at + length])
            at += length
            yield entry.key, StoredValue(entry.value, entry.metadata, entry.expires_at)


# --- jobs ---


def packed_pairs(data: Buffer, args: dict[str, Any]) -> list[bytes]:
    """Check and pack a whole JSON array of pairs."""
    try:
        raws = raw_list(data, "pairs", AS_LINES)
        found = [entry_of(raw, f"pair {i}", "nothing was stored", Moment(args["now"])) for i, raw in enumerate(raws)]
    except BadBulk as error:
        return [REFUSED, msgspec.json.encode([str(error), error.hint])]
    return [DONE, *packed([each for each in found if each is not None])]


def packed_line(data: Buffer, args: dict[str, Any]) -> list[bytes]:
    """Check and pack one long line."""
    try:
        found = entry_of(data, args["where"], args["hint"], Moment(args["now"], 0))
    except BadBulk as error:
        return [REFUSED, msgspec.json.encode([str(error), error.hint])]
    return [DONE, *packed([] if found is None else [found])]


def checked_keys(data: Buffer) -> list[bytes]:
    """Check a whole JSON array of keys. BindingRefused if one of them is not a valid key."""
    return [limits.checked_key(decoded(raw, str)) for raw in raw_list(data, "keys", "send them in parts")]


def packed_keys(data: Buffer, args: dict[str, Any]) -> list[bytes]:
    try:
        return [DONE, msgspec.msgpack.encode(checked_keys(data))]
    except BadBulk as error:
        return [REFUSED, msgspec.json.encode([str(error), error.hint])]
    except BindingRefused as error:
        return [REFUSED, msgspec.json.encode([str(error)[4:], "nothing was removed"])]


def shown_line(data: Buffer, args: dict[str, Any]) -> bytes:
    """A large value as a line of an export."""
    return line_of(args["key"], StoredValue(bytes(data), args["metadata"], args["expires_at"]))
