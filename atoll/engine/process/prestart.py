"""How engines are started, and engines that are started before there is a node to use them.

An engine needs some 150 ms until it says HELLO, and the node waits for it. A command that will run a node in any case
starts its engines before it imports the rest: `atoll dev` and `atoll serve` do.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread

from atoll.config import Settings
from atoll.engine.link.ledger import Ledger
from atoll.engine.process import sandbox
from atoll.engine.process.engine_process import (
    EngineCommand,
    EngineFiles,
    Launched,
    Snapshot,
    ensure_snapshot,
    find_files,
    snapshot_path,
)
from atoll.engine.process.memory import engine_bytes
from atoll.errors import StartError


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """What the operator decides about the engines of a node."""

    data: Path  # where the snapshot is kept
    engines: int  # of the shared group
    threads: int  # of each engine
    spares: int
    sandbox: str
    pbkdf2_iterations: int = 100_000
    heap_initial_mb: int = 0
    files: EngineFiles | None = None  # None: as built with this package
    shared_snapshots: Path | None = None  # where the snapshot is kept instead, if that folder can be written
    host_script: str = ""  # JavaScript of a host program's bindings


def engine_options(settings: Settings, shared_snapshots: Path | None = None, host_script: str = "") -> EngineOptions:
    return EngineOptions(
        data=settings.data,
        engines=settings.engines,
        threads=settings.engine_threads,
        spares=settings.spares,
        sandbox=settings.sandbox,
        pbkdf2_iterations=settings.pbkdf2_iterations,
        heap_initial_mb=settings.heap_initial_mb,
        shared_snapshots=shared_snapshots,
        host_script=host_script,
    )


def engine_command(options: EngineOptions, memory_bytes: int | None = None, isolates: int = 1000) -> EngineCommand:
    """The command that starts an engine, with its snapshot. Blocks: run it in a thread. Raises StartError."""
    files = replace(options.files or find_files(), host_script=options.host_script)
    readable = () if options.sandbox == sandbox.OFF else sandbox.needed_files(files.node, files.main, files.addon)
    return EngineCommand(
        files,
        Snapshot(_snapshot(files, options)),
        options.threads,
        options.spares,
        options.pbkdf2_iterations,
        options.heap_initial_mb,
        options.sandbox,
        readable,
        engine_bytes() if memory_bytes is None else memory_bytes,
        isolates,
        max(len(os.sched_getaffinity(0)) // options.engines, 1),  # all engines together: one per core
    )


def _snapshot(files: EngineFiles, options: EngineOptions) -> Path:
    if options.shared_snapshots is not None:
        try:
            return ensure_snapshot(files, options.shared_snapshots, shared=True)
        except OSError:
            pass
    return ensure_snapshot(files, options.data)


class PrestartedEngine:
    """Starts engines at once. A supervisor takes them over with `take`; `close` ends those that it did not."""

    def __init__(self, command: EngineCommand, count: int = 1) -> None:
        self.command = command
        self._launched: list[Launched] = []
        try:
            for _ in range(count):
                self._launch()
        except BaseException:
            self.close()
            raise

    def _launch(self) -> None:
        ledger = Ledger()
        try:
            self._launched.append(Launched(self.command, ledger))
        except BaseException:
            ledger.close()
            raise

    def take(self) -> Launched | None:
        return self._launched.pop(0) if self._launched else None

    def wait(self, seconds: float) -> None:
        """Wait until every engine has greeted, which it does once it could take calls. Raises StartError."""
        deadline = time.monotonic() + seconds
        for launched in self._launched:
            left = max(deadline - time.monotonic(), 0)
            is_there = select.select([launched.socket], [], [], left)[0]
            if not is_there or not launched.socket.recv(1, socket.MSG_PEEK):
                said = "ended at its start" if is_there else f"did not greet within {seconds:g} s"
                raise StartError(f"an engine {said}", "see the log for what it printed, and run `atoll doctor`")

    def close(self) -> None:
        while (launched := self.take()) is not None:
            launched.abandon()


class FirstEngines:
    """The first engines of a node, started in a thread; `result` is the future of them. The node's supervisor takes
    them over; `close` ends the others."""

    def __init__(self, start: Callable[[], PrestartedEngine | None]) -> None:
        self._start = start
        self.result: Future[PrestartedEngine | None] = Future()
        self._closed = Event()
        self._thread = Thread(target=self._run, name="first engines", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result.set_result(self._start())
        except BaseException as error:
            self.result.set_exception(error)
        self._closed.wait()  # the kernel ends an engine with the thread that started it (PR_SET_PDEATHSIG)

    def __enter__(self) -> FirstEngines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End those that no supervisor has taken over, once they are started. The others end too: only a process that
        ends, or that failed to serve, calls it."""
        if self.result.exception() is None and (engines := self.result.result()) is not None:
            engines.close()
        self._closed.set()
        self._thread.join()


def start_stored(settings: Settings) -> PrestartedEngine | None:
    """Start the engines of a node that has run on its data folder before. None if the snapshot has to be made: that
    writes into the folder, which another node may have locked."""
    options = engine_options(settings)
    files = options.files or find_files()
    if not snapshot_path(files, settings.data).exists():
        return None
    return PrestartedEngine(engine_command(options, isolates=settings.max_loaded), settings.engines)
