"""How pages are written in PostgreSQL: compressed, with a checksum.

body of a commit   u32 count · count x u32 page numbers · zstd of count x 4096 bytes, with its checksum
body of a chunk    zstd of the pages of a chunk, with its checksum
"""

from __future__ import annotations

import struct
import sys
from typing import Final

from atoll.objects.store import PAGE, ObjectDamaged

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHUNK_PAGES: Final = 16
CHUNK_BYTES: Final = CHUNK_PAGES * PAGE
MAX_PAGES: Final = 8_192  # of a commit, as in the engine
_OPTIONS: Final = {int(zstd.CompressionParameter.compression_level): 1, int(zstd.CompressionParameter.checksum_flag): 1}
_COUNT: Final = struct.Struct("<I")
DAMAGED: Final = "what the database has of this object is damaged"


def pack_commit(numbers: bytes, contents: bytes | memoryview) -> bytes:
    packed = zstd.compress(contents, options=_OPTIONS) if numbers else b""
    return b"".join((_COUNT.pack(len(numbers) // 4), numbers, packed))


def read_commit(body: bytes) -> tuple[memoryview, bytes]:
    """Page numbers, and the pages. ObjectDamaged if it is not what pack_commit made."""
    (count,) = _COUNT.unpack_from(body) if len(body) >= _COUNT.size else (MAX_PAGES + 1,)
    at = _COUNT.size + 4 * count
    if count > MAX_PAGES or len(body) < at:
        raise ObjectDamaged(DAMAGED)
    numbers = memoryview(body)[_COUNT.size : at].cast("I")
    contents = _unpack(body[at:], count * PAGE) if count else b""
    if len(contents) != count * PAGE:
        raise ObjectDamaged(DAMAGED)
    return numbers, contents


def pack_chunk(pages: bytes) -> bytes:
    return zstd.compress(pages, options=_OPTIONS)


def read_chunk(body: bytes) -> bytes:
    pages = _unpack(body, CHUNK_BYTES)
    if not pages or len(pages) % PAGE:
        raise ObjectDamaged(DAMAGED)
    return pages


def _unpack(body: bytes, most: int) -> bytes:
    unpack = zstd.ZstdDecompressor()
    try:
        found = unpack.decompress(body, most)
    except zstd.ZstdError:
        raise ObjectDamaged(DAMAGED) from None
    if not unpack.eof:
        raise ObjectDamaged(DAMAGED)
    return found
