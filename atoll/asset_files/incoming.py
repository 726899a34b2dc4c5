"""One upload of files: the bytes of many files in a row, each after its hash and its size.

    32 bytes SHA-256, 8 bytes size (big-endian), then the content; the next file follows at once

Runs in a thread. The hash is computed while the bytes are written to a temporary name. Files that are complete are kept
even if the upload breaks off after them, so the next upload goes on from there. Nothing is visible before `finish`: it
syncs all files to disk, then gives them their names.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from atoll.asset_files.places import FilePlaces
from atoll.asset_files.rows import NewFile, WantedFile
from atoll.errors import InvalidArgument

HEAD: Final = 40
MAX_FILES: Final = 4_000  # in one upload
FEW: Final = 8  # files up to this number are synced one by one, more by one sync of the file system
SMALLER: Final = 0.95  # a copy must be this much smaller to be kept
GZIP_LEVEL: Final = 6
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class Arrived(NamedTuple):
    hash: bytes
    size: int
    name: str  # the temporary file


class IncomingFiles:
    """`wanted` has the files that may arrive. Those that are there already are read and dropped."""

    def __init__(self, places: FilePlaces, tenant: str, wanted: Mapping[bytes, WantedFile]) -> None:
        self._places = places
        self._tenant = tenant
        self._wanted = wanted
        self._folder = tempfile.mkdtemp(dir=places.incoming)
        self.arrived: list[Arrived] = []
        self.skipped = 0
        # the file that is being received
        self._head = b""
        self._file = -1
        self._left = 0
        self._size = 0
        self._expected = b""
        self._digest = hashlib.sha256()

    def feed(self, data: bytes) -> None:
        """Take more of the upload. Raises InvalidArgument."""
        view = memoryview(data)
        while view:
            if not self._expected:
                view = self._take_head(view)
                continue
            piece = view[: self._left]
            view = view[len(piece) :]
            self._left -= len(piece)
            self._digest.update(piece)
            while piece and self._file >= 0:
                piece = piece[os.write(self._file, piece) :]
            if not self._left:
                self._end_file()

    def _take_head(self, view: memoryview) -> memoryview:
        missing = HEAD - len(self._head)
        self._head += bytes(view[:missing])
        if len(self._head) == HEAD:
            self._begin_file(self._head[:32], int.from_bytes(self._head[32:]))
            self._head = b""
        return view[missing:]

    def _begin_file(self, digest: bytes, size: int) -> None:
        if len(self.arrived) + self.skipped >= MAX_FILES:
            raise InvalidArgument(f"the upload has more than {MAX_FILES:,} files")
        wanted = self._wanted.get(digest)
        if wanted is None:
            raise InvalidArgument(
                f"no manifest of this tenant waits for the file {digest.hex()}: send its manifest first"
            )
        if size != wanted.size:
            raise InvalidArgument(f"the file {digest.hex()} has {wanted.size:,} bytes in its manifest, not {size:,}")
        self._expected, self._size, self._left = digest, size, size
        self._digest = hashlib.sha256()
        if not wanted.stored:
            name = f"{self._folder}/{len(self.arrived)}"
            self._file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        if not size:
            self._end_file()

    def _end_file(self) -> None:
        expected, self._expected = self._expected, b""
        found = self._digest.digest()
        if found != expected:
            raise InvalidArgument(
                f"the content sent for {expected.hex()} has the hash {found.hex()}: the file changed while it was sent"
            )
        if self._file < 0:
            self.skipped += 1
            return
        os.close(self._file)
        self._file = -1
        self.arrived.append(Arrived(expected, self._size, f"{self._folder}/{len(self.arrived)}"))

    @property
    def is_cut(self) -> bool:
        """Whether the upload ended inside a file."""
        return bool(self._head or self._expected)

    def finish(self) -> list[NewFile]:
        """Compress, sync and name the files that have arrived."""
        kept = []
        for each in self.arrived:
            gzip, br = self._compress(each)
            kept.append(NewFile(each.hash, each.size, gzip, br))
        self._sync()
        folders = set()
        for each, file in zip(self.arrived, kept, strict=True):
            place = self._places.of(self._tenant, each.hash.hex())
            folder = os.path.dirname(place)
            if folder not in folders:
                os.makedirs(folder, mode=0o700, exist_ok=True)
                folders.add(folder)
            for ending, size in ((".gz", file.gzip), (".br", file.br), ("", 1)):
                if size:
                    os.rename(each.name + ending, place + ending)
        for folder in {*folders, str(self._places.tenant(self._tenant)), str(self._places.root)}:
            _sync_folder(folder)
        return kept

    def _compress(self, each: Arrived) -> tuple[int, int]:
        if not self._wanted[each.hash].packs:
            return 0, 0
        import brotli  # both release the GIL while they compress

        with open(each.name, "rb") as file:
            content = file.read()
        packer = zlib.compressobj(GZIP_LEVEL, wbits=31)
        copies = {".gz": packer.compress(content) + packer.flush()}
        copies[".br"] = brotli.compress(content, quality=9 if each.size <= 256 << 10 else 5)
        sizes = []
        for ending, copy in copies.items():
            is_kept = len(copy) < each.size * SMALLER
            if is_kept:
                with open(each.name + ending, "xb") as file:
                    file.write(copy)
            sizes.append(len(copy) if is_kept else 0)
        return sizes[0], sizes[1]

    def _sync(self) -> None:
        """Make the bytes durable before the files get their names."""
        if len(self.arrived) > FEW:
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                if _LIBC.syncfs(folder) == 0:
                    return
            finally:
                os.close(folder)
        for name in os.listdir(self._folder):
            file = os.open(f"{self._folder}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(file)
            finally:
                os.close(file)

    def close(self) -> None:
        """Remove what is left of the temporary files."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        for name in os.listdir(self._folder):
            os.unlink(f"{self._folder}/{name}")
        os.rmdir(self._folder)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
