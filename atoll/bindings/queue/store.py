"""What a store of queues promises, whatever it is made of: tests/bindings/queue/test_queue_store.py says it as a suite.

Nothing acknowledged is ever lost: a message is stored before its sender is told so. A consumer leases messages, which
counts an attempt, and settles them: taken ones are deleted, others wait again or go to the dead-letter queue, all at
once. A lease is only worth something while the one who took it lives: what was leased by a node that is gone waits
again, so that a message is delivered at least once.

Times are milliseconds since 1970 by the clock of the store (`now`), which is not set back while it is open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from atoll.errors import BindingRefused, InvalidArgument

RETENTION = 4 * 86_400  # seconds, unless a queue says otherwise


class Queue(NamedTuple):
    id: int
    tenant: str
    name: str
    paused: bool
    retention: int
    dropped: int
    created_at: int


class OverQuota(BindingRefused):
    """Messages would give a tenant more than it may have in its queues."""

    def __init__(self, bytes_: int, most: int) -> None:
        super().__init__(
            f"403 the tenant would have {bytes_:,} bytes in queues, more than its quota of {most:,}: consume or purge"
            " some, or ask the operator of this node for a larger quota"
        )


class NoQueue(InvalidArgument):
    """A message was sent to a queue that is not there any more."""

    def __init__(self) -> None:
        super().__init__("the queue does not exist any more: deploy the worker again to make it anew")


class NewMessage(NamedTuple):
    type: str
    body: bytes
    delay: int  # seconds


class Message(NamedTuple):
    seq: int
    id: str
    type: str
    body: bytes
    sent_at: int
    attempts: int


class Waiting(NamedTuple):
    """A message as somebody sees it who only looks."""

    seq: int
    id: str
    type: str
    body: bytes
    sent_at: int
    attempts: int
    visible_at: int
    leased: int


class Depth(NamedTuple):
    """What waits in a queue. `oldest_at` is when its oldest message was sent."""

    waiting: int
    delayed: int
    leased: int
    oldest_at: int | None
    bytes: int  # of all messages: a message counts for 128 more than its body


class Settlement(NamedTuple):
    """What became of leased messages."""

    done: Sequence[int]  # seq
    again: Sequence[tuple[int, int]]  # seq, visible_at
    dead: Sequence[int]  # seq
    dead_letters: int | None = None  # id of the queue that catches the dead; None: they are dropped and counted
    untried: Sequence[tuple[int, int]] = ()  # as `again`, but no handler was shown them: the attempt does not count


class QueueStore(Protocol):
    def on_change(self, listener: Callable[[int], None]) -> None:
        """Be told the id of each queue that changes."""

    def now(self) -> int: ...

    def bound(self, tenant: str, most: int | None) -> None:
        """From now on a tenant may have so many bytes in all its queues; what it has already stays."""

    async def total(self, tenant: str) -> int:
        """How many bytes there are in all queues of a tenant."""

    # Queues

    async def ensure(self, tenant: str, name: str, retention: int = RETENTION) -> Queue:
        """The queue of that name, made if there is none."""

    async def find(self, tenant: str, name: str) -> Queue | None: ...

    async def all(self, tenant: str | None = None) -> list[Queue]:
        """The queues of a tenant, or of all, by name."""

    async def delete(self, queue_id: int) -> None:
        """Delete a queue with its messages."""

    async def pause(self, queue_id: int, paused: bool) -> None: ...

    async def retain(self, queue_id: int, retention: int) -> None:
        """Keep messages of a queue for so many seconds."""

    async def purge(self, queue_id: int) -> int:
        """Delete every message that no consumer has; returns how many."""

    async def depth(self, queue_id: int) -> Depth: ...

    # Messages

    async def send(self, queue_id: int, messages: Sequence[NewMessage]) -> list[str]:
        """Store messages; returns their ids once they are safe. NoQueue if the queue was deleted.

        OverQuota if that is more than the tenant may have: then none of them is stored.
        """

    async def lease(self, queue_id: int, limit: int) -> list[Message]:
        """Take up to `limit` messages that are due, oldest first; each counts an attempt."""

    async def settle(self, queue_id: int, settlement: Settlement) -> None:
        """Put down what became of leased messages."""

    async def due(self, queue_id: int, limit: int) -> list[int]:
        """When each of the next messages becomes due, those that are due first; at most `limit`."""

    async def peek(self, queue_id: int, after: int, limit: int) -> list[Waiting]:
        """Messages in the order in which they came, from after one of them (seq) on. Nothing happens to them."""

    async def sweep(self) -> None:
        """Delete messages that have waited longer than their queue keeps them."""

    async def trusts_clock(self) -> bool:
        """Whether the time may be right: not more than a day after that of the last sweep of the process before."""

    async def close(self) -> None: ...
