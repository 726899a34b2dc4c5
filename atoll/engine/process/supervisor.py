"""Starts the engines, watches them, restarts those that end, and ends them all.

Each engine has one task, which repeats: start, wait for HELLO, serve until something is wrong, kill, reap, wait a bit
longer than the last time. The engines of the shared group run as long as the node. The engine of any other group is
started when the loader asks for it, and ends with its group. One more task sends heartbeats and calls the pool's sweep.

When code is stuck in an engine, the engine is condemned and drained: its task starts the next engine at once. Another
task waits until that one serves and the other calls in the old engine are over, and then kills the old one.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from typing import cast

from atoll.engine.calls.call_table import NEVER
from atoll.engine.link.link import CLOSED
from atoll.engine.loaded.engine_groups import EngineGroup
from atoll.engine.loaded.engine_session import EngineSession
from atoll.engine.pool import Pool
from atoll.engine.process import sandbox
from atoll.engine.process.engine_process import EngineCommand, EngineProcess, Launched
from atoll.engine.process.prestart import EngineOptions, FirstEngines, PrestartedEngine, engine_command
from atoll.engine.process.recycling import RecycleLimits, Recycler
from atoll.errors import EngineError, StartError

log = logging.getLogger("atoll.supervisor")

HELLO_SECONDS = 20.0
SWEEP_SECONDS = 0.1
QUIET_SWEEP_SECONDS = 0.4  # while no call runs or waits
RECYCLE_SECONDS = 1.0
MISSED_HEARTBEATS = 5
FIRST_BACKOFF, LONGEST_BACKOFF = 0.1, 5.0
HEALTHY_SECONDS = 10.0  # an engine that ran for so long is restarted without a longer pause
WORTHY_SECONDS = 1.0  # a condemned engine that ran for so long is replaced at once
REPLACED = "is replaced: "
REPLACE_SECONDS = 10.0  # how long a condemned engine takes new calls while no other engine is ready
GRACE_SECONDS = 10.0  # how long calls in a condemned engine may take, once another engine takes the new ones
GOODBYE_SECONDS = 1.0  # to exit by itself once its socket is closed
DRAIN_POLL = 0.02


class Supervisor:
    def __init__(
        self,
        pool: Pool,
        options: EngineOptions,
        *,
        recycling: RecycleLimits | None = None,
        heartbeat_seconds: float = 1.0,
        first: FirstEngines | None = None,
    ) -> None:
        self._pool = pool
        self._options = options
        self._first = first  # engines that are started already
        self._prestarted: PrestartedEngine | None = None
        self._recycle_limits = recycling or RecycleLimits()
        self.recycler = Recycler(pool, self._recycle_limits, time.monotonic)
        self._heartbeat_seconds = heartbeat_seconds

        # While it runs
        self._command: EngineCommand | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._running: dict[EngineSession, EngineProcess] = {}
        self._own: set[asyncio.Task[None]] = set()  # of groups other than the shared one
        self._draining: dict[EngineSession, asyncio.Task[None]] = {}  # condemned engines
        self.restarts = 0
        self.layers = sandbox.Layers((), ())  # of the engine that started last

    @property
    def pids(self) -> list[int]:
        """The engines that serve now."""
        return [process.pid for process in self._running.values()]

    def engine_pids(self) -> dict[str, int]:
        """The same, by a name that stays the same when an engine is restarted."""
        return {f"engine-{number}": pid for number, pid in enumerate(self.pids, 1)}

    @property
    def running(self) -> dict[EngineSession, int]:
        """The engines that serve now, with their pids."""
        return {session: process.pid for session, process in self._running.items()}

    @property
    def draining(self) -> int:
        """The number of engines that finish their calls and take no new ones."""
        return len(self._draining)

    def engine_reports(self) -> list[dict[str, object]]:
        """What each engine reported with its last heartbeat. Not verified: for display only."""
        return [{"pid": process.pid, **session.link.pong} for session, process in self._running.items()]

    # --- the life of the node ---

    async def start(self) -> None:
        """Start every engine and wait until all have said HELLO. StartError if one cannot."""
        if self._first is not None:
            self._prestarted = await asyncio.wrap_future(self._first.result)
        if self._prestarted is not None:
            self._command = self._prestarted.command
        else:
            memory_bytes, isolates = self._recycle_limits.engine_bytes, self._pool.limits.max_loaded
            self._command = await asyncio.to_thread(engine_command, self._options, memory_bytes, isolates)
        loop = asyncio.get_running_loop()
        first: list[asyncio.Future[None]] = []
        groups = self._pool.loader.groups
        groups.shared.wanted = self._options.engines
        groups.start = self._open
        for number in range(1, self._options.engines + 1):
            ready: asyncio.Future[None] = loop.create_future()
            first.append(ready)
            self._tasks.append(loop.create_task(self._keep(f"engine {number}", groups.shared, ready)))
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
        # Polled: an event would make every call slower, and only the last one matters.
        while self._pool.busy and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(DRAIN_POLL)
        return not self._pool.busy

    async def stop(self) -> None:
        """End every engine: close its socket, wait a moment, kill, reap. Calls left in them fail."""
        self._stopping = True
        self._pool.close()
        tasks = [*self._tasks, *self._own, *self._draining.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()

    # --- the life of an engine ---

    def _open(self, group: EngineGroup) -> None:
        """Start the engine of a new group. It is kept running until the group closes."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        ready.set_result(None)  # not awaited: calls wait in the pool's queue
        task = loop.create_task(self._keep(f"engine of {group.name}", group, ready))
        self._own.add(task)
        task.add_done_callback(self._own.discard)

    async def _keep(self, name: str, group: EngineGroup, ready: asyncio.Future[None]) -> None:
        backoff = FIRST_BACKOFF
        while not self._stopping and not group.is_closing:
            began = time.monotonic()
            try:
                reason = await self._live(name, group, ready)
            except EngineError as error:
                reason = str(error)
            except StartError as error:  # carries its own hint
                reason = str(error)
                if not ready.done():
                    ready.set_exception(error)
                    return
            except OSError as error:  # out of processes or descriptors: may be temporary
                reason = f"cannot be started: {error}"
            except Exception:
                log.exception("%s: a bug in its supervision", name)
                reason = "internal error"
            if not ready.done():
                ready.set_exception(StartError(f"{name} did not start: {reason}", "see the log for what it printed"))
                return
            if group.closed.done():
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
            await asyncio.wait((group.closed,), timeout=backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF)

    async def _live(self, name: str, group: EngineGroup, ready: asyncio.Future[None]) -> str:
        """Run one engine; returns or raises why it ended, once it is reaped or another task drains it."""
        assert self._command is not None
        launched = self._prestarted.take() if self._prestarted is not None else None
        session = self._pool.session(group, launched.ledger if launched is not None else None)
        try:
            process = EngineProcess(name, launched or Launched(self._command, session.ledger))
        except BaseException:
            session.close()
            raise
        session.kill, session.descriptors = process.kill, process.files
        loop = asyncio.get_running_loop()
        is_draining = False
        try:
            await loop.create_unix_connection(lambda: cast(asyncio.Protocol, session.link), sock=process.socket)
            await self._hello(session, process)
            self._check_sandbox(name, process)
            log.info("%s is ready: pid %d, V8 %s", name, process.pid, session.v8)
            self._running[session] = process
            self._pool.add(session, group)
            if not ready.done():
                ready.set_result(None)
            ends = (session.over, process.exited, session.condemned, group.closed)
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if session.condemned.done() and not (session.over.done() or process.exited.done()):
                del self._running[session]
                self._draining[session] = loop.create_task(self._drain(session, process, group))
                is_draining = True
                await asyncio.sleep(0)  # once that task has begun, it is certain to reap the process
                return REPLACED + session.condemned.result()
        finally:
            self._running.pop(session, None)
            if not is_draining:
                await self._end(session, process, group)
        if session.link.broken == CLOSED:  # the socket closed because the process ended
            return _ending(process)
        return session.link.broken or _ending(process)

    async def _drain(self, session: EngineSession, process: EngineProcess, group: EngineGroup) -> None:
        """End a condemned engine, once another has taken its place and its calls are over."""
        try:
            await self._wait_with(session, process, REPLACE_SECONDS, lambda: group.is_whole)
            self._pool.loader.drain_engine(session)
            grace = GRACE_SECONDS if session.is_urgent else NEVER
            await self._wait_with(session, process, grace, lambda: self._pool.is_drained(session))
        finally:
            del self._draining[session]
            await self._end(session, process, group)

    async def _wait_with(
        self, session: EngineSession, process: EngineProcess, seconds: float, condition: Callable[[], bool]
    ) -> None:
        """Wait for a condition, until the time is over or the engine has ended."""
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline:
            if session.over.done() or process.exited.done():
                return
            await asyncio.sleep(DRAIN_POLL)

    async def _hello(self, session: EngineSession, process: EngineProcess) -> None:
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
        """Before any worker is loaded: StartError if a layer of the sandbox is missing and none may be."""
        if self._options.sandbox == sandbox.OFF:
            return
        layers = sandbox.read_layers(process.take_report(), process.pid)
        if self._options.sandbox == sandbox.REQUIRE:
            sandbox.check(layers)
        if layers.missing and layers != self.layers:  # once, not for every engine
            log.warning("%s IS NOT FULLY CONFINED; missing: %s", name, "; ".join(layers.missing))
        self.layers = layers

    async def _end(self, session: EngineSession, process: EngineProcess, group: EngineGroup) -> None:
        """End an engine in whatever state it is: afterwards the process is reaped and the pool is informed."""
        try:
            if (self._stopping or group.is_closing) and not session.link.broken:
                session.link.close()
                await asyncio.wait((process.exited,), timeout=GOODBYE_SECONDS)
        finally:
            process.kill()
            session.link.break_off(_ending(process) if process.exited.done() else "it was stopped")
            process.socket.close()  # no effect if the link has taken it over
            try:
                await _reaped(process)
            finally:
                session.close()
            if process.has_crashed() and not self._stopping:
                self._pool.on_crash(session)

    # --- the clock ---

    async def _tick(self) -> None:
        next_heartbeat = time.monotonic() + self._heartbeat_seconds
        next_recycling = time.monotonic() + RECYCLE_SECONDS
        while True:
            await asyncio.sleep(SWEEP_SECONDS if self._pool.busy else QUIET_SWEEP_SECONDS)
            try:
                self._pool.sweep()
                if time.monotonic() >= next_heartbeat:
                    next_heartbeat = time.monotonic() + self._heartbeat_seconds
                    self._heartbeat()
                if time.monotonic() >= next_recycling:
                    next_recycling = time.monotonic() + RECYCLE_SECONDS
                    self.recycler.look(self.running, not self._draining)
            except Exception:
                log.exception("a tick failed")

    def _heartbeat(self) -> None:
        """Count missed heartbeats rather than seconds: engines must not be killed because the node was suspended."""
        for session in list(self._running):
            if session.link.unanswered >= MISSED_HEARTBEATS:
                session.link.break_off(f"no answer to {MISSED_HEARTBEATS} heartbeats")
            else:
                session.link.ping()


async def _reaped(process: EngineProcess) -> None:
    """Wait for the end of a killed process, even when this task is cancelled: no process may be left behind."""
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
