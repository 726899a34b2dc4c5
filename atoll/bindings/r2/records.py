"""The protocol of what the index has besides objects: settings of buckets, public hosts, access keys, notifications.

Implementations: sqlite_records.py and postgres/records.py. The tests of notifications, lifecycle rules and of the store
run over both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from atoll.bindings.r2.store import BucketPlace, Change, ObjectStore

NOTIFICATIONS = "notifications"  # the kind of setting that every change of an object reads


class Destination(NamedTuple):
    tenant: str
    queue: str


class Credential(NamedTuple):
    access_key: str
    tenant: str
    name: str  # what it is for, in the words of its creator
    bucket: str  # "" for all buckets of the tenant
    can_write: int
    sealed: bytes
    created_at: int

    def may(self, bucket: str, writes: bool) -> bool:
        return (not self.bucket or self.bucket == bucket) and (bool(self.can_write) or not writes)


class Noting(Protocol):
    """Makes the messages about changes (around/notifications.py)."""

    def messages(self, rules: str, place: BucketPlace, change: Change) -> list[tuple[str, bytes]]:
        """The queues that are told of a change, and what; `rules` are the notifications of the bucket."""

    def check(self, waiting: int) -> None:
        """R2Refused if so many messages of a tenant may not wait."""

    def wake(self) -> None:
        """A change is committed."""


class NotNoting:
    """Nobody is told."""

    def messages(self, rules: str, place: BucketPlace, change: Change) -> list[tuple[str, bytes]]:
        return []

    def check(self, waiting: int) -> None:
        pass

    def wake(self) -> None:
        pass


class BucketRecords(Protocol):
    # Settings: a JSON text for a bucket and a kind

    async def setting(self, place: BucketPlace, kind: str) -> str | None: ...

    async def settings_named(self, bucket: str, kind: str) -> list[str]:
        """Those of all buckets of a name, of any tenant."""

    async def settings_of(self, kind: str) -> list[tuple[BucketPlace, str]]: ...

    async def change_setting(self, place: BucketPlace, kind: str, change: Callable[[str | None], str | None]) -> None:
        """Replace a setting by what `change` makes of it; None removes it. NoBucket if there is no bucket."""

    # Public buckets, by the first label of their host

    async def label_of(self, place: BucketPlace) -> str:
        """ "" if it is not public."""

    async def place_of(self, label: str) -> BucketPlace | None: ...

    async def show(self, place: BucketPlace, label: str) -> None:
        """Make a bucket public, if it is not. NoBucket if there is no bucket."""

    async def hide(self, place: BucketPlace) -> None: ...

    # Notifications that wait

    async def destinations(self) -> list[Destination]:
        """The queues for which some wait."""

    async def hand_over(self, to: Destination, most: int, send: Callable[[Sequence[bytes]], Awaitable[None]]) -> bool:
        """Give the oldest to `send`, and forget them if it does not raise. False: another node does it just now."""

    async def forget_events(self, tenant: str) -> None: ...

    # Access keys

    async def credential(self, access_key: str) -> Credential | None: ...

    async def credentials(self, tenant: str | None = None) -> list[Credential]:
        """Those of a tenant, or all."""

    async def add_credential(self, made: Credential) -> None: ...

    async def delete_credential(self, access_key: str) -> None: ...

    async def forget_credentials(self, tenant: str) -> None: ...

    async def seal_credentials(self, fresh: Sequence[Credential]) -> None:
        """Replace what is sealed."""


class RecordedStore(ObjectStore, Protocol):
    """A store with all that its index has."""

    noting: Noting  # is told of changes

    @property
    def records(self) -> BucketRecords: ...
