"""Starts the engines, watches them, restarts those that end, and ends them all.

Each engine has one task that lives its life over and over: start, HELLO, serve until something is wrong, kill, reap,
wait a little longer than last time. The engines of the shared cell live as long as the node, that of a cell of its own
is started when the pool asks for it and ends with the cell. One more task is the clock of the room: heartbeats and the
pool's sweep.

An engine in which code got stuck is condemned: the next life of its task begins at once, while a task of its own waits
until that one serves and the innocent calls in the old one are over, and then kills it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from atoll.engine import sandbox
from atoll.engine.cells import Cell
from atoll.engine.early import EarlyEngine, prepared
from atoll.engine.link import CLOSED
from atoll.engine.pool import Pool
from atoll.engine.process import EngineCommand, EngineFiles, EngineProcess, Launched
from atoll.engine.session import Session
from atoll.engine.table import NEVER
from atoll.engine.upkeep import Upkeep, UpkeepLimits
from atoll.errors import EngineError, StartError

log = logging.getLogger("atoll.supervisor")

HELLO_SECONDS = 20.0
SWEEP_SECONDS = 0.1
UPKEEP_SECONDS = 1.0
MISSED_HEARTBEATS = 5
FIRST_BACKOFF, LONGEST_BACKOFF = 0.1, 5.0
HEALTHY_SECONDS = 10.0  # an engine that lived so long may restart at once
WORTHY_SECONDS = 1.0  # and so long, when a worker was to blame
REPLACED = "is replaced: "
REPLACE_SECONDS = 10.0  # a condemned engine serves on for so long while no other is ready
GRACE_SECONDS = 10.0  # calls in a condemned engine have so long to finish, once another takes the new ones
GOODBYE_SECONDS = 1.0  # to exit by itself once its socket is closed
DRAIN_POLL = 0.02


class Supervisor:
    def __init__(
        self,
        pool: Pool,
        *,
        data: Path,
        engines: int,
        threads: int,
        spares: int,
        sandbox_mode: str,
        pbkdf2_iterations: int = 100_000,
        files: EngineFiles | None = None,
        upkeep: UpkeepLimits | None = None,
        heartbeat_seconds: float = 1.0,
        heap_initial_mb: int = 0,
        early: EarlyEngine | None = None,
    ) -> None:
        self._pool = pool
        self._early = early  # the first engine, begun before all this; used once
        self._upkeep_limits = upkeep or UpkeepLimits()
        self.upkeep = Upkeep(pool, self._upkeep_limits, time.monotonic)
        self._heartbeat_seconds = heartbeat_seconds
        self._heap_initial_mb = heap_initial_mb
        self._data = data
        self._count = engines
        self._threads = threads
        self._spares = spares
        self._pbkdf2_iterations = pbkdf2_iterations
        self._sandbox = sandbox_mode
        self._files = files

        # While it runs
        self._command: EngineCommand | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._running: dict[Session, EngineProcess] = {}
        self._own: set[asyncio.Task[None]] = set()  # of cells of their own
        self._leaving: dict[Session, asyncio.Task[None]] = {}  # condemned, with calls that may finish
        self.restarts = 0
        self.layers = sandbox.Layers((), ())  # of the engine that started last

    @property
    def pids(self) -> list[int]:
        """The engines that serve now."""
        return [process.pid for process in self._running.values()]

    def engine_pids(self) -> dict[str, int]:
        """The same by a name that outlives a restart."""
        return {f"engine-{number}": pid for number, pid in enumerate(self.pids, 1)}

    @property
    def running(self) -> dict[Session, int]:
        """The engines that serve now, with their pids."""
        return {session: process.pid for session, process in self._running.items()}

    @property
    def leaving(self) -> int:
        """How many engines only finish the calls they have."""
        return len(self._leaving)

    def engine_reports(self) -> list[dict[str, object]]:
        """What each engine last said of itself with its heartbeat: to show, never to trust."""
        return [{"pid": process.pid, **session.link.pong} for session, process in self._running.items()]

    # --- the life of the node ---

    async def start(self) -> None:
        """Start every engine and wait until all have said HELLO. StartError if one cannot."""
        if self._early is not None:
            self._command = self._early.command
        else:
            self._command = await asyncio.to_thread(
                prepared,
                self._data,
                files=self._files,
                threads=self._threads,
                engines=self._count,
                spares=self._spares,
                pbkdf2_iterations=self._pbkdf2_iterations,
                heap_initial_mb=self._heap_initial_mb,
                sandbox_mode=self._sandbox,
                memory_bytes=self._upkeep_limits.engine_bytes,
                isolates=self._pool.limits.max_loaded,
            )
        loop = asyncio.get_running_loop()
        first: list[asyncio.Future[None]] = []
        shared = self._pool.cells.shared
        shared.wanted = self._count
        self._pool.cells.start = self._open
        for number in range(1, self._count + 1):
            ready: asyncio.Future[None] = loop.create_future()
            first.append(ready)
            self._tasks.append(loop.create_task(self._keep(f"engine {number}", shared, ready)))
        self._tasks.append(loop.create_task(self._tick()))
        try:
            await asyncio.gather(*first)
        except BaseException:
            for ready in first:
                ready.cancel()
            await self.stop()
            raise

    async def drain(self, seconds: float) -> bool:
        """Wait for the calls in flight; False if some are left when the time is over."""
        deadline = time.monotonic() + seconds
        # Polled: an event would cost every call something, for the sake of the last one.
        while self._pool.busy and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(DRAIN_POLL)
        return not self._pool.busy

    async def stop(self) -> None:
        """End every engine: close its socket, wait a moment, kill, reap. Calls left in them fail."""
        self._stopping = True
        self._pool.close()
        tasks = [*self._tasks, *self._own, *self._leaving.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()

    # --- the life of an engine ---

    def _open(self, cell: Cell) -> None:
        """Start the engine of a cell of its own; it is kept running until the cell closes."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        ready.set_result(None)  # nobody waits for it: calls do, in the pool's queue
        task = loop.create_task(self._keep(f"engine of {cell.name}", cell, ready))
        self._own.add(task)
        task.add_done_callback(self._own.discard)

    async def _keep(self, name: str, cell: Cell, ready: asyncio.Future[None]) -> None:
        backoff = FIRST_BACKOFF
        while not self._stopping and not cell.is_closing:
            began = time.monotonic()
            try:
                reason = await self._live(name, cell, ready)
            except EngineError as error:
                reason = str(error)
            except StartError as error:  # it says itself what to do
                reason = str(error)
                if not ready.done():
                    ready.set_exception(error)
                    return
            except OSError as error:  # out of processes or descriptors: may pass
                reason = f"cannot be started: {error}"
            except Exception:
                log.exception("%s: a bug in its supervision", name)
                reason = "internal error"
            if not ready.done():
                ready.set_exception(StartError(f"{name} did not start: {reason}", "see the log for what it printed"))
                return
            if cell.closed.done():
                log.info("%s ended: nothing was loaded in it any more", name)
                return
            self.restarts += 1
            lived = time.monotonic() - began
            if reason.startswith(REPLACED) and lived > WORTHY_SECONDS:
                log.warning("%s %s", name, reason)
                continue
            if lived > HEALTHY_SECONDS:
                backoff = FIRST_BACKOFF
            log.error("%s ended: %s; it restarts in %.1f s", name, reason, backoff)
            await asyncio.wait((cell.closed,), timeout=backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF)

    async def _live(self, name: str, cell: Cell, ready: asyncio.Future[None]) -> str:
        """One life of an engine; returns or raises why it ended, once nothing of it is left or another task ends it."""
        assert self._command is not None
        launched = self._early.take() if self._early is not None else None
        session = self._pool.session(cell, launched.ledger if launched is not None else None)
        try:
            process = EngineProcess(name, launched or Launched(self._command, session.ledger))
        except BaseException:
            session.close()
            raise
        session.kill = process.kill
        loop = asyncio.get_running_loop()
        leaves = False
        try:
            await loop.create_unix_connection(lambda: cast(asyncio.Protocol, session.link), sock=process.socket)
            await self._hello(session, process)
            self._check_sandbox(name, process)
            log.info("%s is ready: pid %d, V8 %s", name, process.pid, session.v8)
            self._running[session] = process
            self._pool.add(session)
            if not ready.done():
                ready.set_result(None)
            ends = (session.over, process.exited, session.condemned, cell.closed)
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if session.condemned.done() and not (session.over.done() or process.exited.done()):
                del self._running[session]
                self._leaving[session] = loop.create_task(self._farewell(session, process))
                leaves = True
                await asyncio.sleep(0)  # from its first step on that task is sure to reap the process
                return REPLACED + session.condemned.result()
        finally:
            self._running.pop(session, None)
            if not leaves:
                await self._end(session, process)
        if session.link.broken == CLOSED:  # the socket closed because the process ended: its end is the reason
            return _ending(process)
        return session.link.broken or _ending(process)

    async def _farewell(self, session: Session, process: EngineProcess) -> None:
        """The end of a condemned engine, when another has taken its place and the innocent calls in it are over."""
        try:
            await self._wait_with(session, process, REPLACE_SECONDS, lambda: session.cell.is_whole)
            self._pool.leave(session)
            grace = GRACE_SECONDS if session.is_urgent else NEVER
            await self._wait_with(session, process, grace, lambda: self._pool.has_left(session))
        finally:
            del self._leaving[session]
            await self._end(session, process)

    async def _wait_with(
        self, session: Session, process: EngineProcess, seconds: float, condition: Callable[[], bool]
    ) -> None:
        """Wait for a condition, no longer than some seconds and than the engine lives."""
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            if session.over.done() or process.exited.done():
                return
            await asyncio.sleep(DRAIN_POLL)

    async def _hello(self, session: Session, process: EngineProcess) -> None:
        await asyncio.wait(
            (session.greeted, process.exited), timeout=HELLO_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        if session.greeted.done() and session.greeted.exception() is None:
            return
        if session.greeted.done() and session.link.broken != CLOSED:
            reason = session.link.broken
        else:
            await asyncio.wait((process.exited,), timeout=GOODBYE_SECONDS)
            reason = _ending(process) if process.exited.done() else f"no HELLO within {HELLO_SECONDS:g} s"
        said = f"; it printed: {process.output}" if process.output else ""
        raise EngineError(reason + said)

    def _check_sandbox(self, name: str, process: EngineProcess) -> None:
        """Between HELLO and the first tenant: StartError if the sandbox must be whole and is not."""
        if self._sandbox == sandbox.OFF:
            return
        layers = sandbox.read_layers(process.take_report(), process.pid)
        if self._sandbox == sandbox.REQUIRE:
            sandbox.check(layers)
        if layers.missing and layers != self.layers:  # once, not for every engine
            log.warning("%s IS NOT FULLY CONFINED; missing: %s", name, "; ".join(layers.missing))
        self.layers = layers

    async def _end(self, session: Session, process: EngineProcess) -> None:
        """Whatever happened, at the end of this the process is reaped and the pool knows."""
        try:
            if (self._stopping or session.cell.is_closing) and not session.link.broken:
                session.link.close()
                await asyncio.wait((process.exited,), timeout=GOODBYE_SECONDS)
        finally:
            process.kill()
            session.link.break_off(_ending(process) if process.exited.done() else "it was stopped")
            process.socket.close()  # the link's by now, unless it never came to be
            try:
                await _reaped(process)
            finally:
                session.close()
            if process.has_crashed() and not self._stopping:
                self._pool.on_crash(session)

    # --- the clock ---

    async def _tick(self) -> None:
        next_heartbeat = time.monotonic() + self._heartbeat_seconds
        next_upkeep = time.monotonic() + UPKEEP_SECONDS
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                self._pool.sweep()
                if time.monotonic() >= next_heartbeat:
                    next_heartbeat = time.monotonic() + self._heartbeat_seconds
                    self._heartbeat()
                if time.monotonic() >= next_upkeep:
                    next_upkeep = time.monotonic() + UPKEEP_SECONDS
                    self.upkeep.look(self.running, not self._leaving)
            except Exception:
                log.exception("a tick failed")

    def _heartbeat(self) -> None:
        """Counts beats, not seconds: when the node itself was stopped for a while, no engine is to blame."""
        for session in list(self._running):
            if session.link.unanswered >= MISSED_HEARTBEATS:
                session.link.break_off(f"no answer to {MISSED_HEARTBEATS} heartbeats")
            else:
                session.link.ping()


async def _reaped(process: EngineProcess) -> None:
    """Wait for the end of a process that was killed, also when the node stops meanwhile: it must not be left behind."""
    cancelled = False
    while not process.exited.done():
        try:
            await asyncio.wait((process.exited,))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


def _ending(process: EngineProcess) -> str:
    if not process.exited.done():
        return "it did not exit"
    code = process.exited.result()
    if code == -signal.SIGSYS:
        return "killed by the sandbox: it made a system call that no engine makes"
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
