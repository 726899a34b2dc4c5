"""How this process and its engines share the processor with those that compute for long.

From Linux 6.12 on a thread can ask for short slices: when it wakes up it then takes the core from a thread with longer
ones, which otherwise may go on for some milliseconds, at each of the four steps of a request. Threads that compute for
long have usual slices again (engine/src/priority.h). What a thread gets in all does not change.
"""

from __future__ import annotations

import ctypes
import platform
import struct

SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
SHORT_NS = 100_000


def ask_for_short_slices() -> None:
    """For the calling thread, and all threads and processes it starts. Older kernels ignore it."""
    number = SCHED_SETATTR.get(platform.machine())
    if number is not None:
        # struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period
        attributes = struct.pack("=IIQiIQQQ", 48, 0, 0, 0, 0, SHORT_NS, 0, 0)
        ctypes.CDLL(None).syscall(number, 0, attributes, 0)
