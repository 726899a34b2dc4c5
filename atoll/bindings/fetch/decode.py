"""Content codings undone piece by piece: gzip, deflate, br and zstd.

What comes out is bounded for every step, however much a few bytes in may stand for, so a decompression bomb costs its
reader time and nobody memory. One that grows out of all proportion is refused.
"""

from __future__ import annotations

import sys
import zlib
from typing import Protocol

import brotli

from atoll.errors import NetworkError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STEP = 128 << 10  # the most that one step gives
FREE = 32 << 20  # bytes that may come out whatever went in,
MAX_RATIO = 200  # and how many for each byte in after that: what is no bomb stays far below
FREE_STRETCHES = 512  # a body may be made of,
STRETCH_BYTES = 256  # and one more for each so many bytes: beginning one costs far more than the bytes of an empty one


class Decoder(Protocol):
    """One stretch of compressed data."""

    @property
    def has_ended(self) -> bool: ...

    @property
    def is_hungry(self) -> bool:
        """Whether it has given all that it can before it gets more."""

    @property
    def rest(self) -> bytes:
        """What followed its end."""

    def step(self, data: bytes) -> bytes:
        """Take `data` (empty unless hungry) and give up to about STEP bytes."""


class Inflate:
    """gzip, or deflate with or without the header that servers forget."""

    def __init__(self, coding: str) -> None:
        self._inflate = zlib.decompressobj(31 if coding == "gzip" else 15)
        self._may_lack_header = coding == "deflate"

    @property
    def has_ended(self) -> bool:
        return self._inflate.eof

    @property
    def is_hungry(self) -> bool:
        return not self._inflate.unconsumed_tail

    @property
    def rest(self) -> bytes:
        return self._inflate.unused_data

    def step(self, data: bytes) -> bytes:
        if self._may_lack_header and data:
            self._may_lack_header = False
            if data[0] & 0x0F != 8:
                self._inflate = zlib.decompressobj(-15)
        return self._inflate.decompress(self._inflate.unconsumed_tail + data, STEP)


class Unbrotli:
    rest = b""

    def __init__(self) -> None:
        self._brotli = brotli.Decompressor()

    @property
    def has_ended(self) -> bool:
        return bool(self._brotli.is_finished())

    @property
    def is_hungry(self) -> bool:
        return bool(self._brotli.can_accept_more_data())

    def step(self, data: bytes) -> bytes:
        return bytes(self._brotli.process(data, output_buffer_limit=STEP))


class Unzstd:
    def __init__(self) -> None:
        # RFC 9659: a browser takes windows up to 8 MB, so nobody sends larger ones.
        options = {int(zstd.DecompressionParameter.window_log_max): 23}
        self._zstd = zstd.ZstdDecompressor(options=options)

    @property
    def has_ended(self) -> bool:
        return self._zstd.eof

    @property
    def is_hungry(self) -> bool:
        return self._zstd.needs_input

    @property
    def rest(self) -> bytes:
        return self._zstd.unused_data

    def step(self, data: bytes) -> bytes:
        return self._zstd.decompress(data, STEP)


def make_decoder(coding: str) -> Decoder:
    if coding == "br":
        return Unbrotli()
    return Unzstd() if coding == "zstd" else Inflate(coding)


# How one more stretch of content begins. What else follows the end is ignored, as browsers do. Frames of zstd that are
# to be skipped (https://www.rfc-editor.org/rfc/rfc8878#name-skippable-frames) count: parallel encoders write them.
MAGIC = {
    "gzip": (b"\x1f\x8b",),
    "zstd": (b"\x28\xb5\x2f\xfd", *(bytes((low, 0x2A, 0x4D, 0x18)) for low in range(0x50, 0x60))),
}
CODINGS = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate", "br": "br", "zstd": "zstd"}


class Decoding:
    """One body on its way through a decoder: `feed` what came, `take` what comes out, `finish` at its end."""

    def __init__(self, coding: str, where: str) -> None:
        self._coding = coding
        self._where = where
        self._decoder = make_decoder(coding)
        self._input = b""
        self._start = b""  # too little behind the end of a stretch to say whether another one begins
        self._is_over = False  # no other one does
        self._stretches = 1
        self._in = 0
        self._out = 0

    @property
    def is_hungry(self) -> bool:
        return not self._input and (self._decoder.has_ended or self._decoder.is_hungry)

    @property
    def has_ended(self) -> bool:
        """Whether the content may be whole; another stretch of it may still follow."""
        return self._decoder.has_ended and not self._input

    def feed(self, data: bytes) -> None:
        self._input = self._start + data
        self._start = b""
        self._in += len(data)

    def take(self) -> bytes:
        """More of the content, or b"" when there is none before more is fed."""
        data, self._input = self._input, b""
        if self._decoder.has_ended:
            if not self._begins_another(data):
                return b""
            self._decoder = make_decoder(self._coding)
            self._stretches += 1
            if self._stretches > FREE_STRETCHES + self._in // STRETCH_BYTES:
                raise NetworkError(f"the {self._coding} body from {self._where} is made of too many pieces")
        try:
            content = self._decoder.step(data)
        except (zlib.error, brotli.error, zstd.ZstdError, EOFError) as error:
            raise NetworkError(f"the body from {self._where} is no valid {self._coding}: {error}") from None
        if self._decoder.has_ended:
            self._input = self._decoder.rest
        self._out += len(content)
        if self._out > FREE and self._out > self._in * MAX_RATIO:
            raise NetworkError(
                f"the {self._coding} body from {self._where} grows to more than {MAX_RATIO} times its size: "
                "it looks like a decompression bomb"
            )
        return content

    def _begins_another(self, data: bytes) -> bool:
        marks = () if self._is_over else MAGIC.get(self._coding, ())
        if data.startswith(marks):
            return True
        if any(mark.startswith(data) for mark in marks):
            self._start = data
        else:
            self._is_over = True
        return False

    def finish(self) -> None:
        """The body is over. NetworkError if that was too early."""
        if self._in and not self._decoder.has_ended:
            raise NetworkError(f"the {self._coding} body from {self._where} broke off before its end")
