"""The limits and error texts of Cloudflare's R2, so that code which matches them works here. Pure.

A worker sees `put: The specified object name is not valid. (10020)`: the method, the text, the code.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec

from atoll.errors import BindingRefused, InvalidArgument

MAX_KEY = 1024  # bytes of UTF-8
MAX_CUSTOM = 8192  # bytes of all names and values
MAX_UPLOAD = 5 * 1024**3 - 5 * 1024**2  # bytes of one put or part
MAX_OBJECT = 4_995 * 1024**4 // 1000
MIN_PART = 5 * 1024**2  # all parts but the last
MAX_PARTS = 10_000
MAX_KEYS = 1_000  # of one list or delete
MAX_HTTP = 8192  # bytes of the HTTP metadata
MAX_ETAGS = 100  # in one condition

HTTP_FIELDS = ("contentType", "contentLanguage", "contentDisposition", "contentEncoding", "cacheControl")
EXPIRY = "cacheExpiry"  # milliseconds since 1970
STORAGE_CLASSES = ("Standard", "InfrequentAccess")
DIGESTS = {"md5": "MD5", "sha1": "SHA-1", "sha256": "SHA-256", "sha384": "SHA-384", "sha512": "SHA-512"}

# code -> HTTP status and text
ERRORS: dict[int, tuple[int, str]] = {
    10001: (500, "We encountered an internal error. Please try again."),
    10006: (404, "The specified bucket does not exist."),
    10007: (404, "The specified key does not exist."),
    10008: (409, "The bucket you tried to delete is not empty."),
    10011: (400, "Your proposed upload is smaller than the minimum allowed object size."),
    10012: (400, "Your metadata headers exceed the maximum allowed metadata size."),
    10020: (400, "The specified object name is not valid."),
    10022: (400, f"MaxKeys params must be positive integer <= {MAX_KEYS}."),
    10024: (404, "The specified multipart upload does not exist."),
    10025: (400, "One or more of the specified parts could not be found."),
    10031: (412, "At least one of the pre-conditions you specified did not hold."),
    10037: (400, ""),  # the text names the algorithm
    10039: (416, "The requested range is not satisfiable"),
    10048: (400, "There was a problem with the multipart upload."),
    19014: (403, ""),  # Atoll's own: a quota of the tenant
    19030: (507, ""),  # Atoll's own: the disk
    100100: (400, "Your proposed upload exceeds the maximum allowed object size."),
}


class R2Refused(BindingRefused):
    """R2 refuses an operation. Its text has the code, and no method yet."""

    def __init__(self, number: int, message: str = "") -> None:
        self.number = number
        self.status, text = ERRORS[number]
        self.message = message or text
        super().__init__(f"{self.message} ({number})")


def bad_digest(name: str, given: str, actual: str) -> R2Refused:
    label = DIGESTS[name]
    return R2Refused(
        10037,
        f"The {label} checksum you specified did not match what we received.\n"
        f"You provided a {label} checksum with value: {given}\nActual {label} was: {actual}",
    )


def checked_key(raw: object) -> bytes:
    if not isinstance(raw, str):
        raise R2Refused(10020)
    try:
        key = raw.encode()
    except UnicodeEncodeError:
        raise R2Refused(10020) from None
    if not 1 <= len(key) <= MAX_KEY:
        raise R2Refused(10020)
    return key


def checked_text(raw: object) -> bytes:
    """A prefix, delimiter or startAfter of a list; b"" without one."""
    return checked_key(raw) if isinstance(raw, str) and raw else b""


def checked_keys(raw: object) -> list[bytes]:
    if not isinstance(raw, list) or len(raw) > MAX_KEYS:
        raise R2Refused(10022)
    return [checked_key(key) for key in raw]


def checked_limit(raw: object) -> int:
    if raw is None:
        return MAX_KEYS
    if not isinstance(raw, int) or isinstance(raw, bool) or not 1 <= raw <= MAX_KEYS:
        raise R2Refused(10022)
    return raw


def checked_size(raw: object) -> int:
    """The announced length of an upload."""
    if not isinstance(raw, int) or isinstance(raw, bool) or raw < 0:
        raise InvalidArgument("the length of the upload must be a whole number of bytes")
    if raw > MAX_UPLOAD:
        raise R2Refused(100100)
    return raw


def checked_part_number(raw: object) -> int:
    if not isinstance(raw, int) or isinstance(raw, bool) or not 1 <= raw <= MAX_PARTS:
        raise InvalidArgument(
            f"Part number must be between 1 and {MAX_PARTS} (inclusive). Actual value was: {raw!s:.20}"
        )
    return raw


def checked_upload_id(raw: object) -> str:
    if not isinstance(raw, str) or len(raw) > 1024 or not raw.isascii():
        raise R2Refused(10024)
    return raw


def checked_storage_class(raw: object) -> str:
    if raw is None:
        return STORAGE_CLASSES[0]
    if raw not in STORAGE_CLASSES:
        raise InvalidArgument(f"the storage class is {raw!r:.40}: use {' or '.join(STORAGE_CLASSES)}")
    return str(raw)


def checked_http(raw: object) -> str:
    """The HTTP metadata of an object as JSON; "" for none."""
    if raw is None:
        return ""
    if not isinstance(raw, dict):
        raise InvalidArgument("httpMetadata must be an object")
    fields: dict[str, str | int] = {}
    for name in HTTP_FIELDS:
        value = raw.get(name)
        if value is not None:
            fields[name] = _well_formed(value, name)
    expiry = raw.get(EXPIRY)
    if expiry is not None:
        if not isinstance(expiry, int) or isinstance(expiry, bool) or abs(expiry) > 8_640_000_000_000_000:
            raise InvalidArgument(f"{EXPIRY} must be a date")
        fields[EXPIRY] = expiry
    text = msgspec.json.encode(fields).decode() if fields else ""
    if len(text.encode()) > MAX_HTTP:
        raise R2Refused(10012)
    return text


def checked_custom(raw: object) -> str:
    """The custom metadata of an object as JSON; "" for none."""
    if raw is None or raw == {}:
        return ""
    if not isinstance(raw, dict):
        raise InvalidArgument("customMetadata must be an object of strings")
    fields = {_well_formed(name, "customMetadata"): _well_formed(value, name) for name, value in raw.items()}
    if custom_size(fields) > MAX_CUSTOM:
        raise R2Refused(10012)
    return msgspec.json.encode(fields).decode()


def custom_size(fields: Mapping[str, str]) -> int:
    """As R2 counts: characters, twice as many if one of them is outside of Latin-1."""
    size = sum(len(name) + len(value) for name, value in fields.items())
    is_wide = any(max(map(ord, text), default=0) > 255 for pair in fields.items() for text in pair)
    return size * 2 if is_wide else size


def _well_formed(raw: object, name: object) -> str:
    if not isinstance(raw, str):
        raise InvalidArgument(f"{name!s:.80} must be a string")
    return raw.encode("utf-8", "replace").decode()


def fields_of(text: str) -> dict[str, Any]:
    """Metadata of a row."""
    fields: dict[str, Any] = msgspec.json.decode(text) if text else {}
    return fields


def cursor_of(start: bytes) -> str:
    """The cursor with which a list continues at the first key from `start` on."""
    return base64.urlsafe_b64encode(start).decode()


def checked_cursor(raw: object) -> bytes:
    if raw is None or raw == "":
        return b""
    try:
        if isinstance(raw, str) and len(raw) <= 2 * MAX_KEY:
            return base64.b64decode(raw.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        pass
    raise InvalidArgument("the cursor is not one that list() returned")
