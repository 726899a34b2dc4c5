"""Settings of malloc and of the garbage collector for the serving process.

A streamed body allocates buffers of hundreds of kilobytes, one after the other, and frees each at once. By default
glibc returns such memory to the system every time and gets new pages, which the kernel must clear: 40,000 page faults
for 100 MB of body, and a third of the front's CPU time.
"""

from __future__ import annotations

import ctypes
import gc

# From glibc's malloc.h.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3

COLLECT_EVERY = 20_000  # allocations between two collections; Python's default is 700
KEPT = 16 << 20  # free memory at the end of the heap that is not returned
LARGE = 4 << 20  # larger buffers have their own mapping, returned when they are freed


def keep_freed_memory() -> None:
    """Reuse freed buffers. Does nothing where the C library has no `mallopt`."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, LARGE)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT)


def collect_seldom() -> None:
    """Freeze all present objects and collect rarely. Call it after startup: these objects live as long as the process.

    Requests leave no reference cycles behind, so there is little to collect.
    """
    gc.enable()  # a command may have disabled it for its imports
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY)


def freeze() -> None:
    """Freeze the objects that were made since, too. Without a collection, which would hold up calls."""
    gc.freeze()
