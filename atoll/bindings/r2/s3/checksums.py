"""Checksums of bodies that S3 clients send: `x-amz-checksum-crc64nvme` and so on, in a header or after the body.

A checksum that a client sends is verified. One of a kind that is not known here is refused: a client that gets 200 may
rely on it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import importlib
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Protocol

from atoll.bindings.r2.s3.faults import S3Fault

PREFIX = "x-amz-checksum-"
LIBRARY = "anycrc"
OF_LIBRARY = ("crc32c", "crc64nvme")
NOT_VALUES = ("algorithm", "mode", "type")  # after the prefix: headers that say something else


class Running(Protocol):
    def update(self, piece: bytes, /) -> None: ...
    def digest(self) -> bytes: ...


class Crc:
    """`step` continues a value with a piece. 256 KB take 20 us: there is no need for a thread."""

    def __init__(self, step: Callable[[bytes, int], int], size: int) -> None:
        self._step = step
        self._size = size
        self._value = 0

    def update(self, piece: bytes, /) -> None:
        self._value = self._step(piece, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(self._size, "big")


def _of_model(model: str, size: int) -> Crc:
    from anycrc import Model

    return Crc(Model(model).calc, size)


KINDS: Mapping[str, Callable[[], Running]] = {
    "crc32": lambda: Crc(zlib.crc32, 4),
    "crc32c": lambda: _of_model("CRC32-ISCSI", 4),
    "crc64nvme": lambda: _of_model("CRC64-NVME", 8),
    "md5": lambda: hashlib.md5(usedforsecurity=False),
    "sha1": lambda: hashlib.sha1(usedforsecurity=False),
    "sha256": hashlib.sha256,
    "sha512": hashlib.sha512,
}


class Checksums:
    """The checksums that one request announced."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._wanted: dict[str, str] = {}
        self._running: dict[str, Running] = {}
        self._announced: list[str] = []
        for name, value in headers.items():
            if name.startswith(PREFIX) and name[len(PREFIX) :] not in NOT_VALUES:
                self._wanted[_known(name)] = value
        for name in headers.get("x-amz-trailer", "").lower().split(","):
            if name.strip().startswith(PREFIX):
                self._announced.append(_known(name.strip()))

    @property
    def kinds(self) -> set[str]:
        return {*self._wanted, *self._announced}

    async def prepare(self) -> None:
        """Before the first piece. The library is imported when it is needed first, in a thread: it takes 18 ms."""
        if not self.kinds.isdisjoint(OF_LIBRARY) and LIBRARY not in sys.modules:
            await asyncio.to_thread(importlib.import_module, LIBRARY)
        self._running = {kind: KINDS[kind]() for kind in self.kinds}

    def update(self, piece: bytes) -> None:
        for each in self._running.values():
            each.update(piece)

    def expect(self, name: str, value: str) -> None:
        """A line of the trailer."""
        if name.startswith(PREFIX):
            kind = _known(name)
            if kind not in self._announced:
                raise S3Fault("MalformedTrailerError", f"The header x-amz-trailer does not announce {name[:60]}.")
            self._wanted[kind] = value

    def finish(self) -> None:
        """S3Fault if a checksum is wrong, or was announced and did not come."""
        for kind, running in self._running.items():
            if kind not in self._wanted:
                raise S3Fault("MalformedTrailerError", f"The trailer does not have {PREFIX}{kind}.")
            if base64.b64encode(running.digest()).decode() != self._wanted[kind].strip():
                raise S3Fault("BadDigest", f"The {kind.upper()} you specified did not match what we received.")


def _known(name: str) -> str:
    kind = name[len(PREFIX) :]
    if kind not in KINDS:
        raise S3Fault("InvalidRequest", f"The checksum {name[:60]} is not known: use one of {', '.join(KINDS)}.")
    return kind
