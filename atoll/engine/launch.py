"""Becomes an engine: a program of its own, run by process.py.

    launch.py SOCKET SNAPSHOT LEDGER REPORT PLAN NODE ARGS...

Between the fork and the exec is the only place where an engine can be given exactly the descriptors, the folder, the
environment and the rights it may have, and doing it in a fresh process instead of a forked copy of the node keeps it
simple and safe. Fd 3 is the socket, 4 the snapshot, 5 the ledger, and nothing else of ours is open in an engine.

PLAN is empty (no sandbox), or a line of layers to leave out, for tests, one with the bytes of memory that may be
written to, and a line per file that node has to read.
Which layers hold is written to REPORT, which is closed before node begins: no engine can have forged what it says.
"""

import os
import sys

FIRST, COUNT = 3, 3  # socket, snapshot, ledger
REPORT = FIRST + COUNT


def main() -> None:
    given = [int(word) for word in sys.argv[1 : 2 + COUNT]]
    plan, *command = sys.argv[2 + COUNT :]
    # First out of the way: each may have the number of another already.
    for target, fd in enumerate([move_high(fd) for fd in given], FIRST):
        os.dup2(fd, target)
    os.set_inheritable(REPORT, False)
    os.closerange(REPORT + 1, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    if plan:
        os.write(REPORT, confine(plan).encode())
    # Node exits when it cannot read the system's OpenSSL configuration, which the sandbox forbids.
    os.execve(command[0], command, {"OPENSSL_CONF": "/dev/null"})


def confine(plan: str) -> str:
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from atoll.engine.confine import Confinement

    without, data_bytes, *files = plan.split("\n")
    return Confinement(files, data_bytes=int(data_bytes), without=filter(None, without.split(","))).apply()


def move_high(fd: int) -> int:
    """A copy of `fd` above all that are about to be set."""
    low: list[int] = []
    while fd <= REPORT:
        low.append(fd)
        fd = os.dup(fd)
    for copy in low:
        os.close(copy)
    return fd


if __name__ == "__main__":
    main()
