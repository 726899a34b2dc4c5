"""`atoll serve --processes N`: N nodes on this machine under one parent, on the port of one, sharing a PostgreSQL.

The parent opens the port once and passes it to every process, so a client that connects while one of them dies is
answered by another. Each process is a node of its own: with a folder (process-1, process-2 … in the data folder), a
name, and a port of its own after the shared one, at which edges, metrics and `atoll nodes` reach it alone. A process
that ends is started again. The parent does nothing else, so it has nothing to crash on.
"""

from __future__ import annotations

import ctypes
import logging
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from atoll.cluster.storage import SHARED
from atoll.config import Settings
from atoll.control.store.vault import VARIABLE, Vault
from atoll.db.folder import KEY_FILE
from atoll.errors import StartError
from atoll.front.passed import FIRST_FD, passed_sockets
from atoll.front.server import Listening, listen
from atoll.handover.notify import notify

log = logging.getLogger("atoll")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # before an ended process is started again; doubled if it ended soon
SOON = 10.0  # seconds
PR_SET_PDEATHSIG = 1
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Process:
    """One of them: how it is started, and how often it ended."""

    def __init__(self, number: int, command: Sequence[str], own: Listening) -> None:
        self.number = number
        self.command = command
        self.own = own
        self.pid = 0
        self.started = 0.0
        self.pause = FIRST_PAUSE
        self.due = 0.0  # when to start it, if it does not run
        self.is_ready = False


class Processes:
    def __init__(self, settings: Settings, arguments: Sequence[str], undo: ExitStack) -> None:
        """Raises StartError. `arguments` are those of the parent, without the program."""
        check_folder(settings.data, settings.processes)
        passed = passed_sockets(os.environ)
        self._shared = Listening()
        self._shared.sockets += [each for sockets in passed.values() for each in sockets]
        if not self._shared.sockets:
            self._shared = listen(settings.host, settings.port)
        undo.callback(self._shared.close)
        self._all: list[Process] = []
        port = self._shared.port
        for number in range(1, settings.processes + 1):
            own = listen(settings.host, port + number if settings.port else 0)
            undo.callback(own.close)
            self._all.append(Process(number, command_of(settings, arguments, number, port, own.port), own))
        share_key(settings.data, settings.processes)
        folder = undo.enter_context(tempfile.TemporaryDirectory(prefix="atoll-processes-"))
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        undo.callback(self._told.close)
        self._address = f"{folder}/notify"
        self._told.bind(self._address)
        self._told.setblocking(False)
        self._is_stopping = False
        self._code = 0

    def run(self) -> int:
        """Until a signal, or until the first process cannot start. Returns the exit code."""
        with awakened() as (selector, wake), ExitStack() as undo:
            for number in FORWARDED:
                undo.callback(signal.signal, number, signal.signal(number, self._forward))
            undo.callback(signal.signal, signal.SIGCHLD, signal.signal(signal.SIGCHLD, _nothing))
            selector.register(self._told, selectors.EVENT_READ)
            self._start(self._all[0])  # it makes the tables, if nobody has; the others follow when it serves
            while any(each.pid for each in self._all) or not self._is_stopping:
                selector.select(self._wait())
                wake()
                self._reap()
                self._hear()
                for each in self._all:
                    if each.due and each.due <= time.monotonic() and not self._is_stopping:
                        self._start(each)
        return self._code

    def _wait(self) -> float | None:
        due = [each.due for each in self._all if each.due]
        return max(min(due) - time.monotonic(), 0) if due and not self._is_stopping else None

    def _start(self, process: Process) -> None:
        process.due = 0.0
        process.started = time.monotonic()
        sockets = [*self._shared.sockets, *process.own.sockets]
        pid = os.fork()
        if pid == 0:
            _become(process.command, sockets, self._address, is_first=process.number == 1)
        process.pid = pid

    def _forward(self, number: int, _: object) -> None:
        if number != signal.SIGHUP:
            self._is_stopping = True
            notify("STOPPING=1")
        for each in self._all:
            if each.pid:
                os.kill(each.pid, signal.SIGTERM if number == signal.SIGINT else number)

    def _reap(self) -> None:
        for each in self._all:
            if not each.pid or os.waitpid(each.pid, os.WNOHANG)[0] == 0:
                continue
            each.pid = 0
            if self._is_stopping:
                continue
            if not any(other.is_ready for other in self._all):  # it said why it cannot start
                self._is_stopping, self._code = True, 1
                continue
            each.pause = FIRST_PAUSE if time.monotonic() - each.started > SOON else min(each.pause * 2, LONGEST_PAUSE)
            each.due = time.monotonic() + each.pause
            log.error("process %d ended; it is started again in %.1f s", each.number, each.pause)

    def _hear(self) -> None:
        """Processes say that they serve, as they would say it to systemd."""
        with suppress(BlockingIOError):
            while True:
                said = self._told.recv(4096).decode("utf-8", "replace").splitlines()
                pids = [line.removeprefix("MAINPID=") for line in said if line.startswith("MAINPID=")]
                for each in self._all:
                    if "READY=1" in said and str(each.pid) in pids:
                        self._is_up(each)

    def _is_up(self, process: Process) -> None:
        was_ready = all(each.is_ready for each in self._all)
        if not any(each.is_ready for each in self._all):
            for other in self._all:
                if not other.pid:
                    other.due = time.monotonic()
        process.is_ready = True
        if not was_ready and all(each.is_ready for each in self._all):
            notify(f"MAINPID={os.getpid()}", "READY=1")
            log.info("all %d processes serve", len(self._all))


