"""Event notifications: a change of an object becomes a message in a queue of the tenant, at least once.

The message is stored in the transaction of the change. So a change that was acknowledged has its message, even if the
node is killed, and one that was not has none. A task hands the messages to the queue, and then forgets them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Protocol

import msgspec

from atoll.bindings.r2.around.settings import Setting, read_setting
from atoll.bindings.r2.limits import MAX_KEY, R2Refused
from atoll.bindings.r2.records import NOTIFICATIONS, BucketRecords, Destination
from atoll.bindings.r2.store import BucketPlace, Change
from atoll.clock import iso_time
from atoll.errors import AtollError, InvalidArgument, StorageAway

log = logging.getLogger("atoll.bindings")

MAX_RULES = 100
MAX_WAITING = 100_000  # messages of a tenant that its queues do not take: more changes are refused, none is lost
BATCH = 100  # messages of one send
RETRY_SECONDS = 5.0  # after a queue did not take them
CREATE, DELETE = "object-create", "object-delete"
EVENT_TYPES = {
    CREATE: ("PutObject", "CopyObject", "CompleteMultipartUpload"),
    DELETE: ("DeleteObject", "LifecycleDeletion"),
}


class MessageSink(Protocol):
    """The queues of the node."""

    async def knows(self, tenant: str, queue: str) -> bool: ...

    async def deliver(self, tenant: str, queue: str, bodies: Sequence[bytes]) -> bool:
        """Store JSON messages, durably; False if there is no such queue. Raises if it cannot take them now."""


class NotificationRule(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    id: str
    queue: str
    event_types: list[str]
    prefix: str = ""
    suffix: str = ""

    def wants(self, action: str, key: str) -> bool:
        return (
            any(action in EVENT_TYPES[each] for each in self.event_types)
            and key.startswith(self.prefix)
            and key.endswith(self.suffix)
        )


class NotificationRules(Setting, forbid_unknown_fields=True):
    KIND: ClassVar[str] = NOTIFICATIONS

    rules: list[NotificationRule]


def checked_rule(rule: NotificationRule) -> NotificationRule:
    if not rule.event_types or not set(rule.event_types) <= set(EVENT_TYPES):
        raise InvalidArgument(f"the event types of a notification must be {' or '.join(EVENT_TYPES)}")
    for text in (rule.prefix, rule.suffix):
        if len(text.encode("utf-8", "replace")) > MAX_KEY:
            raise InvalidArgument(f"the prefix or suffix of a notification has more than {MAX_KEY:,} bytes")
    return rule


NOBODY = Destination("", "")  # waits after an error of our own


class Notifications:
    """Makes the messages about changes, and hands them over. Several nodes look every few seconds for what one of them
    left when it ended; a node by itself has no need to."""

    def __init__(
        self,
        records: BucketRecords,
        sink: MessageSink,
        *,
        look_seconds: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._records = records
        self.sink = sink
        self._look_seconds = look_seconds
        self._clock = clock
        self._wake = asyncio.Event()
        self._blocked: dict[Destination, float] = {}  # when to ask a queue again that took nothing
        self._is_used = False  # some bucket has notifications
        self._wake.set()
        self._task = asyncio.ensure_future(self._run())

    def messages(self, rules: str, place: BucketPlace, change: Change) -> list[tuple[str, bytes]]:
        key = change.key.decode("utf-8", "replace")
        found = read_setting(rules, NotificationRules)
        queues = {rule.queue for rule in found.rules if rule.wants(change.action, key)}
        if not queues:
            return []
        self._is_used = True
        body = message_of(place, change, self._clock())
        return [(queue, body) for queue in sorted(queues)]

    def check(self, waiting: int) -> None:
        if waiting > MAX_WAITING:
            raise R2Refused(
                19014,
                f"{waiting:,} notifications would wait because the queues of the tenant are full: consume some"
                " messages, or delete the notification",
            )

    def wake(self) -> None:
        if self._is_used:
            self._wake.set()

    async def forget(self, tenant: str) -> None:
        """Drop what waits for a deleted tenant."""
        await self._records.forget_events(tenant)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._hand_over()
            except StorageAway as error:
                log.debug("R2 cannot hand over notifications: %s", error)
                self._blocked[NOBODY] = time.monotonic() + RETRY_SECONDS
            except Exception:
                log.exception("R2 cannot hand over notifications")
                self._blocked[NOBODY] = time.monotonic() + RETRY_SECONDS
            soonest = min(self._blocked.values(), default=None)
            wait = self._look_seconds if soonest is None else max(soonest - time.monotonic(), 0)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            self._blocked.pop(NOBODY, None)

    async def _hand_over(self) -> None:
        """Hand over what waits, a batch for each queue in turn. A queue that takes nothing is asked again later."""
        while True:
            found, now = await self._records.destinations(), time.monotonic()
            self._blocked = {each: at for each, at in self._blocked.items() if each in found}
            ready = [each for each in found if self._blocked.get(each, 0) <= now]
            if not ready:
                return
            for destination in ready:
                await self._send(destination)

    async def _send(self, to: Destination) -> None:
        async def send(bodies: Sequence[bytes]) -> None:
            if not await self.sink.deliver(to.tenant, to.queue, bodies):
                log.warning("R2: %d notifications are dropped: the queue `%s` was deleted", len(bodies), to.queue)

        try:
            is_ours = await self._records.hand_over(to, BATCH, send)
        except StorageAway:
            raise
        except AtollError as error:
            if to not in self._blocked:
                log.warning("R2: the queue `%s` does not take notifications: %s", to.queue, error)
            is_ours = False
        if is_ours:
            self._blocked.pop(to, None)
        else:
            self._blocked[to] = time.monotonic() + RETRY_SECONDS


def message_of(place: BucketPlace, change: Change, now: float) -> bytes:
    """A message of Cloudflare's shape. The account is the tenant."""
    stored: dict[str, Any] = {"key": change.key.decode("utf-8", "replace")}
    if change.etag:
        stored |= {"size": change.size, "eTag": change.etag}
    message: dict[str, Any] = {
        "account": place.tenant,
        "bucket": place.bucket,
        "object": stored,
        "action": change.action,
        "eventTime": iso_time(now * 1000),
    }
    if change.source is not None:
        message["copySource"] = {"bucket": change.source[0], "object": change.source[1]}
    return msgspec.json.encode(message)
