"""The queue of jobs and the processes that run them.

Processes start when a job needs one and end after an idle time. A tenant has one running job at a time, and tenants
take turns, so one tenant's jobs delay another's by one job at most. The queue is limited per tenant and in total. A job
that is cancelled, because its client has disconnected, ends with its process. So does one that takes too long.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from atoll.offload.jobs import INLINE, Job, OutOfMemory, ProcessLost, Result, TooManyJobs, TooMuchWork
from atoll.offload.process import JobProcess, file_of
from atoll.offload.spool import Spool

log = logging.getLogger("atoll.offload")

TENANT_WAITING: Final = 8  # jobs of one tenant that may wait
WAITING: Final = 64  # jobs that may wait in total
PROCESS_JOBS: Final = 200  # then a process is replaced: its memory may be fragmented
IDLE_SECONDS: Final = 10.0
WALL: Final = 6  # wall time limit of a job, in multiples of its CPU seconds, for busy machines
STOPPING: Final = "the node is stopping"


class JobCounts(Struct):
    """Counts of jobs for metrics."""

    endings: Counter[tuple[str, str]] = field(default_factory=Counter)  # (job, ending)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))  # by job, in a process
    waiting: int = 0
    running: int = 0
    processes: int = 0


class JobPlace:
    """A job in the queue, then the process it runs in."""

    __slots__ = ("granted", "process", "tenant")

    def __init__(self, tenant: str, granted: asyncio.Future[None]) -> None:
        self.tenant = tenant
        self.granted = granted  # resolved when its turn comes
        self.process: JobProcess | None = None  # None: start one


class Offload:
    """The job processes of a node. Made once per node; other modules use only `run`."""

    def __init__(
        self,
        processes: int = 2,
        memory_bytes: int = 512 << 20,
        *,
        idle_seconds: float = IDLE_SECONDS,
        paths: Sequence[str] = (),
    ) -> None:
        self._most = processes
        self._memory_bytes = memory_bytes
        self._idle_seconds = idle_seconds
        self._paths = paths
        self._counts = JobCounts()
        self._waiting: OrderedDict[str, deque[JobPlace]] = OrderedDict()  # by tenant; the first is the next to begin
        self._busy: set[str] = set()  # tenants with a job that runs
        self._idle: list[JobProcess] = []
        self._all: set[JobProcess] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def run(self, job: Job, data: bytes | Spool, args: dict[str, object] | None = None, *, tenant: str) -> Result:
        """Run a job. Raises TooManyJobs, TooMuchWork or ProcessLost. Cancel it if the client disconnects."""
        try:
            result = await self._admitted(job, data, args or {}, tenant)
        except TooManyJobs:
            self._counts.endings[job.name, "refused"] += 1
            raise
        except TooMuchWork:
            self._counts.endings[job.name, "limit"] += 1
            raise
        except asyncio.CancelledError:
            self._counts.endings[job.name, "cancelled"] += 1
            raise
        except Exception:
            self._counts.endings[job.name, "failed"] += 1
            raise
        self._counts.endings[job.name, "ok"] += 1
        return result

    def counts(self) -> JobCounts:
        self._counts.waiting = sum(map(len, self._waiting.values()))
        self._counts.running = len(self._busy)
        self._counts.processes = len(self._all)
        return self._counts

    def pids(self) -> dict[str, int]:
        """The process ids by name."""
        return {f"jobs-{number}": process.pid for number, process in enumerate(self._all, 1)}

    async def close(self) -> None:
        """End every process. Running and waiting jobs fail."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for place in [each for queue in self._waiting.values() for each in queue]:
            if not place.granted.done():
                place.granted.set_exception(ProcessLost(STOPPING))
        for process in list(self._all):
            self._end(process)
        while self._closing:
            await asyncio.wait(self._closing)

    # A job from the queue to its end

    async def _admitted(self, job: Job, data: bytes | Spool, args: dict[str, object], tenant: str) -> Result:
        place = await self._turn(tenant)
        began, fd = time.monotonic(), -1
        try:
            inline = data if isinstance(data, bytes) and len(data) <= INLINE else b""
            if isinstance(data, Spool):
                fd = os.dup(data.fd)
            elif len(data) > INLINE:
                fd = await file_of(data)
            is_used = place.process is not None
            try:
                return await self._attempt(place, job, args, inline, fd)
            except (OutOfMemory, ProcessLost):
                if not is_used or self._is_closed:
                    raise
            # The process may have died idle or be full of other jobs' memory: try once in a new one.
            return await self._attempt(place, job, args, inline, fd)
        finally:
            self._counts.seconds[job.name] += time.monotonic() - began
            if fd >= 0:
                os.close(fd)
            self._leave(place)

    async def _attempt(self, place: JobPlace, job: Job, args: dict[str, object], data: bytes, fd: int) -> Result:
        """Run a job in its process. If it does not return, the process is ended."""
        if place.process is None:
            place.process = await JobProcess.start(self._memory_bytes, self._paths)
            self._all.add(place.process)
        process = place.process
        try:
            async with asyncio.timeout(job.seconds * WALL):
                return await process.run(job, args, data, fd)
        except BaseException as error:
            place.process = None
            self._end(process)
            if isinstance(error, TimeoutError):
                raise TooMuchWork(f"this takes longer than its limit of {job.seconds * WALL:g} s") from None
            raise

    async def _turn(self, tenant: str) -> JobPlace:
        """Wait until a job of this tenant may begin."""
        queue = self._waiting.get(tenant, ())
        if len(queue) >= TENANT_WAITING:
            raise TooManyJobs(
                f"{TENANT_WAITING} requests of this tenant already wait for a job process", of_tenant=True
            )
        if sum(map(len, self._waiting.values())) >= WAITING:
            raise TooManyJobs("too many requests wait for a job process on this node", of_tenant=False)
        if self._is_closed:
            raise ProcessLost(STOPPING)
        place = JobPlace(tenant, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(tenant, deque()).append(place)
        self._begin()
        try:
            await place.granted
        except BaseException:
            if place.granted.cancelled() or place.granted.exception() is not None:
                self._forget(place)
            else:  # it was cancelled just when its turn came
                self._leave(place)
            raise
        return place

    def _begin(self) -> None:
        """Start the jobs whose turn it is."""
        for tenant in list(self._waiting):
            if len(self._busy) >= self._most:
                return
            if tenant in self._busy:
                continue
            queue = self._waiting[tenant]
            while queue and (place := queue.popleft()).granted.done():
                pass
            if not place.granted.done():
                self._busy.add(tenant)
                place.process = self._take_idle()
                place.granted.set_result(None)
            self._waiting.pop(tenant)
            if queue:
                self._waiting[tenant] = queue  # behind the other tenants

    def _take_idle(self) -> JobProcess | None:
        while self._idle:
            process = self._idle.pop()
            if process.is_alive:
                return process
            self._end(process)
        return None

    def _forget(self, place: JobPlace) -> None:
        queue = self._waiting.get(place.tenant)
        if queue is not None and place in queue:
            queue.remove(place)
            if not queue:
                del self._waiting[place.tenant]

    def _leave(self, place: JobPlace) -> None:
        self._busy.discard(place.tenant)
        process = place.process
        if process is not None:
            if process.is_alive and process.jobs < PROCESS_JOBS and not self._is_closed:
                self._idle.append(process)
                self._end_idle_later()
            else:
                self._end(process)
        self._begin()

    # The end of processes

    def _end(self, process: JobProcess) -> None:
        self._all.discard(process)
        if process in self._idle:
            self._idle.remove(process)
        task = asyncio.ensure_future(process.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _end_idle_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._end_idle)

    def _end_idle(self) -> None:
        self._timer = None
        for process in list(self._idle):
            self._end(process)
