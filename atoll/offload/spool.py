"""Request bodies of the control API while they arrive. Large ones are in unnamed files, not in memory.

Small bodies are kept in memory. Both kinds count against two limits: the bytes of all unfinished bodies of a tenant,
and of the node.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Final

from atoll.errors import AtollError
from atoll.offload.threads import in_thread

IN_MEMORY: Final = 1 << 20  # bytes of one body; a longer one goes to a file
BATCH: Final = 256 << 10  # bytes per write to the file


class SpoolFull(AtollError):
    """The limit of unfinished bodies is reached. `of_tenant`: the tenant's own limit."""

    def __init__(self, message: str, *, of_tenant: bool) -> None:
        super().__init__(message)
        self.of_tenant = of_tenant


class SpoolRoom:
    """Counts the bytes of unfinished bodies against their limits."""

    def __init__(self, folder: Path, tenant_bytes: int, node_bytes: int) -> None:
        self.folder = folder
        self.tenant_bytes = tenant_bytes
        self.node_bytes = node_bytes
        self.held = 0
        self._by_tenant: Counter[str] = Counter()

    def take(self, tenant: str, size: int) -> None:
        if self._by_tenant[tenant] + size > self.tenant_bytes:
            raise SpoolFull(f"unfinished requests of this tenant hold {self.tenant_bytes >> 20} MB", of_tenant=True)
        if self.held + size > self.node_bytes:
            raise SpoolFull(f"unfinished requests hold {self.node_bytes >> 20} MB on this node", of_tenant=False)
        self._by_tenant[tenant] += size
        self.held += size

    def give_back(self, tenant: str, size: int) -> None:
        self.held -= size
        self._by_tenant[tenant] -= size
        if not self._by_tenant[tenant]:
            del self._by_tenant[tenant]


class Spool:
    """One body: add to it, `finish`, then read `data`, or pass `fd` to a job. Close it to release its bytes."""

    def __init__(self, room: SpoolRoom, tenant: str) -> None:
        self._room = room
        self._tenant = tenant
        self._batch = bytearray()
        self.fd = -1
        self.size = 0

    async def add(self, chunk: bytes) -> None:
        """Raises SpoolFull."""
        self._room.take(self._tenant, len(chunk))
        self.size += len(chunk)
        self._batch += chunk
        if self.size > IN_MEMORY and (self.fd < 0 or len(self._batch) >= BATCH):
            await self._flush()

    async def finish(self) -> None:
        """The body is complete."""
        if self.fd >= 0 and self._batch:
            await self._flush()

    @property
    def is_small(self) -> bool:
        """Whether the body is in memory, as `data`."""
        return self.fd < 0

    @property
    def data(self) -> bytes:
        assert self.fd < 0
        return bytes(self._batch)

    async def read(self) -> bytes:
        """The whole body, from memory."""
        if self.fd < 0:
            return bytes(self._batch)
        return await in_thread(os.pread, self.fd, self.size, 0)

    async def _flush(self) -> None:
        batch, self._batch = self._batch, bytearray()
        if self.fd < 0:
            self.fd = await in_thread(_nameless, self._room.folder)
        await in_thread(write_all, self.fd, batch)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        self._room.give_back(self._tenant, self.size)
        self.size = 0
        self._batch = bytearray()

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def write_all(fd: int, data: bytes | bytearray) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _nameless(folder: Path) -> int:
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        return os.dup(file.fileno())
