"""Becomes an engine: a program of its own, run by process.py as `launch.py SOCKET SNAPSHOT LEDGER NODE ARGS...`.

Between the fork and the exec is the only place where an engine can be given exactly the descriptors, the folder and the
environment it may have, and doing it in a fresh process instead of a forked copy of the node keeps it simple and safe.
Fd 3 is the socket, 4 the snapshot, 5 the ledger, and nothing else of ours is open in an engine.
"""

import os
import sys

FIRST, COUNT = 3, 3  # socket, snapshot, ledger


def main() -> None:
    given = [int(word) for word in sys.argv[1 : 1 + COUNT]]
    command = sys.argv[1 + COUNT :]
    # First out of the way: each may have the number of another already.
    for target, fd in enumerate([move_high(fd) for fd in given], FIRST):
        os.dup2(fd, target)
    os.closerange(FIRST + COUNT, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    # Node exits when it cannot read the system's OpenSSL configuration, which the sandbox forbids.
    os.execve(command[0], command, {"OPENSSL_CONF": "/dev/null"})


def move_high(fd: int) -> int:
    """A copy of `fd` above all that are about to be set."""
    low: list[int] = []
    while fd < FIRST + COUNT:
        low.append(fd)
        fd = os.dup(fd)
    for copy in low:
        os.close(copy)
    return fd


if __name__ == "__main__":
    main()
