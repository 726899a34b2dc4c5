"""The protocol of a queue store. Every implementation passes the suite tests/bindings/queue/test_queue_store.py.

No confirmed message is lost: a send returns after the message is stored. A consumer leases messages, which counts an
attempt, and then settles them in one write: acknowledged ones are deleted, others are retried or go to the dead-letter
queue. A lease ends with the process that took it: the next process delivers the message again. So delivery is at least
once.

Times are milliseconds since 1970 by the clock of the store (`now`), which is not set back while it is open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from atoll.errors import BindingRefused, InvalidArgument

RETENTION = 4 * 86_400  # seconds, the default of a queue


class Queue(NamedTuple):
    id: int
    tenant: str
    name: str
    paused: bool
    retention: int
    dropped: int
    created_at: int
    pull: str = ""  # settings of a consumer that pulls, as JSON (pulling.py); "": there is none
    delay: int = 0  # seconds, of messages that are sent without a delay


class QueueOverQuota(BindingRefused):
    """The messages would exceed the tenant's quota for queues."""

    def __init__(self, bytes_: int, most: int) -> None:
        super().__init__(
            f"403 the tenant would have {bytes_:,} bytes in queues, more than its quota of {most:,}: consume or purge"
            " some, or ask the operator of this node for a larger quota"
        )


class NoQueue(InvalidArgument):
    """A message was sent to a queue that does not exist any more."""

    def __init__(self) -> None:
        super().__init__("the queue does not exist any more: deploy the worker again to create it")


class NewMessage(NamedTuple):
    type: str
    body: bytes
    delay: int | None  # seconds; None: that of the queue


class Message(NamedTuple):
    seq: int
    id: str
    type: str
    body: bytes
    sent_at: int
    attempts: int


class Waiting(NamedTuple):
    """A message as a reader sees it, without a lease."""

    seq: int
    id: str
    type: str
    body: bytes
    sent_at: int
    attempts: int
    visible_at: int
    leased: int


class Depth(NamedTuple):
    """The backlog of a queue. `oldest_at` is when its oldest message was sent."""

    waiting: int
    delayed: int
    leased: int
    oldest_at: int | None
    bytes: int  # of all messages: each counts for 128 bytes more than its body


class Settlement(NamedTuple):
    """How to settle leased messages."""

    done: Sequence[int]  # seq
    again: Sequence[tuple[int, int]]  # seq, visible_at
    dead: Sequence[int]  # seq
    dead_letters: int | None = None  # id of the dead-letter queue; None: dead messages are dropped and counted
    untried: Sequence[
        tuple[int, int]
    ] = ()  # like `again`, but the handler did not see them: the attempt does not count


class QueueStore(Protocol):
    def on_change(self, listener: Callable[[int], None]) -> None:
        """Call a listener with the id of each queue that changes."""

    def now(self) -> int: ...

    def bound(self, tenant: str, most: int | None) -> None:
        """Set a tenant's quota of bytes in all its queues. Existing messages above it stay."""

    async def total(self, tenant: str) -> int:
        """The bytes in all queues of a tenant."""

    # Queues

    async def ensure(self, tenant: str, name: str, retention: int = RETENTION) -> Queue:
        """The queue of that name; created if it does not exist."""

    async def find(self, tenant: str, name: str) -> Queue | None: ...

    async def all(self, tenant: str) -> list[Queue]:
        """The queues of a tenant, by name."""

    async def some(self, limit: int) -> list[Queue]:
        """Queues of all tenants, at most `limit`."""

    async def delete(self, queue_id: int) -> None:
        """Delete a queue with its messages."""

    async def pause(self, queue_id: int, paused: bool) -> None: ...

    async def retain(self, queue_id: int, retention: int) -> None:
        """Set how many seconds a queue keeps its messages."""

    async def set_delay(self, queue_id: int, delay: int) -> None:
        """Set the seconds by which messages without a delay of their own are delayed."""

    async def set_pull(self, queue_id: int, pull: str) -> None:
        """Set or remove the consumer that pulls."""

    async def pull(self, queue_id: int, limit: int, most_bytes: int, hidden_ms: int) -> list[Message]:
        """Take messages that are due, oldest first, and hide them for a time; each counts an attempt.

        At least one is taken, and further ones while their bodies fit. The lease survives the process: a message that
        is not settled with its number of attempts (`settle_pulled`) becomes due again.
        """

    async def settle_pulled(
        self, queue_id: int, done: Sequence[tuple[int, int]], again: Sequence[tuple[int, int, int]]
    ) -> int:
        """Delete and retry pulled messages, by seq and attempts; `again` has the time of the next delivery too.

        Returns how many were settled: a lease that has ended settles nothing.
        """

    async def bury(self, queue_id: int, attempts: int, limit: int, dead_letters: int | None) -> int:
        """Move due messages that had so many attempts to another queue, or drop and count them."""

    async def purge(self, queue_id: int) -> int:
        """Delete every message that no consumer has; returns how many."""

    async def depth(self, queue_id: int) -> Depth: ...

    # Messages

    async def send(self, queue_id: int, messages: Sequence[NewMessage]) -> list[str]:
        """Store messages; returns their ids once they are durable. NoQueue if the queue was deleted.

        OverQuota if the tenant's quota does not allow it: then none of them is stored.
        """

    async def lease(self, queue_id: int, limit: int) -> list[Message]:
        """Take up to `limit` messages that are due, oldest first; each counts an attempt."""

    async def settle(self, queue_id: int, settlement: Settlement) -> None:
        """Settle leased messages."""

    async def due(self, queue_id: int, limit: int) -> list[int]:
        """When the next messages become due, earliest first; at most `limit`."""

    async def peek(self, queue_id: int, after: int, limit: int) -> list[Waiting]:
        """Messages in order of arrival, after a seq. They are not changed."""

    async def sweep(self) -> None:
        """Delete messages that are older than the retention of their queue."""

    async def trusts_clock(self) -> bool:
        """Whether the clock is plausible: at most a day after the last sweep of the previous process."""

    async def close(self) -> None: ...
