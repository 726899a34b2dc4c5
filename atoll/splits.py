"""Chooses the version that serves a request while several versions of a worker have traffic. Pure: no I/O, no clock.

The first of these that applies decides, as on Cloudflare:

    Cloudflare-Workers-Version-Overrides: shop="version_…"   this version of the worker `shop`, if it is deployed
    Cloudflare-Workers-Version-Key: any text                  the same version for the same text
    neither                                                   by chance, in proportion to the percentages

A header that is malformed is ignored. A worker whose traffic goes to one version has no Split, so the router does
nothing for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from random import random

from msgspec import Struct

from atoll.workers import Version

WHOLE = 10_000  # shares are hundredths of a percent
MARK = b"\ncloudflare-workers-version-"
OVERRIDES = b"\ncloudflare-workers-version-overrides:"
KEY = b"\ncloudflare-workers-version-key:"
MAX_OVERRIDES = 4096  # bytes of the header that are read
OVERRIDE = re.compile(rb'[ \t]*([a-z0-9_*][a-z0-9_*.-]*)="([!-~]*)"[ \t]*')  # one member of a structured dictionary


class Share(Struct, frozen=True):
    version: Version
    hundredths: int


class Split:
    """The versions of one worker that have traffic, the newest first.

    The newest version has the lowest buckets. While its percentage grows, a key that leads to it stays with it.
    """

    def __init__(self, shares: Sequence[Share]) -> None:
        assert sum(share.hundredths for share in shares) == WHOLE
        self.shares = tuple(shares)
        self._by_id = {share.version.id.encode(): share.version for share in shares}
        self._worker = shares[0].version.worker_name.encode()
        self._salt = shares[0].version.worker_id.encode()[:64]

    def choose(self, head: bytes) -> Version:
        """The version for a request. `head` is that of an HTTP request or of a CALL frame."""
        lower = head.lower()
        if MARK in lower:
            named = self._overridden(_value(head, lower, OVERRIDES))
            if named is not None:
                return named
            key = _value(head, lower, KEY)
            if key:
                return self._at(self.bucket(key))
        return self._at(int(random() * WHOLE))

    def by_chance(self) -> Version:
        """The version for a call without a request, such as one of a service binding."""
        return self._at(int(random() * WHOLE))

    def bucket(self, key: bytes) -> int:
        """A number below WHOLE that depends on the worker and the key alone, also after a restart."""
        return int.from_bytes(blake2b(key, digest_size=8, key=self._salt).digest()) % WHOLE

    def _at(self, bucket: int) -> Version:
        for share in self.shares:
            bucket -= share.hundredths
            if bucket < 0:
                return share.version
        raise AssertionError("the shares are less than the whole")

    def _overridden(self, value: bytes) -> Version | None:
        """The version that the header names for this worker; None if it names none, or one without a deployment."""
        named = b""
        for member in value[:MAX_OVERRIDES].split(b",") if value else ():
            match = OVERRIDE.fullmatch(member)
            if match is None:
                return None
            if match[1] == self._worker:
                named = match[2]  # the last one counts
        return self._by_id.get(named)


def _value(head: bytes, lower: bytes, line: bytes) -> bytes:
    """The value of a header with its case; b"" if it is missing. The first of several counts."""
    at = lower.find(line)
    if at < 0:
        return b""
    at += len(line)
    end = head.find(b"\r", at)
    return head[at : end if end >= 0 else len(head)].strip()
