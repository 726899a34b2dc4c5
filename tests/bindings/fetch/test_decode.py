"""Decoding of content codings, whatever the split into packets."""

from __future__ import annotations

import gzip
import struct
from random import Random

import pytest
from backports import zstd

from atoll.bindings.fetch.decode import Decoding
from atoll.errors import NetworkError

GZIP = [gzip.compress(b"one ", mtime=0), gzip.compress(b"two", mtime=0)]
ZSTD = [zstd.compress(b"one "), zstd.compress(b"two")]
SKIPPED = struct.pack("<II", 0x184D2A50, 4) + b"meta"  # as pzstd writes before each of its frames


def decoded(coding: str, pieces: list[bytes]) -> bytes:
    decoding = Decoding(coding, "server:80")
    content = b""
    for piece in pieces:
        decoding.feed(piece)
        while not decoding.is_hungry:
            content += decoding.take()
    decoding.finish()
    return content


@pytest.mark.parametrize(
    ("coding", "body"),
    [("gzip", b"".join(GZIP)), ("zstd", b"".join(ZSTD)), ("zstd", SKIPPED + ZSTD[0] + SKIPPED + ZSTD[1])],
    ids=["gzip", "zstd", "zstd with frames to skip"],
)
def test_members_are_joined_whatever_the_split_into_packets(coding: str, body: bytes) -> None:
    assert decoded(coding, [body]) == b"one two"
    assert decoded(coding, [body[at : at + 1] for at in range(len(body))]) == b"one two"
    for cut in range(1, len(body)):
        assert decoded(coding, [body[:cut], body[cut:]]) == b"one two"


def test_trailing_garbage_is_ignored() -> None:
    assert decoded("gzip", [GZIP[0], b"\x1f", b"junk", GZIP[1]]) == b"one "
    assert decoded("gzip", [GZIP[0] + b"\0\0\0", GZIP[1]]) == b"one "
    assert decoded("zstd", [ZSTD[0], ZSTD[1][:2]]) == b"one "


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_body_of_empty_members_is_refused(coding: str) -> None:
    empty = gzip.compress(b"") if coding == "gzip" else zstd.compress(b"")
    assert decoded(coding, [empty * 500]) == b""
    with pytest.raises(NetworkError, match="too many members"):
        decoded(coding, [empty * 5000])


def test_blocks_as_bgzip_writes_them_are_not_too_many() -> None:
    block = gzip.compress(Random(1).randbytes(1000))
    assert len(decoded("gzip", [block * 2000])) == 2_000_000
