"""Runs `scheduled` handlers at the times of their cron expressions.

Each worker with cron expressions has one task, so its runs never overlap. A slot that comes during a run waits for its
end. Of several missed slots (a long run, a stopped node) only the newest runs. The wall clock decides and is read at
least every minute, so a clock that is set, or a machine that slept, delays a run but never repeats one: the history
has the last slot of each expression.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from atoll.bindings.cron.expression import BadCron, Cron, parse_cron
from atoll.bindings.cron.history import CronHistory
from atoll.bindings.events import EventFailed, EventKind, Events
from atoll.bindings.triggers import BadTrigger, Trigger
from atoll.errors import StorageFailed
from atoll.wire.generated import OUTCOME_NAMES
from atoll.workers import Version

log = logging.getLogger("atoll.cron")

SCHEDULED = EventKind("scheduled", is_background=True)
LONGEST_SLEEP = 60.0
AGAIN_SECONDS = 2.0  # seconds until the next try if the history cannot be written
LOOKED_AT = 10  # expressions that are checked before other tasks get a turn
CLOCK_JUMP = 3_600_000  # ms that the clock may be set back before the recorded slots are taken for wrong


class Slot(NamedTuple):
    """A time at which an expression is due."""

    at: int  # ms since 1970
    cron: Cron


class CronTriggers(Trigger):
    def __init__(self, events: Events, history: CronHistory, *, clock: Callable[[], float] = time.time) -> None:
        self._events = events
        self.history = history
        self._clock = clock
        self._workers: dict[str, _Clock] = {}  # by worker id
        self._turns: dict[str, asyncio.Lock] = {}  # by worker id: held during a run
        self._later: set[asyncio.Task[None]] = set()  # tasks that store the ends of runs
        self.looking = asyncio.Lock()  # held while the expressions of a worker are checked: many are due at midnight
        self.is_stopped = False

    def check(self, version: Version, crons: Sequence[str]) -> None:
        for cron in crons:
            try:
                parse_cron(cron)
            except BadCron as error:
                raise BadTrigger(f"`crons`: {error}", "fields are minute hour day month weekday, in UTC") from None

    def put(self, version: Version, crons: Sequence[str]) -> None:
        """Make a version with these expressions the active one of its worker."""
        clock = self._workers.get(version.worker_id)
        if clock is not None:
            clock.change(version, crons)
        elif crons:
            self._workers[version.worker_id] = _Clock(self, version, crons)

    async def drop(self, worker_id: str) -> None:
        """Forget a deleted worker and its history."""
        clock = self._workers.pop(worker_id, None)
        if clock is not None:
            clock.task.cancel()
        self._turns.pop(worker_id, None)
        await self.history.forget(worker_id)

    def end(self, worker_id: str) -> None:
        """Forget a worker that has no expression and no run any more."""
        del self._workers[worker_id]

    def stop(self) -> None:
        """Start no new run; those in progress continue."""
        self.is_stopped = True

    def next_run(self, cron: str) -> int | None:
        """When an expression is due next, in ms since 1970."""
        moment = parse_cron(cron).next_after(moment_of(self.now()))
        return None if moment is None else ms_of(moment)

    def now(self) -> int:
        return int(self._clock() * 1000)

    async def run(self, version: Version, cron: str, slot: int, *, by_hand: bool = False) -> tuple[str, str]:
        """Run the handler once, after a run in progress, and record the run; returns the outcome and the error."""
        async with self._turns.setdefault(version.worker_id, asyncio.Lock()):
            return await self._run(version, cron, slot, by_hand)

    async def _run(self, version: Version, cron: str, slot: int, by_hand: bool) -> tuple[str, str]:
        number = await self.history.begin(version.worker_id, cron, slot, by_hand=by_hand)
        if number is None:
            return "elsewhere", ""  # another node runs it
        outcome, message = "internalError", "the node stopped"
        try:
            await self._events.run(version, SCHEDULED, f"CRON {cron}", {"cron": cron, "scheduledTime": slot})
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
        """Record how a run ended; if the disk fails, try again until it works."""
        try:
            await self.history.end(number, outcome, message)
        except StorageFailed as error:
            log.error("the end of a cron run cannot be stored yet: %s", error)
            task = asyncio.ensure_future(self._end_later(number, outcome, message))
            self._later.add(task)
            task.add_done_callback(self._later.discard)

    async def _end_later(self, number: int, outcome: str, message: str) -> None:
        while True:
            await asyncio.sleep(AGAIN_SECONDS)
            try:
                return await self.history.end(number, outcome, message)
            except StorageFailed:
                pass  # already logged

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
            except StorageFailed as error:  # the run did not start, and its slot is still due
                log.error("the cron triggers of %s wait: %s", self.version.worker_name, error)
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            except Exception:  # the clock of this worker must not stop for good
                log.exception("the cron triggers of %s failed", self.version.worker_name)
            await self._sleep()

    async def _forget_others(self) -> None:
        """Drop the marks of removed expressions. If one comes back later, it starts from then and has missed no run."""
        try:
            await self._triggers.history.keep_marks(self.version.worker_id, [cron.text for cron in self.crons])
        except StorageFailed:
            self._is_new = True
            raise

    async def _due(self) -> Slot | None:
        """The slot to run now, if any. Older missed slots are skipped."""
        now, history, worker = self._triggers.now(), self._triggers.history, self.version.worker_id
        self._looked_at = now
        async with self._triggers.looking:
            return await self._first_due(now, history, worker)

    async def _first_due(self, now: int, history: CronHistory, worker: str) -> Slot | None:
        newest: Slot | None = None
        for number, cron in enumerate(self.crons, 1):
            if number % LOOKED_AT == 0:
                await asyncio.sleep(0)
            mark = await history.mark(worker, cron.text)
            if mark is None or mark > now + CLOCK_JUMP:  # a new expression, or the clock was wrong: start from now
                await history.set_mark(worker, cron.text, now)
                continue
            slot = newest_slot(cron, mark, now)
            if slot is not None and (newest is None or slot < newest.at):
                newest = Slot(slot, cron)  # one at a time, the earliest first
        return newest

    async def _sleep(self) -> None:
        """Sleep until the first slot after the last check; it may have passed since."""
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
    last = cron.last_until(moment_of(now))
    return ms_of(first if last is None else last)


def moment_of(ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)


def ms_of(moment: datetime.datetime) -> int:
    return int(moment.timestamp() * 1000)
