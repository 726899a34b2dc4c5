"""What the runtime of Durable Objects asks of their storage. `local.py` keeps them on the disk of this node.

An object's file is a plain SQLite database of 4096-byte pages: page n, counted from 1, is at offset (n - 1) * 4096.
Everything is called on the event loop and never holds it; the disk is touched in threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, Protocol

from atoll.errors import StorageAway, StorageFailed

PAGE = 4096
KEEP_ALARM, SET_ALARM, DELETE_ALARM = 0, 1, 2  # what a commit does to the alarm, as in the frame COMMIT
NO_ALARM = -1  # as in the frame OPEN
ID = re.compile(r"[0-9a-f]{64}")

Done = Callable[[Exception | None], None]


class ObjectKey(NamedTuple):
    namespace: str  # chosen by Atoll, never by a tenant
    id: str  # 64 hexadecimal digits, lower case


class Opened(NamedTuple):
    fd: int  # read-only; the caller closes it when it was sent. A new object has a file too, which is empty
    pages: int  # 0: the object has never stored anything
    sequence: int  # of its last commit; the next one has this + 1
    alarm_ms: int  # or NO_ALARM


class Commit(NamedTuple):
    """A transaction of an object. The store keeps `numbers` and `contents` until `done`: nobody may change them."""

    sequence: int
    pages: int  # the size of the database after it
    numbers: bytes | memoryview  # count x u32, little endian, each from 1 to `pages`
    contents: bytes | memoryview  # count x 4096 bytes
    alarm: int = KEEP_ALARM
    alarm_ms: int = NO_ALARM


class Alarm(NamedTuple):
    at_ms: int
    key: ObjectKey
    sequence: int  # of the commit that set it


class ListedObject(NamedTuple):
    id: str
    bytes: int


class NamespaceSize(NamedTuple):
    objects: int  # that have stored something
    bytes: int


class Damaged(NamedTuple):
    key: ObjectKey
    words: str


class ObjectDamaged(StorageFailed):
    """What is stored of an object cannot be trusted. Only this object is refused."""


class InvalidCommit(ValueError):
    """The engine sent a commit that breaks the rules: a gap in the sequence, a page number beyond the size."""


class Elsewhere(StorageAway):
    """Another node has this object, and runs."""

    def __init__(self, session: str) -> None:
        super().__init__("another node has this Durable Object")
        self.session = session


class Past(Protocol):
    """Points in time of objects, as bookmarks (bookmarks.py). InvalidArgument if one is not known, or not any more."""

    def current(self, key: ObjectKey) -> str:
        """The bookmark of what is durable now."""

    async def at(self, key: ObjectKey, at_ms: int) -> str:
        """The bookmark of the last state at a time."""

    async def ask(self, key: ObjectKey, text: str) -> str:
        """Restore an object before it is opened again. Returns the bookmark of the state right before that."""

    async def carry_out(self, key: ObjectKey) -> bool:
        """Restore an object now, if it was asked for. False if it is open."""


class SharedStorage(Protocol):
    """What a storage that nodes share has besides."""

    on_lost: Callable[[], None]  # this node may not answer for any object that is open
    is_wanted: Callable[[ObjectKey], bool]  # whether this node must keep an object although nothing of it is open

    def holds(self) -> bool:
        """Whether this node may answer for its objects now."""

    def counts(self) -> dict[str, int]:
        """What happened between nodes, for metrics."""

    def moved(self, key: ObjectKey) -> None:
        """Another node has an object: its alarm is delivered there."""

    async def release(self, key: ObjectKey) -> bool:
        """Let another node have an object that is not open here. False if it is."""


class ObjectStorage(Protocol):
    @property
    def past(self) -> Past: ...

    @property
    def shared(self) -> SharedStorage | None:
        """Itself, if other nodes may take objects of this one."""

    on_merged: Callable[[ObjectKey, int], None]  # commits of an open object up to this number are in its file
    on_alarms: Callable[[], None]  # the earliest alarm may have changed: look at next_alarm()

    async def open(self, key: ObjectKey) -> Opened:
        """Wait for commits that are under way, put all that are durable into the file, and open it.

        Raises ObjectDamaged if it cannot be trusted, Elsewhere if another node has it, StorageFailed if the disk or
        the database does not work.
        """

    def close(self, key: ObjectKey) -> None:
        """The object is not in use any more. Its commits under way still become durable."""

    def commit(self, key: ObjectKey, commit: Commit, done: Done) -> None:
        """Make a commit of an open object durable. Returns at once.

        `done` is called later on the event loop, in the order of commits, with None once it is on disk. With an error
        the commit is not stored, nor is any later one of the object until it is opened again.
        Raises InvalidCommit at once, without calling `done`, if the commit breaks the rules.
        """

    @property
    def held(self) -> int:
        """Bytes of commits that are in memory because they are not durable yet. Past a bound, commits are refused."""

    @property
    def is_crowded(self) -> bool:
        """True if so much is held that the runtime should read no more commits before some are durable."""

    def merged(self, key: ObjectKey) -> int:
        """Commits of an open object up to this number are in its file and may be read from there."""

    async def merge(self, key: ObjectKey) -> None:
        """Put what is durable of an object into its file now. Its engine then lets go of those pages."""

    def next_alarm(self) -> int | None:
        """When to ask for due alarms again, in ms."""

    def due_alarms(self, now_ms: int, limit: int) -> list[Alarm]:
        """Alarms that are due, the earliest first. Each is handed out once, and again after a restart.

        It stays the alarm of its object until it is cleared, or a commit sets or deletes it.
        """

    def retry_alarm(self, alarm: Alarm, at_ms: int) -> None:
        """Hand an alarm out again at a later time, unless it was changed since."""

    async def clear_alarm(self, alarm: Alarm) -> None:
        """Delete an alarm that was delivered, durably, unless a commit has changed it since."""

    async def copy(self, source: ObjectKey, target: ObjectKey | None) -> None:
        """Copy what is durable of an object, which may be open, to one that is empty and not open. Not its alarm.

        Without a target nothing is copied. InvalidArgument says why it cannot be.
        """

    async def delete(self, key: ObjectKey) -> None:
        """Delete everything that an object stored, and its alarm. It must not be open."""

    async def delete_namespace(self, namespace: str) -> None:
        """Delete all objects of a namespace. None may be open, and its id may not be used again."""

    async def list_objects(self, namespace: str, cursor: str, limit: int) -> list[ListedObject]:
        """Objects that have stored something, in the order of their ids, after the id `cursor`.

        One that was emptied a moment ago may be among them, with 0 bytes.
        """

    def size(self, namespace: str) -> NamespaceSize:
        """What the objects of a namespace take."""

    async def damaged(self) -> list[Damaged]:
        """Objects that are refused, and why."""


def check_key(key: ObjectKey) -> None:
    if not ID.fullmatch(key.id) or not 0 < len(key.namespace.encode()) <= 200:
        raise ValueError(f"not the key of an object: {key!r}")
