"""A quiet tenant's client: one small request every 5 ms, in a process of its own, and the longest time it waited.

    python tests/stalls/victim.py PORT HOST PID

Together with each request it sends one for a host that nobody has, on a second connection. Python answers that alone,
so how long it takes is the lag of the event loop; what the worker's answer takes longer is due to engines.

It answers each line on its standard input. `begin` forgets what was measured so far. `end` prints the longest wait in
milliseconds, the longest lag, and how many requests were answered. Time for which the node's event loop or this process
was ready to run but had no core does not count: that is the machine's doing, not the node's.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from pathlib import Path

EVERY = 0.005
GIVE_UP = 60.0
NOBODY = "nobody-at-all.localhost"


class Line:
    """A connection on which the same request is sent again and again."""

    def __init__(self, port: int, host: str, status: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), GIVE_UP)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request = f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        self.expected = b"HTTP/1.1 " + status
        self.worst = 0.0

    def fileno(self) -> int:
        return self.socket.fileno()

    def read(self) -> None:
        answer = self.socket.recv(65536)
        if not answer.startswith(self.expected):
            sys.exit(f"the quiet tenant was answered {answer[:200]!r}")


class Victim:
    def __init__(self, port: int, host: str, pid: int) -> None:
        self.delays = [Path(f"/proc/{process}/schedstat") for process in (pid, os.getpid())]
        self.worker = Line(port, host, b"200 ")
        self.loop = Line(port, NOBODY, b"404 ")
        self.answered = 0

    def delayed(self) -> float:
        """Seconds for which one of the two processes wanted a core and had none."""
        return sum(int(path.read_text().split()[1]) for path in self.delays) / 1e9

    def ask(self) -> None:
        delayed, began = self.delayed(), time.perf_counter()
        waiting = [self.worker, self.loop]
        for line in waiting:
            line.socket.sendall(line.request)
        while waiting:
            ready, _, _ = select.select(waiting, [], [], GIVE_UP)
            if not ready:
                sys.exit("the quiet tenant was not answered")
            waited = time.perf_counter() - began - (self.delayed() - delayed)
            for line in ready:
                line.read()
                line.worst = max(line.worst, waited)
                waiting.remove(line)
        self.answered += 1

    def run(self) -> None:
        while True:
            self.ask()
            readable, _, _ = select.select([sys.stdin], [], [], EVERY)
            if not readable:
                continue
            line = sys.stdin.readline()
            if not line:
                return
            if line == "begin\n":
                self.worker.worst, self.loop.worst, self.answered = 0.0, 0.0, 0
            sys.stdout.write(f"{self.worker.worst * 1000:.1f} {self.loop.worst * 1000:.1f} {self.answered}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    Victim(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])).run()
