"""The program of a job process: takes a job from its socket, runs it, answers, and ends when the node does.

    child.py MEMORY_BYTES PATHS...

It starts with an empty environment, no descriptor except the socket, limited memory and low priority. The socket is its
standard input: on a node with many connections any other number may be too large for select(). One message is one job;
process.py is the other end.

While a job runs, the socket is set to send SIGIO, whose default action ends a process. The node sends nothing at that
time, so the signal means that the node has hung up or is gone. Even a job inside a long C function ends at once.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import mmap
import os
import resource
import select
import signal
import socket
import sys
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atoll.offload.jobs import Buffer, JobFunction
    from atoll.offload.messages import Task

NICE = 10
FILES = 64  # descriptors; imports need a few


def main() -> None:
    own = socket.socket(fileno=sys.stdin.fileno())
    confine(int(sys.argv[1]))
    sys.path += [path for path in sys.argv[2:] if path not in sys.path]
    from atoll.offload.messages import MESSAGE, decode_task

    # Memory of a job is freed at its end. Collecting cycles before only costs time.
    gc.disable()
    while True:
        message, fds, _, _ = socket.recv_fds(own, MESSAGE, 1)
        if not message:
            return
        answer(own, decode_task(message), fds[0] if fds else -1)
        gc.collect()


def confine(memory_bytes: int) -> None:
    from_node = {signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: signal.SIG_DFL, signal.SIGIO: signal.SIG_DFL}
    for number, action in from_node.items():
        signal.signal(number, action)
    os.chdir("/")
    os.nice(NICE)
    for kind, most in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, FILES)):
        resource.setrlimit(kind, (most, most))


def answer(own: socket.socket, job: Task, fd: int) -> None:
    """Run one job and send its result."""
    from atoll.offload.messages import Ending, JobAnswer, encode_answer

    result, out = b"", -1
    ending = Ending.DONE
    watch(own, on=True)
    try:
        result, out = packed(run(job, fd))
    except MemoryError:
        ending = Ending.MEMORY
    except Exception:
        ending, result = Ending.FAILED, traceback.format_exc(limit=-8)[-8000:].encode("utf-8", "replace")
    watch(own, on=False)
    socket.send_fds(own, [encode_answer(JobAnswer(ending, result))], [out] if out >= 0 else [])
    if out >= 0:
        os.close(out)


def run(job: Task, fd: int) -> bytes | list[bytes]:
    allow_seconds(job.seconds)
    module, _, name = job.function.partition(":")
    function: JobFunction = getattr(importlib.import_module(module), name)
    data: Buffer = job.data
    if fd < 0:
        return function(data, job.args)
    try:
        data = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(fd)
    return function(data, job.args)  # the map is freed with its last reference


def allow_seconds(seconds: int) -> None:
    """Limit the CPU time of one job. SIGXCPU ends the process above it."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = int(usage.ru_utime + usage.ru_stime) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (used + seconds, resource.RLIM_INFINITY))


def packed(result: bytes | list[bytes]) -> tuple[bytes, int]:
    """A result for the message, or for a memory file if it is large."""
    from atoll.offload.jobs import INLINE, MAX_RESULT

    pieces = result if isinstance(result, list) else [result]
    size = sum(map(len, pieces))
    if size <= INLINE:
        return b"".join(pieces), -1
    if size > MAX_RESULT:
        raise MemoryError
    fd = os.memfd_create("atoll-result", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        for piece in pieces:
            file.write(piece)
    return b"", fd


def watch(own: socket.socket, *, on: bool) -> None:
    """Set whether the kernel ends this process when the node closes the socket."""
    fd = own.fileno()
    if on:
        fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_ASYNC if on else flags & ~os.O_ASYNC)
    if on and select.select([own], [], [], 0)[0]:  # readable before it was set: the node has already hung up
        sys.exit()


if __name__ == "__main__":
    main()
