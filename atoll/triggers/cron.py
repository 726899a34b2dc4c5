"""Runs `scheduled` handlers when the clock says so.

One task per worker that has cron expressions, so that runs of one worker never overlap: a slot that comes while a run
is under way waits for it, and of several that were missed (a long run, a stopped node) only the newest is made up.
The wall clock decides, read again at least every minute, so that a clock which is set, or a machine that slept, delays
a run but never repeats one: the history knows which slot was seen to last.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from atoll.engine.events import Calls, EventFailed, run_event
from atoll.errors import StorageFailed
from atoll.triggers.expression import Cron, parse_cron
from atoll.triggers.history import CronHistory
from atoll.wire.generated import OUTCOME_NAMES, Event
from atoll.workers import Version

log = logging.getLogger("atoll.cron")

LONGEST_SLEEP = 60.0
AGAIN_SECONDS = 2.0  # until the next try when the history cannot be written
CLOCK_JUMP = 3_600_000  # ms a clock may be set back before the triggers believe that it was wrong before


class Slot(NamedTuple):
    """A time at which an expression wants its worker to run."""

    at: int  # ms since 1970
    cron: Cron


class CronTriggers:
    def __init__(self, calls: Calls, history: CronHistory, *, clock: Callable[[], float] = time.time) -> None:
        self._calls = calls
        self.history = history
        self._clock = clock
        self._workers: dict[str, _Clock] = {}  # by worker id
        self._turns: dict[str, asyncio.Lock] = {}  # by worker id: held while a run goes on
        self._later: set[asyncio.Task[None]] = set()  # ends of runs that are not stored yet
        self.is_stopped = False

    def put(self, version: Version, crons: Sequence[str]) -> None:
        """This is the active version of its worker now, with these expressions."""
        clock = self._workers.get(version.worker_id)
        if clock is not None:
            clock.change(version, crons)
        elif crons:
            self._workers[version.worker_id] = _Clock(self, version, crons)

    async def drop(self, worker_id: str) -> None:
        """The worker is gone, and its history with it."""
        clock = self._workers.pop(worker_id, None)
        if clock is not None:
            clock.task.cancel()
        self._turns.pop(worker_id, None)
        await self.history.forget(worker_id)

    def end(self, worker_id: str) -> None:
        """A worker has no expression any more, and no run goes on."""
        del self._workers[worker_id]

    def stop(self) -> None:
        """Begin nothing more; runs under way go on."""
        self.is_stopped = True

    def next_run(self, cron: str) -> int | None:
        """When an expression is due next, in ms since 1970."""
        moment = parse_cron(cron).next_after(moment_of(self.now()))
        return None if moment is None else ms_of(moment)

    def now(self) -> int:
        return int(self._clock() * 1000)

    async def run(self, version: Version, cron: str, slot: int, *, by_hand: bool = False) -> tuple[str, str]:
        """Run the handler once and put it down, after a run that goes on; returns the outcome and what went wrong."""
        async with self._turns.setdefault(version.worker_id, asyncio.Lock()):
            return await self._run(version, cron, slot, by_hand)

    async def _run(self, version: Version, cron: str, slot: int, by_hand: bool) -> tuple[str, str]:
        number = await self.history.begin(version.worker_id, cron, slot, by_hand=by_hand)
        outcome, message = "internalError", "the node stopped"
        try:
            await run_event(
                self._calls, version, Event.SCHEDULED, f"CRON {cron}", {"cron": cron, "scheduledTime": slot}
            )
            outcome, message = "ok", ""
        except EventFailed as error:
            failure = error.failure
            outcome = OUTCOME_NAMES[failure.facts.outcome]
            message = f"{failure.name}: {failure.message}" if failure.name else failure.message
            log.warning("the cron trigger %s of %s failed: %s", cron, version.worker_name, message)
        finally:
            await asyncio.shield(self._end(number, outcome, message))
        return outcome, message

    async def _end(self, number: int, outcome: str, message: str) -> None:
        """Put down how a run ended; when the disk does not take it, as soon as it does."""
        try:
            await self.history.end(number, outcome, message)
        except StorageFailed as error:
            log.error("how a run ended cannot be stored yet: %s", error)
            task = asyncio.ensure_future(self._end_later(number, outcome, message))
            self._later.add(task)
            task.add_done_callback(self._later.discard)

    async def _end_later(self, number: int, outcome: str, message: str) -> None:
        while True:
            await asyncio.sleep(AGAIN_SECONDS)
            try:
                return await self.history.end(number, outcome, message)
            except StorageFailed:
                pass  # the log was told

    async def close(self) -> None:
        tasks = [*(clock.task for clock in self._workers.values()), *self._later]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._workers.clear()
        await self.history.close()


class _Clock:
    """The expressions of one worker, and the task that waits for them."""

    def __init__(self, triggers: CronTriggers, version: Version, crons: Sequence[str]) -> None:
        self._triggers = triggers
        self._changed = asyncio.Event()
        self._looked_at = triggers.now()
        self.change(version, crons)
        self.task = asyncio.ensure_future(self._tick())

    def change(self, version: Version, crons: Sequence[str]) -> None:
        self.version = version
        self.crons = [parse_cron(cron) for cron in crons]
        self._is_new = True
        self._changed.set()

    async def _tick(self) -> None:
        while not self._triggers.is_stopped:
            try:
                self._changed.clear()
                if self._is_new:
                    self._is_new = False
                    await self._forget_others()
                if not self.crons:
                    return self._triggers.end(self.version.worker_id)
                due = await self._due()
                if due is not None:
                    await self._triggers.run(self.version, due.cron.text, due.at)
                    continue
            except asyncio.CancelledError:
                raise
            except StorageFailed as error:  # the run did not begin, and its slot is still due
                log.error("the cron triggers of %s wait: %s", self.version.worker_name, error)
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            except Exception:  # the clock of this worker must not stop for ever
                log.exception("the cron triggers of %s failed", self.version.worker_name)
            await self._sleep()

    async def _forget_others(self) -> None:
        """An expression that is not there misses no run: should it come back, it counts from then."""
        try:
            await self._triggers.history.keep_marks(self.version.worker_id, [cron.text for cron in self.crons])
        except StorageFailed:
            self._is_new = True
            raise

    async def _due(self) -> Slot | None:
        """The slot to run now, if any; whatever older ones there are is seen to by it."""
        now, history, worker = self._triggers.now(), self._triggers.history, self.version.worker_id
        self._looked_at = now
        newest: Slot | None = None
        for cron in self.crons:
            mark = await history.mark(worker, cron.text)
            if mark is None or mark > now + CLOCK_JUMP:  # new here, or the clock was wrong then: it counts from now
                await history.set_mark(worker, cron.text, now)
                continue
            slot = newest_slot(cron, mark, now)
            if slot is not None and (newest is None or slot < newest.at):
                newest = Slot(slot, cron)  # one at a time, the one that was due first
        return newest

    async def _sleep(self) -> None:
        """Until the first slot after the last look at the clock: it may have come since."""
        wanted = [slot for cron in self.crons if (slot := cron.next_after(moment_of(self._looked_at))) is not None]
        now = self._triggers.now()
        seconds = min([(ms_of(slot) - now) / 1000 for slot in wanted] + [LONGEST_SLEEP])
        try:
            async with asyncio.timeout(max(seconds, 0.001)):
                await self._changed.wait()
        except TimeoutError:
            pass


def newest_slot(cron: Cron, after: int, now: int) -> int | None:
    """The newest slot of an expression later than `after` and not later than `now`."""
    first = cron.next_after(moment_of(after))
    if first is None or ms_of(first) > now:
        return None
    # Look back from now in growing steps: the newest one is near, however long the node was stopped.
    step = 60_000
    while True:
        start = max(after, now - step)
        slot = cron.next_after(moment_of(start))
        if slot is not None and ms_of(slot) <= now:
            break
        step *= 2
    newest = slot
    while (following := cron.next_after(newest)) is not None and ms_of(following) <= now:
        newest = following
    return ms_of(newest)


def moment_of(ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)


def ms_of(moment: datetime.datetime) -> int:
    return int(moment.timestamp() * 1000)
