"""The contract of a binding: one method for each op.

A binding is a folder: `<kind>.js` is the half that a worker sees, `ops.py` the half that does the work. An op is a
method marked with @op("<kind>.<verb>"), the same name that the JavaScript half passes to defineOp.

An op takes an OpCall and returns a Reply, or raises an AtollError, which the worker gets as an exception of the right
class. Any other exception is a bug of ours: it is logged in full, and the worker gets INTERNAL.

An op may be a plain function or a coroutine. A coroutine runs at once up to its first real wait and becomes a task only
then, so a reply from memory costs no task. The price: until that wait it runs outside any task. Code that needs the
current task (asyncio.timeout, TaskGroup, aiohttp) must come after `await own_task()`. An op that often waits for a
single event may return a Later, which costs neither task nor future.

A worker gets a binding by an entry in `bindings` of its deploy, which `claim` turns into the resource of a Grant. An
`ambient` binding, such as fetch(), needs no entry: every worker has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import msgspec

from atoll.bindings.scope import CallScope
from atoll.bindings.triggers import Trigger
from atoll.workers import Grant, Version

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


@dataclass(slots=True)
class OpCall:
    """One op of a worker. `meta` and `body` come from the worker: check them. `scope` belongs to the call."""

    grant: Grant
    scope: CallScope
    meta: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""


@dataclass(slots=True)
class Reply:
    """The result of an op: a JSON object and raw bytes."""

    meta: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""


class Later:
    """A reply that comes by a callback: `settle` is called once, when the reply is known."""

    __slots__ = ("_done", "_is_over", "_tell")

    def __init__(self) -> None:
        self._is_over = False
        self._tell: Callable[[Reply | Exception], None] | None = None
        self._done: Callable[[Any], None] | None = None

    def settle(self, answer: Reply | Exception) -> None:
        """Give the reply. Never before the op has returned; a reply after a cancel is dropped."""
        if not self._is_over and self._tell is not None:
            self._tell(answer)
        self._end()

    def cancel(self) -> None:
        """The call is over; the reply is not needed any more."""
        self._end()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            if self._done is not None:
                self._done(self)

    def listen(self, tell: Callable[[Reply | Exception], None]) -> None:
        self._tell = tell

    def add_done_callback(self, done: Callable[[Any], None]) -> None:
        """Like Task.add_done_callback."""
        self._done = done


OpHandler: TypeAlias = Callable[[OpCall], "Reply | Later | Awaitable[Reply]"]
Method = TypeVar("Method", bound=Callable[..., "Reply | Later | Awaitable[Reply]"])


def op(name: str, *, free: bool = False, continues: bool = False) -> Callable[[Method], Method]:
    """Mark a method as the op `name`. A `free` op does not count as a subrequest: it continues an earlier op, or counts
    by itself. One that `continues` may name a call to another worker whose answer has not come."""

    def mark(method: Method) -> Method:
        method.op_name = name  # type: ignore[attr-defined]
        method.is_free = free  # type: ignore[attr-defined]
        method.continues = continues  # type: ignore[attr-defined]
        return method

    return mark


async def own_task() -> None:
    """Continue the op in its own task."""
    await asyncio.sleep(0)


class NoFields(msgspec.Struct, forbid_unknown_fields=True):
    """An entry with no fields but its type and name."""


Need: TypeAlias = Callable[[str], "Binding"]  # another binding of the same node, by its kind


class Binding:
    """A kind of binding. One object serves all workers with a grant for it; the grant names tenant and resource."""

    kind: ClassVar[str]
    ambient: ClassVar[bool] = False
    keeps_data: ClassVar[bool] = True  # in the data folder; a node that gives the folder away ends its ops first
    Entry: ClassVar[type[msgspec.Struct]] = NoFields  # the fields of its entry in a deploy besides `type` and `name`
    trigger: Trigger | None = None  # delivers the events in its manifest

    def ops(self) -> dict[str, OpHandler]:
        """Every op of this binding by name."""
        found: dict[str, OpHandler] = {}
        for attribute in dir(self):
            method = getattr(self, attribute)
            name = getattr(method, "op_name", None)
            if name is not None:
                assert name.startswith(f"{self.kind}."), f"{name} is not a valid name for an op of {self.kind}"
                found[name] = method
        return found

    def claim(self, tenant: str, entry: Any) -> str:
        """The resource that an entry of a deploy names, for its grant. InvalidArgument if the entry is invalid.

        Pure: called for drafts that may never be deployed, and for every stored version at a start.
        """
        return ""

    def facts(self, version: Version, grant: Grant) -> Mapping[str, Any] | None:
        """What the JavaScript half must know besides the name of the binding: JSON that the worker may see."""
        return None

    def own_facts(self, version: Version) -> Mapping[str, Any] | None:
        """The same for workers without a binding of this kind. Sent with every load: keep it small."""
        return None

    async def prepare(self, tenant: str, resource: str) -> None:
        """Create the resource of a grant if it does not exist. Called before a version with this grant is deployed."""

    async def exists(self, tenant: str, resource: str) -> bool:
        """Whether the resource of a grant exists. A rollback checks it, to avoid an empty one for a deleted one."""
        return True

    async def holdings(self, tenant: str) -> list[str]:
        """The resources of a tenant, by name. A tenant with resources is not deleted: a new tenant of that name would
        find them."""
        return []

    async def usage(self, tenant: str) -> dict[str, int]:
        """A tenant's present use of each quota of this binding, by the name of the quota."""
        return {}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        """Set a tenant's quotas, by name; None is unbounded. Existing data above a quota stays."""

    async def forget(self, tenant: str) -> None:
        """Delete the rest of a deleted tenant's data: a new tenant of that name must not find it."""

    async def seal_anew(self) -> None:
        """Seal its secrets again: the node has a new root key, and the old ones are dropped next."""

    async def metrics(self) -> Sequence[Metric]:
        """Its families for /metrics. Import prometheus_client here: a node without scrapes does not need it."""
        return ()

    async def close(self) -> None:
        """The node stops and the trigger is closed: release open resources."""
