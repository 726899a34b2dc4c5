"""Ids in the form that Cloudflare's tools expect, made from Atoll's own and back: nothing is stored for them."""

from __future__ import annotations

import hashlib
import re

from atoll.api.cloudflare import CloudflareRefusal

# wrangler makes the host of a preview from the first eight digits, as Atoll does.
TAIL = "-4000-8000-000000000000"
VERSION = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})" + TAIL)
PREFIX = "version_"


def version_uuid(version_id: str) -> str:
    digits = version_id.removeprefix(PREFIX)
    return f"{digits[:8]}-{digits[8:12]}{TAIL}"


def version_id(uuid: str) -> str:
    """The id of a version. Raises the refusal that such a version does not exist."""
    found = VERSION.fullmatch(uuid)
    if found is None:
        raise no_version(uuid)
    return f"{PREFIX}{found[1]}{found[2]}"


def no_version(uuid: str) -> CloudflareRefusal:
    return CloudflareRefusal(404, 10007, f"there is no version {uuid[:80]!r} of this worker")


def hashed(text: str) -> str:
    """32 hexadecimal digits for an id that is only ever compared."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def hashed_uuid(text: str) -> str:
    digits = hashed(text)
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
