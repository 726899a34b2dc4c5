"""Decodes the content codings gzip, deflate, br and zstd, piece by piece.

The output of every step is bounded, however much the input expands to, so a decompression bomb costs its reader time
but no memory. A body that grows out of proportion is refused.
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

STEP = 128 << 10  # the most bytes that one step returns
# brotli fills its window before it returns output: with 4 MB or more one step is too long for the event loop.
HEAVY_WINDOW = 22  # bits
FREE = 32 << 20  # bytes of output that are always allowed,
MAX_RATIO = 200  # and bytes per byte of input after that: normal content stays far below
FREE_STRETCHES = 512  # members that a body may have,
STRETCH_BYTES = 256  # and one more per this many bytes: starting a member costs far more than the bytes of an empty one


class ContentDecoder(Protocol):
    """One member of compressed data.

    A step may consume all input and still hold back output: the library then reports that nothing is left, although an
    empty step returns more. So a decoder is hungry only after a step that returned less than STEP.
    """

    @property
    def has_ended(self) -> bool: ...

    @property
    def is_hungry(self) -> bool:
        """Whether it has returned all output and needs more input."""

    @property
    def rest(self) -> bytes:
        """The bytes after its end."""

    def step(self, data: bytes) -> bytes:
        """Take `data` (empty unless hungry) and return up to about STEP bytes."""


class Inflate:
    """gzip, or deflate with or without the header that servers forget."""

    def __init__(self, coding: str) -> None:
        self._inflate = zlib.decompressobj(31 if coding == "gzip" else 15)
        self._may_lack_header = coding == "deflate"
        self._is_full = False  # the last step returned as much as allowed

    @property
    def has_ended(self) -> bool:
        return self._inflate.eof

    @property
    def is_hungry(self) -> bool:
        return not self._is_full and not self._inflate.unconsumed_tail

    @property
    def rest(self) -> bytes:
        return self._inflate.unused_data

    def step(self, data: bytes) -> bytes:
        if self._may_lack_header and data:
            self._may_lack_header = False
            if data[0] & 0x0F != 8:
                self._inflate = zlib.decompressobj(-15)
        content = self._inflate.decompress(self._inflate.unconsumed_tail + data, STEP)
        self._is_full = len(content) >= STEP
        return content


class Unbrotli:
    rest = b""

    def __init__(self) -> None:
        self._brotli = brotli.Decompressor()
        self._is_full = False  # the last step returned as much as allowed

    @property
    def has_ended(self) -> bool:
        return bool(self._brotli.is_finished())

    @property
    def is_hungry(self) -> bool:
        return not self._is_full and bool(self._brotli.can_accept_more_data())

    def step(self, data: bytes) -> bytes:
        content = bytes(self._brotli.process(data, output_buffer_limit=STEP))
        self._is_full = len(content) >= STEP
        return content


class Unzstd:
    def __init__(self) -> None:
        # RFC 9659: browsers accept windows up to 8 MB, so servers do not send larger ones.
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


def make_decoder(coding: str) -> ContentDecoder:
    if coding == "br":
        return Unbrotli()
    return Unzstd() if coding == "zstd" else Inflate(coding)


# How a further member begins. Other bytes after the end are ignored, as browsers do, except for br, whose library fails
# if they come in one piece with the end: there they are always an error. Skippable frames of zstd
# (https://www.rfc-editor.org/rfc/rfc8878#name-skippable-frames) count as members: parallel encoders write them.
MAGIC = {
    "gzip": (b"\x1f\x8b",),
    "zstd": (b"\x28\xb5\x2f\xfd", *(bytes((low, 0x2A, 0x4D, 0x18)) for low in range(0x50, 0x60))),
}
CODINGS = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate", "br": "br", "zstd": "zstd"}


def brotli_window(first: int) -> int:
    """The bits of the window, from the first byte of a stream: https://www.rfc-editor.org/rfc/rfc7932#section-9.1"""
    if not first & 1:
        return 16
    if large := first >> 1 & 7:
        return 17 + large
    small = first >> 4 & 7
    return 8 + small if small else 17


class Decoding:
    """Decodes one body: `feed` input, `take` output, `finish` at the end."""

    def __init__(self, coding: str, where: str) -> None:
        self.is_heavy = False  # its steps run in a thread
        self._coding = coding
        self._where = where
        self._decoder = make_decoder(coding)
        self._input = b""
        self._start = b""  # too few bytes after the end of a member to tell whether another begins
        self._is_over = False  # no further member begins
        self._stretches = 1
        self._in = 0
        self._out = 0

    @property
    def is_hungry(self) -> bool:
        return not self._input and (self._decoder.has_ended or self._decoder.is_hungry)

    @property
    def has_ended(self) -> bool:
        """Whether the content may be complete; another member may still follow."""
        return self._decoder.has_ended and not self._input

    def feed(self, data: bytes) -> None:
        if self._coding == "br" and not self._in and data:
            self.is_heavy = brotli_window(data[0]) >= HEAVY_WINDOW
        self._input = self._start + data
        self._start = b""
        self._in += len(data)

    def take(self) -> bytes:
        """More of the content, or b"" if more input is needed."""
        data, self._input = self._input, b""
        if self._decoder.has_ended:
            if not self._begins_another(data):
                return b""
            self._decoder = make_decoder(self._coding)
            self._stretches += 1
            if self._stretches > FREE_STRETCHES + self._in // STRETCH_BYTES:
                raise NetworkError(f"the {self._coding} body from {self._where} has too many members")
        try:
            content = self._decoder.step(data)
        except (zlib.error, brotli.error, zstd.ZstdError, EOFError) as error:
            raise NetworkError(f"the body from {self._where} is not valid {self._coding}: {error}") from None
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
        if self._coding == "br" and data:
            raise NetworkError(f"the body from {self._where} is not valid br: it has data after its end")
        marks = () if self._is_over else MAGIC.get(self._coding, ())
        if data.startswith(marks):
            return True
        if any(mark.startswith(data) for mark in marks):
            self._start = data
        else:
            self._is_over = True
        return False

    def finish(self) -> None:
        """The input has ended. NetworkError if the content is not complete."""
        if self._in and not self._decoder.has_ended:
            raise NetworkError(f"the {self._coding} body from {self._where} broke off before its end")
