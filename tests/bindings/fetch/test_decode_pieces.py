"""Any coded body, in any split, decodes to the result of the reference libraries."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from random import Random

import brotli
import pytest
from backports import zstd
from hypothesis import example, given, settings
from hypothesis import strategies as st

from atoll.bindings.fetch.decode import STEP, Decoding
from atoll.errors import NetworkError
from tests.running import Answer


def raw_deflate(data: bytes, bits: int = -15) -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, bits)
    return deflate.compress(data) + deflate.flush()


def stored(data: bytes) -> bytes:
    deflate = zlib.compressobj(0, zlib.DEFLATED, -15)
    return deflate.compress(data) + deflate.flush()


def large_window_zstd(data: bytes) -> bytes:
    return zstd.compress(data, options={zstd.CompressionParameter.window_log: 23})


ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "br": ("br", brotli.compress),
    "br, fast": ("br", lambda data: bytes(brotli.compress(data, quality=1))),
    "br, small window": ("br", lambda data: bytes(brotli.compress(data, lgwin=10))),
    "gzip": ("gzip", lambda data: gzip.compress(data, mtime=0)),
    "gzip, two members": (
        "gzip",
        lambda data: gzip.compress(data[: len(data) // 3]) + gzip.compress(data[len(data) // 3 :]),
    ),
    "gzip, empty members": ("gzip", lambda data: gzip.compress(b"") + gzip.compress(data) + gzip.compress(b"")),
    "gzip, padded": ("gzip", lambda data: gzip.compress(data) + bytes(512)),
    "deflate": ("deflate", zlib.compress),
    "deflate, small window": ("deflate", lambda data: raw_deflate(data, 9)),
    "deflate, raw": ("deflate", raw_deflate),
    "deflate, stored": ("deflate", stored),
    "zstd": ("zstd", zstd.compress),
    "zstd, two frames": (
        "zstd",
        lambda data: zstd.compress(data[: len(data) // 2]) + zstd.compress(data[len(data) // 2 :]),
    ),
    "zstd, empty frames": ("zstd", lambda data: zstd.compress(b"") + zstd.compress(data) + zstd.compress(b"")),
    "zstd, 8 MB window": ("zstd", large_window_zstd),
}
BORDERS = [0, 1, STEP - 1, STEP, STEP + 1, 2 * STEP, 229_327, 229_328, 229_329, 3 * STEP + 258, 1_000_000]


def content(kind: str, size: int) -> bytes:
    """Bytes that compress to almost nothing, a little, or not at all."""
    if kind == "zeros":
        return bytes(size)
    if kind == "noise":
        return Random(size).randbytes(size)
    return (Random(7).randbytes(997) * (size // 997 + 1))[:size]


def decode(coding: str, body: bytes, piece: int, last_alone: bool) -> bytes:
    """Reads as Fetching.read does: feeds it when hungry, and reads otherwise. `last_alone` makes the last byte a piece."""
    decoding = Decoding(coding, "server:80")
    cut = len(body) - 1 if last_alone else len(body)
    pieces = [body[at : min(at + piece, cut)] for at in range(0, cut, piece)] + [body[cut:]]
    out = bytearray()
    for data in filter(None, pieces):
        decoding.feed(data)
        while not decoding.is_hungry:
            part = decoding.take()
            assert len(part) <= 2 * STEP, "a step returns no more than its bound"
            out += part
    decoding.finish()
    return bytes(out)


@settings(max_examples=150, deadline=None)
@given(
    encoder=st.sampled_from(sorted(ENCODERS)),
    kind=st.sampled_from(["zeros", "text", "noise"]),
    size=st.sampled_from(BORDERS) | st.integers(0, 600_000),
    piece=st.sampled_from([1, 2, 3, 1000, 16_384, 65_536, 1 << 30]) | st.integers(1, 300_000),
    last_alone=st.booleans(),
)
@example(encoder="br", kind="text", size=1_000_000, piece=1 << 30, last_alone=False)
@example(encoder="deflate, raw", kind="zeros", size=2 * STEP, piece=1 << 30, last_alone=False)
@example(encoder="deflate, raw", kind="zeros", size=STEP + 100, piece=1 << 30, last_alone=False)
def test_a_body_decodes_correctly_in_any_coding_size_and_split(
    encoder: str, kind: str, size: int, piece: int, last_alone: bool
) -> None:
    coding, encode = ENCODERS[encoder]
    data = content(kind, size)
    body = encode(data)
    piece = max(piece, len(body) // 20_000)  # single bytes only for small bodies
    assert decode(coding, body, piece, last_alone) == data


@settings(max_examples=60, deadline=None)
@given(
    encoder=st.sampled_from([name for name in sorted(ENCODERS) if "padded" not in name and "empty" not in name]),
    kind=st.sampled_from(["zeros", "text", "noise"]),
    size=st.integers(1, 400_000),
    missing=st.integers(1, 9),
    piece=st.sampled_from([1, 1000, 65_536, 1 << 30]),
)
def test_a_truncated_body_is_an_error(encoder: str, kind: str, size: int, missing: int, piece: int) -> None:
    coding, encode = ENCODERS[encoder]
    body = encode(content(kind, size))
    body = body[: max(1, len(body) - missing)]
    with pytest.raises(NetworkError, match=r"broke off before its end|no valid"):
        decode(coding, body, max(piece, len(body) // 20_000), last_alone=False)


@pytest.mark.parametrize("size", [2, 300_000])
def test_bytes_after_a_brotli_body_are_an_error_in_any_split(size: int) -> None:
    body = brotli.compress(content("text", size))
    for pieces in ([body + b"junk"], [body, b"junk"], [body[:-1], body[-1:] + b"junk"]):
        decoding = Decoding("br", "server:80")
        with pytest.raises(NetworkError, match="not valid br"):
            for data in pieces:
                decoding.feed(data)
                while not decoding.is_hungry:
                    decoding.take()


@pytest.mark.parametrize("coding", ["br", "gzip", "deflate", "raw-deflate", "zstd"])
@pytest.mark.parametrize("size", [STEP + 1, 240_000, 3_000_000])
def test_a_large_coded_body_is_fetched_completely(run: Callable[..., Answer], coding: str, size: int) -> None:
    """It arrives in one packet or in few."""
    script = f"""const bytes = await (await fetch(UP + "/coded-bytes/{coding}/{size}")).bytes();
      return Response.json([bytes.length, bytes.every((byte, index) => byte === index % 251)]);"""
    assert run(script, limits={"cpu_ms": 5000}).json == [size, True]
