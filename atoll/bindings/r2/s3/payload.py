"""The body of a request to the S3 endpoint: unwrapped from its chunks, and checked against what was signed.

A body is checked while it is written to disk. A mismatch is found at its end, before the object is stored.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import itertools
import re
from collections.abc import AsyncIterator, Mapping
from typing import Final

from atoll.bindings.r2.s3.checksums import Checksums
from atoll.bindings.r2.s3.faults import S3Fault
from atoll.bindings.r2.s3.sigv4 import UNSIGNED, Signature, chunk_signature, trailer_signature

SIGNED_CHUNKS: Final = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_TRAILER: Final = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED_TRAILER: Final = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
CHUNKED: Final = (SIGNED_CHUNKS, SIGNED_TRAILER, UNSIGNED_TRAILER)
MAX_LINE = 4096  # bytes of the head of a chunk, or of the trailer
AT_ONCE = 20  # chunks, before other tasks get a turn: each may have a single byte
CHUNK_HEAD = re.compile(rb"([0-9a-fA-F]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?")


class BodyChecks:
    """Hashes of a body that the request announced, in a header or after the body."""

    def __init__(self, signature: Signature, headers: Mapping[str, str], *, is_document: bool = False) -> None:
        """The checksum of a `document` that completes an upload is that of the object: its parts had their own."""
        payload = signature.payload
        self._sha256 = hashlib.sha256() if payload != UNSIGNED and payload not in CHUNKED else None
        self._expected_sha256 = payload
        self._md5 = hashlib.md5(usedforsecurity=False) if "content-md5" in headers else None
        self._expected_md5 = headers.get("content-md5", "")
        self._checksums = Checksums({} if is_document else headers)

    async def prepare(self) -> None:
        await self._checksums.prepare()

    def update(self, piece: bytes) -> None:
        for each in (self._sha256, self._md5):
            if each is not None:
                each.update(piece)
        self._checksums.update(piece)

    def expect(self, name: str, value: str) -> None:
        """A line after the body."""
        self._checksums.expect(name, value)

    def finish(self) -> None:
        """S3Fault if a hash is wrong."""
        if self._sha256 is not None and not hmac.compare_digest(
            self._sha256.hexdigest(), self._expected_sha256.lower()
        ):
            raise S3Fault(
                "XAmzContentSHA256Mismatch",
                "The provided 'x-amz-content-sha256' header does not match what was computed.",
            )
        if self._md5 is not None and _base64(self._md5.digest()) != self._expected_md5.strip():
            raise S3Fault("BadDigest", "The Content-MD5 you specified did not match what we received.")
        self._checksums.finish()


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


async def checked(chunks: AsyncIterator[bytes], checks: BodyChecks) -> AsyncIterator[bytes]:
    """The body, piece by piece. Raises S3Fault after its last piece if a hash is wrong."""
    await checks.prepare()
    async for piece in chunks:
        if piece:
            checks.update(piece)
            yield piece
    checks.finish()


class ChunkedBody:
    """A body in signed chunks: `<size>;chunk-signature=<signature>`, the data, and so on to a chunk of size 0."""

    def __init__(self, source: AsyncIterator[bytes], signature: Signature, key: bytes, checks: BodyChecks) -> None:
        self._source = source
        self._signature = signature
        self._key = key
        self._checks = checks
        self._buffer = bytearray()
        self._previous = signature.signature
        self._is_signed = signature.payload != UNSIGNED_TRAILER

    async def pieces(self) -> AsyncIterator[bytes]:
        for number in itertools.count(1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            size, signed = await self._head()
            digest = hashlib.sha256()
            left = size
            while left:
                piece = await self._take(left)
                left -= len(piece)
                digest.update(piece)
                yield piece
            if self._is_signed:
                expected = chunk_signature(self._key, self._signature, self._previous, digest.hexdigest())
                if not hmac.compare_digest(expected, signed):
                    raise S3Fault("SignatureDoesNotMatch", "The signature of a chunk of the body is wrong.")
                self._previous = expected
            if size == 0:
                await self._trailer()
                return
            if await self._line():
                raise _malformed()

    async def _head(self) -> tuple[int, str]:
        found = CHUNK_HEAD.fullmatch(await self._line())
        if found is None or (self._is_signed and found[2] is None):
            raise _malformed()
        return int(found[1], 16), (found[2] or b"").decode()

    async def _trailer(self) -> None:
        signed = b""
        while line := await self._line(may_end=True):
            name, _, value = line.partition(b":")
            lower = name.decode("latin-1").lower().strip()
            if lower == "x-amz-trailer-signature":
                expected = trailer_signature(self._key, self._signature, self._previous, signed)
                if not hmac.compare_digest(expected.encode(), value.strip()):
                    raise S3Fault("SignatureDoesNotMatch", "The signature of the trailer is wrong.")
                signed = b""
                continue
            signed += lower.encode() + b":" + value.strip() + b"\n"
            if len(signed) > MAX_LINE:
                raise _malformed()
            self._checks.expect(lower, value.decode("latin-1"))
        if signed and self._signature.payload == SIGNED_TRAILER:
            raise S3Fault("SignatureDoesNotMatch", "The trailer is not signed.")

    async def _line(self, may_end: bool = False) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > MAX_LINE:
                raise _malformed()
            if not await self._more():
                if may_end and not self._buffer:
                    return b""
                raise _malformed()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    async def _take(self, most: int) -> bytes:
        if not self._buffer and not await self._more():
            raise _malformed()
        piece = bytes(self._buffer[:most])
        del self._buffer[:most]
        return piece

    async def _more(self) -> bool:
        chunk = await anext(self._source, b"")
        self._buffer += chunk
        return bool(chunk)


def _malformed() -> S3Fault:
    return S3Fault("IncompleteBody", "The request body is malformed, or ended too early.")
