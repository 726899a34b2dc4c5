"""What it takes to start engines, and an engine that is started before there is a node to use it.

An engine needs some 150 ms until it says HELLO, in which the node waits. A command that knows beforehand that it will
run a node starts the first one before it imports the rest: `atoll dev` does.
"""

from __future__ import annotations

import os
from pathlib import Path

from atoll.engine import sandbox
from atoll.engine.ledger import Ledger
from atoll.engine.memory import engine_bytes
from atoll.engine.process import EngineCommand, EngineFiles, Launched, Snapshot, ensure_snapshot, find_files


def prepared(
    data: Path,
    *,
    threads: int,
    engines: int,
    spares: int,
    pbkdf2_iterations: int,
    heap_initial_mb: int,
    sandbox_mode: str,
    memory_bytes: int | None = None,
    isolates: int = 1000,
    files: EngineFiles | None = None,
    shared: Path | None = None,
) -> EngineCommand:
    """How engines are started, with the snapshot they start from. Blocks: run it in a thread. Raises StartError.

    The snapshot is kept in `data`, or in `shared` with those of other nodes, where that can be written.
    """
    files = files or find_files()
    try:
        snapshot = ensure_snapshot(files, data) if shared is None else ensure_snapshot(files, shared, shared=True)
    except OSError:
        if shared is None:
            raise
        snapshot = ensure_snapshot(files, data)
    readable = () if sandbox_mode == sandbox.OFF else sandbox.needed_files(files.node, files.main, files.addon)
    return EngineCommand(
        files,
        Snapshot(snapshot),
        threads,
        spares,
        pbkdf2_iterations,
        heap_initial_mb,
        sandbox_mode,
        readable,
        engine_bytes() if memory_bytes is None else memory_bytes,
        isolates,
        max(len(os.sched_getaffinity(0)) // engines, 1),  # together as many as there are cores
    )


class EarlyEngine:
    """Starts an engine at once. A supervisor takes it over; `close` ends it if none did."""

    def __init__(self, command: EngineCommand) -> None:
        self.command = command
        ledger = Ledger()
        try:
            self._launched: Launched | None = Launched(command, ledger)
        except BaseException:
            ledger.close()
            raise

    def take(self) -> Launched | None:
        launched, self._launched = self._launched, None
        return launched

    def close(self) -> None:
        if (launched := self.take()) is not None:
            launched.abandon()
