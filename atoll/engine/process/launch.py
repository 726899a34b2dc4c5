"""The launcher of engines: a program that confines itself and then executes node. engine_process.py runs it.

    launch.py SOCKET SNAPSHOT LEDGER FILES REPORT PLAN NODE ARGS...

Only between fork and exec can an engine be given exactly the descriptors, folder, environment and rights that it may
have. A fresh process is simpler and safer for this than a fork of the node. In an engine fd 3 is the socket, 4 the
snapshot, 5 the ledger, 6 the socket on which files of objects arrive, and no other descriptor of ours is open.

PLAN is empty (no sandbox), or these lines: layers to leave out (for tests), the limit of writable memory in bytes, and
each file that node has to read. REPORT receives the layers that hold. It is closed before node starts, so no engine can
forge it.
"""

import os
import sys

FIRST, COUNT = 3, 4  # socket, snapshot, ledger, files
REPORT = FIRST + COUNT


def main() -> None:
    given = [int(word) for word in sys.argv[1 : 2 + COUNT]]
    plan, *command = sys.argv[2 + COUNT :]
    # Move all of them up first: one may have the target number of another.
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
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.append(os.path.normpath(os.path.join(here, "../../..")))
    from atoll.engine.process.confine import Confinement

    without, data_bytes, *files = plan.split("\n")
    return Confinement(files, data_bytes=int(data_bytes), without=filter(None, without.split(","))).apply()


def move_high(fd: int) -> int:
    """A copy of `fd` above all target numbers."""
    low: list[int] = []
    while fd <= REPORT:
        low.append(fd)
        fd = os.dup(fd)
    for copy in low:
        os.close(copy)
    return fd


if __name__ == "__main__":
    main()
