"""How this process asks the system for memory, and when it looks for garbage.

A streamed body makes buffers of hundreds of kilobytes, one after the other, each freed at once. By default glibc gives
such memory back to the system every time and gets it anew as pages to be cleared: 40,000 page faults for 100 MB of
body, and a third of the front's CPU time.
"""

from __future__ import annotations

import ctypes
import gc

# From glibc's malloc.h.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3

COLLECT_EVERY = 20_000  # objects that may be part of a ring; Python begins to look after 700
KEPT = 16 << 20  # free memory at the end of the heap that is kept
LARGE = 4 << 20  # from this size on a buffer has pages of its own, given back when it is freed


def keep_freed_memory() -> None:
    """Let freed buffers be used again. Where the C library has no such setting, nothing changes."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_THRESHOLD, LARGE)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT)


def collect_seldom() -> None:
    """Call it when everything has started: what is there now stays, so the garbage collector need not look at it again.

    A request leaves no rings behind, so there is little to find.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY)
