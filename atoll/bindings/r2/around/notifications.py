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
from typing import Any, ClassVar, NamedTuple, Protocol

import apsw
import msgspec

from atoll.bindings.r2.around.settings import BucketSettings, Setting, setting_of
from atoll.bindings.r2.limits import MAX_KEY, R2Refused
from atoll.bindings.r2.store import BucketPlace, Change
from atoll.clock import iso_time
from atoll.db.sqlite import Database, rows
from atoll.errors import AtollError, InvalidArgument

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

WAITING = "SELECT coalesce(sum(events), 0) FROM waiting_events WHERE tenant = ?"
ADD = "INSERT INTO events (tenant, queue, body) VALUES (?, ?, ?)"
QUEUES = "SELECT tenant, queue FROM waiting_events"
OLDEST = "SELECT id, body FROM events WHERE tenant = ? AND queue = ? ORDER BY id LIMIT ?"


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
    KIND: ClassVar[str] = "notifications"

    rules: list[NotificationRule]


def checked_rule(rule: NotificationRule) -> NotificationRule:
    if not rule.event_types or not set(rule.event_types) <= set(EVENT_TYPES):
        raise InvalidArgument(f"the event types of a notification must be {' or '.join(EVENT_TYPES)}")
    for text in (rule.prefix, rule.suffix):
        if len(text.encode("utf-8", "replace")) > MAX_KEY:
            raise InvalidArgument(f"the prefix or suffix of a notification has more than {MAX_KEY:,} bytes")
    return rule


class WaitingEvent(NamedTuple):
    id: int
    body: bytes


class Destination(NamedTuple):
    tenant: str
    queue: str


NOBODY = Destination("", "")  # waits after an error of our own


class Notifications:
    """Notes changes on the writer thread, and hands them over on the event loop."""

    def __init__(
        self, database: Database, settings: BucketSettings, sink: MessageSink, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self.sink = sink
        self._clock = clock
        self._wake = asyncio.Event()
        self._blocked: dict[Destination, float] = {}  # when to ask a queue again that took nothing
        self._is_used = bool(self._waiting() or settings.all(NotificationRules))
        self._wake.set()
        self._task = asyncio.ensure_future(self._run())

    def note(self, connection: apsw.Connection, place: BucketPlace, bucket: int, change: Change) -> None:
        """Store the messages about a change. Runs in its transaction; R2Refused undoes the change."""
        found = setting_of(connection, bucket, NotificationRules)
        if found is None:
            return
        key = change.key.decode("utf-8", "replace")
        queues = {rule.queue for rule in found.rules if rule.wants(change.action, key)}
        if not queues:
            return
        [waiting] = rows(connection, int, WAITING, place.tenant)
        if waiting + len(queues) > MAX_WAITING:
            raise R2Refused(
                19014,
                f"{waiting:,} notifications wait because the queues of the tenant are full: consume some messages, or"
                " delete the notification",
            )
        body = message_of(place, change, self._clock())
        for queue in sorted(queues):
            connection.execute(ADD, (place.tenant, queue, body))

    def use(self) -> None:
        """There is a rule."""
        self._is_used = True

    def wake(self) -> None:
        """A change is committed."""
        if self._is_used:
            self._wake.set()

    async def forget(self, tenant: str) -> None:
        """Drop what waits for a deleted tenant."""

        def act(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM events WHERE tenant = ?", (tenant,))

        await self._database.write(act)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._hand_over()
            except Exception:
                log.exception("R2 cannot hand over notifications")
                self._blocked[NOBODY] = time.monotonic() + RETRY_SECONDS
            soonest = min(self._blocked.values(), default=None)
            wait = None if soonest is None else max(soonest - time.monotonic(), 0)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            self._blocked.pop(NOBODY, None)

    async def _hand_over(self) -> None:
        """Hand over what waits, a batch for each queue in turn. A queue that takes nothing is asked again later."""
        while True:
            found, now = self._waiting(), time.monotonic()
            self._blocked = {each: at for each, at in self._blocked.items() if each in found}
            ready = [each for each in found if self._blocked.get(each, 0) <= now]
            if not ready:
                return
            for destination in ready:
                await self._send(destination)

    def _waiting(self) -> list[Destination]:
        return self._database.read(lambda connection: rows(connection, Destination, QUEUES))

    async def _send(self, to: Destination) -> None:
        events = self._database.read(lambda connection: rows(connection, WaitingEvent, OLDEST, *to, BATCH))
        try:
            if not await self.sink.deliver(to.tenant, to.queue, [event.body for event in events]):
                log.warning("R2: %d notifications are dropped: the queue `%s` was deleted", len(events), to.queue)
        except AtollError as error:
            if to not in self._blocked:
                log.warning("R2: the queue `%s` does not take notifications: %s", to.queue, error)
            self._blocked[to] = time.monotonic() + RETRY_SECONDS
            return

        def forget(connection: apsw.Connection) -> None:
            connection.executemany("DELETE FROM events WHERE id = ?", [(event.id,) for event in events])

        await self._database.write(forget)
        self._blocked.pop(to, None)


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
