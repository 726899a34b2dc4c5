"""What a job is, what it returns, and how it can fail.

A job is a pure function that a job process imports by name:

    def unpacked(data: Buffer, args: dict[str, Any]) -> bytes | list[bytes]: ...

    UNPACK = Job("atoll.control.checks.unpack:unpacked", seconds=20)

`data` may be a memory map: slice it or pass it to a parser, and keep no reference to it after the return. The result is
bytes or a list of pieces, which are joined in the file that carries them back.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Final, TypeAlias

from msgspec import Struct

from atoll.errors import AtollError
from atoll.offload.threads import in_thread

Buffer: TypeAlias = bytes | mmap.mmap
JobFunction: TypeAlias = Callable[[Buffer, dict[str, Any]], bytes | list[bytes]]

INLINE: Final = 32 << 10  # bytes of data or result that travel in the message itself
STEP: Final = 256 << 10  # bytes that are copied on the event loop; a thread copies more
MAX_RESULT: Final = 256 << 20


class Job(Struct, frozen=True):
    """A function that job processes run. Only constants in the code name one, never received data."""

    function: str  # "package.module:function"
    seconds: int = 10  # of CPU time, after which its process is ended

    @property
    def name(self) -> str:
        return self.function.rpartition(":")[2]


class JobError(AtollError):
    """A job failed. The text is for the client."""


class TooMuchWork(JobError):
    """The job exceeded its time or memory limit: the input is at fault."""


class OutOfMemory(TooMuchWork):
    """The job exceeded its memory limit."""


class TooManyJobs(JobError):
    """The job was refused. `of_tenant`: because of the tenant's own jobs, not those of others."""

    def __init__(self, message: str, *, of_tenant: bool) -> None:
        super().__init__(message)
        self.of_tenant = of_tenant


class ProcessLost(JobError):
    """The job's process ended or could not be started: a retry may work."""


class Result:
    """What a job returned: in memory if it is small, else in a memory file that is read piece by piece.

    Close it, or use it in a `with` statement.
    """

    def __init__(self, data: bytes, fd: int = -1) -> None:
        self._data = data
        self._fd = fd
        self.size = len(data) if fd < 0 else os.fstat(fd).st_size

    async def read(self, offset: int = 0, size: int | None = None) -> bytes:
        """A part of the result, or all from `start` on. A thread copies large parts, without the GIL."""
        length = self.size - offset if size is None else min(size, self.size - offset)
        if self._fd < 0:
            return self._data[offset : offset + length]
        if length <= STEP:
            return os.pread(self._fd, length, offset)
        return await in_thread(os.pread, self._fd, length, offset)

    def buffer(self) -> Buffer:
        """The whole result, as a memory map that is read on access, best in a thread. It may outlive the Result."""
        return self._data if self._fd < 0 else mmap.mmap(self._fd, 0, access=mmap.ACCESS_READ)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The whole result in pieces, for a streamed response."""
        for offset in range(0, self.size, STEP):
            yield await self.read(offset, STEP)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd, self.size = -1, 0

    def __enter__(self) -> Result:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
