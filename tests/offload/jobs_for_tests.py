"""Jobs that misbehave, for the tests of job processes."""

from __future__ import annotations

import ctypes
import os
import resource
import time
from typing import Any

from atoll.offload.jobs import Buffer


def size(data: Buffer, args: dict[str, Any]) -> bytes:
    return str(len(data)).encode()


def repeat(data: Buffer, args: dict[str, Any]) -> bytes | list[bytes]:
    return [data[:]] * args["times"]


def spin(data: Buffer, args: dict[str, Any]) -> bytes:
    while True:
        pass


def block(data: Buffer, args: dict[str, Any]) -> bytes:
    """Waits in C, where no Python code of the process can run: `sleep` is called with the GIL held."""
    with open(args["path"], "w") as file:
        file.write(str(os.getpid()))
    os.rename(args["path"], args["path"] + ".ready")
    ctypes.PyDLL(None).sleep(60)
    return b""


def wait_for(data: Buffer, args: dict[str, Any]) -> bytes:
    while not os.path.exists(args["path"]):
        time.sleep(0.002)
    return str(os.getpid()).encode()


def fill(data: Buffer, args: dict[str, Any]) -> bytes:
    return str(len([bytearray(1 << 20) for _ in range(args["mb"])])).encode()


def crash(data: Buffer, args: dict[str, Any]) -> bytes:
    os.abort()


def fail(data: Buffer, args: dict[str, Any]) -> bytes:
    raise ValueError("a bug")


def describe(data: Buffer, args: dict[str, Any]) -> bytes:
    """The process's environment, descriptors, priority and memory limit."""
    links = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) not in (1, 2)
             and os.path.lexists(f"/proc/self/fd/{fd}")}  # fmt: skip
    facts = [sorted(os.environ), sorted(links.values()), os.nice(0), resource.getrlimit(resource.RLIMIT_AS)[0]]
    return repr(facts).encode()
