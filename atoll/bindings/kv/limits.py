"""The limits and error texts of Cloudflare's KV, so that code which matches them works here. Pure.

Every text begins with the status of Cloudflare's API; the worker sees `KV PUT failed: 413 …`.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from atoll.errors import BindingRefused

MAX_KEY = 512  # bytes of UTF-8
MAX_VALUE = 25 * 1024 * 1024
MAX_METADATA = 1024  # bytes of JSON
MAX_KEYS = 1_000  # of one list
MAX_BULK_KEYS = 100  # of one get
MIN_TTL = 60  # seconds
MIN_CACHE_TTL = 30
MAX_TIME = 1 << 53


def refuse(status: int, message: str) -> BindingRefused:
    return BindingRefused(f"{status} {message}")


def checked_key(raw: object) -> bytes:
    if not isinstance(raw, str) or raw == "":
        raise refuse(400, "Key names must not be empty")
    if raw in (".", ".."):
        raise refuse(400, f'Illegal key name "{raw}". Please use a different name.')
    return _short(raw)


def checked_prefix(raw: object) -> bytes:
    return _short(raw) if isinstance(raw, str) else b""


def _short(text: str) -> bytes:
    try:
        key = text.encode()
    except UnicodeEncodeError:
        raise refuse(400, "The key is not well-formed Unicode.") from None
    if len(key) > MAX_KEY:
        raise refuse(414, f"UTF-8 encoded length of {len(key)} exceeds key length limit of {MAX_KEY}.")
    return key


def checked_cache_ttl(raw: object) -> None:
    """Check `cacheTtl`. It has no effect: values are never stale here."""
    if raw is not None and (_whole(raw) or 0) < MIN_CACHE_TTL:
        raise refuse(400, f"Invalid cache_ttl of {raw!s:.40}. Cache TTL must be at least {MIN_CACHE_TTL}.")


def checked_expiry(ttl: object, at: object, now: float, soonest: int = MIN_TTL) -> int | None:
    """When an entry expires, from `expirationTtl` or `expiration`. If both are given, the first one counts.

    `soonest` is the least number of seconds from now for `expiration`; an exported entry may be about to expire.
    """
    if ttl is not None:
        seconds = _whole(ttl)
        if seconds is None or seconds <= 0:
            raise refuse(400, f"Invalid expiration_ttl of {ttl!s:.40}. Please specify integer greater than 0.")
        if seconds < MIN_TTL:
            raise refuse(400, f"Invalid expiration_ttl of {ttl!s:.40}. Expiration TTL must be at least {MIN_TTL}.")
        return int(now) + seconds
    if at is not None:
        moment = _whole(at)
        if moment is None or moment <= now:
            raise refuse(
                400,
                f"Invalid expiration of {at!s:.40}. Please specify integer greater than the current number of seconds"
                " since the UNIX epoch.",
            )
        if moment < int(now) + soonest:
            raise refuse(
                400,
                f"Invalid expiration of {at!s:.40}. Expiration times must be at least {MIN_TTL} seconds in the future.",
            )
        return moment
    return None


def _whole(raw: object) -> int | None:
    """A number as JavaScript's parseInt reads it; None if it is not a number."""
    try:
        number = float(raw) if isinstance(raw, int | float | str) and not isinstance(raw, bool) else None
        return None if number is None or abs(number) > MAX_TIME else int(number)
    except (ValueError, OverflowError):
        return None


def checked_metadata(raw: object) -> str | None:
    """The metadata as JSON text, or None."""
    if raw is None:
        return None
    if not isinstance(raw, str):
        raise refuse(400, "The metadata is not JSON.")
    try:
        encoded = raw.encode()
        if len(encoded) > MAX_METADATA:
            raise refuse(413, f"Metadata length of {len(encoded)} exceeds limit of {MAX_METADATA}.")
        msgspec.json.decode(encoded)
    except (UnicodeEncodeError, msgspec.DecodeError, RecursionError):
        raise refuse(400, "The metadata is not JSON.") from None
    return raw


def checked_value(value: bytes) -> bytes:
    if len(value) > MAX_VALUE:
        raise too_large(len(value))
    return value


def too_large(length: int) -> BindingRefused:
    return refuse(413, f"Value length of {length} exceeds limit of {MAX_VALUE}.")


def checked_limit(raw: object) -> int:
    if raw is None:
        return MAX_KEYS
    limit = _whole(raw)
    if limit is None or limit < 1:
        raise refuse(400, f"Invalid key_count_limit of {raw!s:.40}. Please specify an integer greater than 0.")
    if limit > MAX_KEYS:
        raise refuse(400, f"Invalid key_count_limit of {raw!s:.40}. Please specify an integer less than {MAX_KEYS}.")
    return limit


def checked_keys(raw: Any) -> list[bytes]:
    if not isinstance(raw, list) or not raw:
        raise refuse(400, "You must request a minimum of 1 key")
    if len(raw) > MAX_BULK_KEYS:
        raise refuse(400, f"You can request a maximum of {MAX_BULK_KEYS} keys")
    return [checked_key(key) for key in raw]


def cursor_of(after: bytes) -> str:
    """The cursor with which a worker continues a list."""
    return base64.urlsafe_b64encode(after).decode()


def checked_cursor(raw: object) -> bytes:
    """The key that a cursor stands for; b"" without one."""
    if raw is None or raw == "":
        return b""
    try:
        if isinstance(raw, str) and len(raw) <= 2 * MAX_KEY:
            return base64.b64decode(raw.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        pass
    raise refuse(400, "Invalid cursor.")
