"""Delivers alarms: at least once, never early, again after a failure.

The store hands an alarm out when it is due and keeps it until it is cleared. A handler that fails is tried again after
2 s, 4 s, 8 s … with some jitter, MAX_RETRIES times. Failures that are not the code's own, such as an engine that died,
do not count. A commit that sets or deletes the alarm meanwhile wins over a retry.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import Final

import msgspec

from atoll.bindings.services import ObjectTarget
from atoll.engine.calls.events import EventEar
from atoll.engine.objects.runtime import ObjectRuntime
from atoll.errors import Failure, ObjectFailure
from atoll.objects.store import Alarm
from atoll.wire.generated import ErrorCode, Event
from atoll.workers import Version

log = logging.getLogger("atoll.objects")

FIRST_DELAY = 2.0
MAX_RETRIES: Final = 6
MAX_DOUBLINGS: Final = 9
JITTER: Final = 0.25
MAX_RUNNING: Final = 200
# Failures of the code itself. All others are ours, and are tried again without an end.
COUNTED: Final = frozenset(
    {ErrorCode.EXCEPTION, ErrorCode.CPU, ErrorCode.MEMORY, ErrorCode.WALL, ErrorCode.OBJECT_RESET}
)


class AlarmFailed(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class AlarmClock:
    def __init__(self, runtime: ObjectRuntime) -> None:
        self._runtime = runtime
        self._timer: asyncio.TimerHandle | None = None
        self._running: dict[Alarm, asyncio.Task[None]] = {}
        self._retries: dict[Alarm, int] = {}
        self._delays: dict[Alarm, int] = {}
        self._is_stopped = False
        self.delivered = 0
        self.failed = 0

    def start(self) -> None:
        self._runtime.store.on_alarms = self._look
        self._look()

    def stop(self) -> None:
        """Start no more alarms. Those that run go on."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    async def close(self) -> None:
        self.stop()
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _look(self) -> None:
        """Start what is due, and come again when the next one is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        room = MAX_RUNNING - len(self._running)
        if self._is_stopped or room <= 0:
            return  # the end of a running one looks again
        store, now_ms = self._runtime.store, time.time() * 1000
        for alarm in store.due_alarms(int(now_ms), room):
            task = asyncio.get_running_loop().create_task(self._deliver(alarm))
            self._running[alarm] = task
            task.add_done_callback(lambda _, alarm=alarm: self._on_over(alarm))  # type: ignore[misc]
        next_ms = store.next_alarm()
        if next_ms is not None:
            delay = min(max(next_ms - now_ms, 1.0) / 1000, 3600.0)
            self._timer = asyncio.get_running_loop().call_later(delay, self._look)

    def _on_over(self, alarm: Alarm) -> None:
        self._running.pop(alarm, None)
        self._look()

    async def _deliver(self, alarm: Alarm) -> None:
        found = self._runtime.resolve(alarm.key)
        try:
            if found is not None:
                await self._run(alarm, *found)
                self.delivered += 1
            self._forget(alarm)
            await self._runtime.store.clear_alarm(alarm)
        except AlarmFailed as error:
            self.failed += 1
            await self._again(alarm, error.failure)
        except Exception:
            log.exception("an alarm could not be delivered")
            self._runtime.store.retry_alarm(alarm, int(time.time() * 1000 + 60_000))

    async def _again(self, alarm: Alarm, failure: Failure) -> None:
        is_counted = failure.code in COUNTED
        retries = self._retries.get(alarm, 0)
        if (is_counted and retries >= MAX_RETRIES) or (isinstance(failure, ObjectFailure) and failure.is_final):
            log.warning("an alarm is dropped after %d retries: %s", retries, failure.message)
            self._forget(alarm)
            await self._runtime.store.clear_alarm(alarm)
            return
        self._retries[alarm] = retries + is_counted
        delays = self._delays.get(alarm, 0)
        self._delays[alarm] = delays + 1
        seconds = FIRST_DELAY * 2 ** min(delays, MAX_DOUBLINGS) * (1 + random.random() * JITTER)
        self._runtime.store.retry_alarm(alarm, int((time.time() + seconds) * 1000))
        # The next one of this object may be another alarm: what is kept of this one must not stay for ever.
        asyncio.get_running_loop().call_later(seconds + 60, self._forget_unless_running, alarm)

    def _forget_unless_running(self, alarm: Alarm) -> None:
        if alarm not in self._running and self._delays.get(alarm, 0) > MAX_DOUBLINGS:
            self._forget(alarm)

    def _forget(self, alarm: Alarm) -> None:
        self._retries.pop(alarm, None)
        self._delays.pop(alarm, None)

    async def _run(self, alarm: Alarm, target: ObjectTarget, version: Version) -> None:
        ear = AlarmEar()
        about = {"scheduledTime": alarm.at_ms, "retryCount": self._delays.get(alarm, 0)}
        head = f"objectalarm ALARM {target.class_name}\n".encode() + msgspec.json.encode(about)
        ear.call = self._runtime.call(target, version, head, b"", True, ear, int(Event.BACKGROUND), 0)
        try:
            await ear.answer
        except asyncio.CancelledError:
            if not ear.is_over:
                ear.call.cancel()
            raise


class AlarmEar(EventEar):
    def fail(self, failure: Failure, said: bytes = b"") -> None:
        self.is_over = True
        if not self.answer.done():
            self.answer.set_exception(AlarmFailed(failure))
