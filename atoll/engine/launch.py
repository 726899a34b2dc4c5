"""Becomes an engine: a program of its own, run by process.py as `python -I -S launch.py SOCKET SNAPSHOT NODE ARGS...`.

Between the fork and the exec is the only place where an engine can be given exactly the descriptors, the folder and the
environment it may have, and doing it in a fresh process instead of a forked copy of the node keeps it simple and safe.
Fd 3 is the socket, fd 4 the snapshot, and nothing else of ours is open in an engine.
"""

import os
import sys

SOCKET, SNAPSHOT = 3, 4


def main() -> None:
    socket, snapshot = int(sys.argv[1]), int(sys.argv[2])
    command = sys.argv[3:]
    # First out of the way: either may be 3 or 4 already.
    socket, snapshot = move_high(socket), move_high(snapshot)
    os.dup2(socket, SOCKET)
    os.dup2(snapshot, SNAPSHOT)
    os.closerange(5, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    # Node exits when it cannot read the system's OpenSSL configuration, which the sandbox forbids.
    os.execve(command[0], command, {"OPENSSL_CONF": "/dev/null"})


def move_high(fd: int) -> int:
    """A copy of `fd` above 4."""
    low: list[int] = []
    while fd <= SNAPSHOT:
        low.append(fd)
        fd = os.dup(fd)
    for copy in low:
        os.close(copy)
    return fd


if __name__ == "__main__":
    main()