def command_of(settings: Settings, arguments: Sequence[str], number: int, port: int, own: int) -> list[str]:
    """The arguments of one process: those of the parent, and what is its own after them."""
    address = settings.node_address or f"{settings.host}:{port}"
    host = address.rpartition(":")[0] or address
    name = settings.node_name or address
    values: dict[str, object] = {
        "processes": 1,
        "port": port,
        "data": settings.data / f"process-{number}",
        "node-name": f"{name}-{number}",
        "node-address": f"{host}:{own}",
        "engines": max(settings.engines // settings.processes, 1),
    }
    link, _, link_port = settings.node_link.rpartition(":")
    if link_port.isdecimal() and int(link_port):
        values["node-link"] = f"{link}:{int(link_port) + number - 1}"
    flags = [f"--{flag}={value}" for flag, value in values.items()]
    return [sys.executable, sys.argv[0], *arguments, *flags, *(["--no-example"] if number > 1 else [])]


def check_folder(data: Path, count: int) -> None:
    """Make the folders. StartError if this one belongs to a single node."""
    for name in ("atoll.db", SHARED):
        if (data / name).exists():
            raise StartError(
                f"the data folder {data} is of a single node, and --processes makes nodes with folders of their own",
                "choose another folder with --data, and copy root-key from this one into it",
                "data",
            )
    try:
        for number in range(1, count + 1):
            (data / f"process-{number}").mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(
            f"{data} cannot be made: {error.strerror}", "choose another folder with --data", "data"
        ) from None


def share_key(data: Path, count: int) -> None:
    """All processes have the root key of the folder. It is made if there is none. StartError if they differ."""
    if os.environ.get(VARIABLE):
        return
    path = data / KEY_FILE
    if not path.exists():
        Vault(data).add_key()
    for number in range(1, count + 1):
        own = data / f"process-{number}" / KEY_FILE
        if not own.exists():
            own.touch(0o600)
            shutil.copyfile(path, own)
        elif own.read_bytes() != path.read_bytes():
            raise StartError(
                f"{own} and {path} are not the same root key",
                "copy the one that other nodes have over the other, or the one with more lines if there are no others",
            )


def _become(command: Sequence[str], sockets: Sequence[socket.socket], address: str, *, is_first: bool) -> None:
    """In the child: become that process. It ends when the parent does."""
    try:
        os.setpgid(0, 0)  # Ctrl-C is for the parent, which tells the others
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        for number in FORWARDED:
            signal.signal(number, signal.SIG_DFL)
        first = FIRST_FD + len(sockets) + 16
        copies = [os.dup2(each.fileno(), first + at) for at, each in enumerate(sockets)]
        for at, copy in enumerate(copies):
            os.dup2(copy, FIRST_FD + at, inheritable=True)
        os.closerange(FIRST_FD + len(sockets), first + len(sockets))
        if not is_first:  # one greeting is enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        passed = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(sockets)), "NOTIFY_SOCKET": address}
        os.execve(command[0], list(command), {**os.environ, **passed})
    finally:
        os._exit(127)


@contextmanager
def awakened() -> Iterator[tuple[selectors.BaseSelector, Callable[[], object]]]:
    """A selector that signals wake, and what empties it."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    old = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    selector = selectors.DefaultSelector()
    selector.register(reading, selectors.EVENT_READ)

    def empty() -> None:
        with suppress(BlockingIOError):
            os.read(reading, 4096)

    try:
        yield selector, empty
    finally:
        signal.set_wakeup_fd(old)
        selector.close()
        os.close(reading)
        os.close(writing)


def _nothing(number: int, frame: object) -> None:
    """The signal wakes the selector."""


def serve_processes(settings: Settings, arguments: Sequence[str]) -> int:
    """Raises StartError."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    with ExitStack() as undo:
        return Processes(settings, arguments, undo).run()
