"""The one interface between objects and what makes their commits durable: the journal of this node (journal.py).

A cluster will have a second one, which appends the same groups to a database.
"""

from __future__ import annotations

from typing import Protocol

from atoll.objects.store import DELETE_ALARM, KEEP_ALARM, NO_ALARM, SET_ALARM, Done, ObjectKey

COMMIT = 1  # pages of an object, and its alarm
CLEAR_ALARM = 2  # the alarm that the commit `sequence` set is deleted, if no later commit changed it
DELETE = 3  # everything of an object; its next commit has the number 1
DELETE_NAMESPACE = 4  # everything of a namespace; `key.id` is empty
RESTORE = 5  # before it is opened again the object goes back to its commit `sequence`, or stays as it is: NO_RESTORE
KINDS = (COMMIT, CLEAR_ALARM, DELETE, DELETE_NAMESPACE, RESTORE)
NO_RESTORE = (1 << 64) - 1
# A restore is one or more commits. Their object is opened by nobody before the last one is durable.
NO_PART, PART, LAST_PART = 0, 1, 2


class Chain:
    """The last durable commit of one object. Only the thread that writes uses it while records are under way."""

    __slots__ = ("last",)

    def __init__(self, last: int) -> None:
        self.last = last


class Record:
    """Something to make durable, and later where it is."""

    __slots__ = (
        "alarm",
        "alarm_ms",
        "at_ms",
        "chain",
        "contents",
        "crc",
        "done",
        "error",
        "group",
        "key",
        "kind",
        "numbers",
        "offset",
        "pages",
        "part",
        "segment",
        "sequence",
    )

    def __init__(
        self,
        kind: int,
        key: ObjectKey,
        sequence: int = 0,
        pages: int = 0,
        numbers: bytes = b"",
        contents: bytes | memoryview = b"",
        alarm: int = KEEP_ALARM,
        alarm_ms: int = NO_ALARM,
    ) -> None:
        self.kind = kind
        self.key = key
        self.sequence = sequence
        self.pages = pages
        self.numbers = numbers  # kept when it is durable: it says what is at `offset`
        self.contents = contents  # let go when it is durable
        self.alarm = alarm
        self.alarm_ms = alarm_ms  # of a RESTORE, and of commits that restore: the last commit when it was asked for
        self.at_ms = 0  # when it came; commits of one object are in the order of this time
        self.part = NO_PART
        self.chain: Chain | None = None
        self.done: Done | None = None
        # Set by what makes it durable
        self.error: Exception | None = None  # it is not stored
        self.group = 0  # grows with every group of records; 0 before it is durable
        self.segment = 0
        self.offset = 0  # of `numbers` in its segment; `contents` follow
        self.crc = 0  # of both

    @property
    def size(self) -> int:
        return len(self.numbers) + len(self.contents)

    def refuse(self, error: Exception) -> None:
        """It will not be stored, and says so in its turn."""
        self.error = error
        self.contents = b""

    @property
    def sets_alarm(self) -> bool:
        return self.kind == COMMIT and self.alarm in (SET_ALARM, DELETE_ALARM)


class Durable(Protocol):
    def add(self, record: Record) -> None:
        """Make a record durable soon. Returns at once.

        The function that the maker of a Durable gave is called on the event loop with whole groups of records, in the
        order in which they were added. A record whose `error` is set is not stored.
        """

    @property
    def held(self) -> int:
        """Bytes of records that are not durable yet."""

    async def close(self) -> None:
        """Finish what was added."""
