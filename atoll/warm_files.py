"""Opens and reads files on the event loop, as far as the kernel has them in memory and need not wait for a disk.

What is not in memory, a thread has to open or read.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

WARM: Final = 512 << 10  # bytes that a thread reads ahead
_NOT_THERE: Final = (errno.EAGAIN, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)

_OPENAT2: Final = 437  # the same on all architectures
_HERE: Final = -100  # AT_FDCWD
_RESOLVE_CACHED: Final = 0x20  # fail rather than read a directory from the disk


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_READ_IF_CACHED: Final = _OpenHow(os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0, _RESOLVE_CACHED)
_HOW: Final = ctypes.byref(_READ_IF_CACHED)
_SIZE: Final = ctypes.sizeof(_OpenHow)
_syscall: Final = ctypes.PyDLL(None).syscall  # keeps the interpreter lock: the call does not wait
_syscall.restype = ctypes.c_long


def open_warm(path: bytes) -> int:
    """A descriptor for reading; -1 if the kernel may have to look on the disk, or cannot tell (before Linux 5.12).

    By its path and not by a descriptor of its folder: that would keep the disk busy after it is unmounted.
    """
    return int(_syscall(_OPENAT2, _HERE, path, _HOW, _SIZE))


def read_now(descriptor: int, start: int, size: int) -> bytes | None:
    """Bytes that are in memory; None if they must come from the disk."""
    buffer = bytearray(size)
    try:
        count = os.preadv(descriptor, [buffer], start, os.RWF_NOWAIT)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise
    return bytes(buffer[:count])


def is_warm(descriptor: int, start: int, size: int) -> bool:
    """Whether the first and the last of these bytes are in memory. The kernel reads ahead what is between."""
    probe = bytearray(1)
    try:
        for at in (start, start + size - 1):
            os.preadv(descriptor, [probe], at, os.RWF_NOWAIT)
    except OSError as error:
        # A file system without RWF_NOWAIT: say yes after the thread has read the bytes once.
        return error.errno in _NOT_THERE[1:]
    return True


def read_some(descriptor: int, start: int, size: int) -> bytes:
    """In a thread: at least one byte, unless the file ends there."""
    return os.pread(descriptor, size, start)
