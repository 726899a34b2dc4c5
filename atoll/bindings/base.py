"""The contract of a binding: what a worker may ask of the world, one method per op.

A binding is a folder: `<kind>.js` is what a worker sees, `ops.py` is the half that touches the world. An op is a method
marked with @op("<kind>.<verb>"), the same name that the JavaScript half gives to defineOp.

An op takes an OpCall and returns a Reply, or raises an AtollError, which reaches the worker as an exception of the
right class. Anything else it raises is our bug: logged whole, INTERNAL to the worker. It may be a plain function or a
coroutine; a coroutine is stepped once at once and becomes a task only if it really waits, so an answer from memory
costs no task. The price: until its first real wait it runs outside any task. What asks for the current task
(asyncio.timeout, TaskGroup, aiohttp) must come after `await own_task()`. What waits often and for one thing only may
return a Later, which costs neither task nor future.

A worker gets a binding by an entry in `bindings` of its deploy, which `claim` turns into the resource of a Grant. A
binding that is `ambient` needs no entry: every worker has it, like fetch().
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, TypeVar

import msgspec

from atoll.bindings.scope import Scope
from atoll.workers import Grant


@dataclass(slots=True)
class OpCall:
    """One thing a worker asks for. `meta` and `body` come from the worker: check them. `scope` is the call's."""

    grant: Grant
    scope: Scope
    meta: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""


@dataclass(slots=True)
class Reply:
    """What the worker gets back: a JSON object and raw bytes."""

    meta: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""


class Later:
    """An answer that comes by a callback: `settle` is called once, when it is known."""

    __slots__ = ("_done", "_is_over", "_tell")

    def __init__(self) -> None:
        self._is_over = False
        self._tell: Callable[[Reply | Exception], None] | None = None
        self._done: Callable[[Any], None] | None = None

    def settle(self, answer: Reply | Exception) -> None:
        """Here is the answer. Not before the op has returned; what comes after a cancel is dropped."""
        if not self._is_over and self._tell is not None:
            self._tell(answer)
        self._end()

    def cancel(self) -> None:
        """The call is over, and nobody wants the answer any more."""
        self._end()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            if self._done is not None:
                self._done(self)

    def listen(self, tell: Callable[[Reply | Exception], None]) -> None:
        self._tell = tell

    def add_done_callback(self, done: Callable[[Any], None]) -> None:
        """As that of a task."""
        self._done = done


OpHandler: TypeAlias = Callable[[OpCall], "Reply | Later | Awaitable[Reply]"]
Method = TypeVar("Method", bound=Callable[..., "Reply | Later | Awaitable[Reply]"])


def op(name: str, *, free: bool = False) -> Callable[[Method], Method]:
    """Mark a method as the op `name`. A `free` one is no new subrequest: it goes on with what another op began, or
    spends by itself."""

    def mark(method: Method) -> Method:
        method.op_name = name  # type: ignore[attr-defined]
        method.is_free = free  # type: ignore[attr-defined]
        return method

    return mark


async def own_task() -> None:
    """From here on the op runs in a task of its own."""
    await asyncio.sleep(0)


class NoFields(msgspec.Struct, forbid_unknown_fields=True):
    """An entry that says nothing but its type and name."""


class Binding:
    """A kind of binding. One object serves every worker that was granted it; the grant says on whose behalf."""

    kind: ClassVar[str]
    ambient: ClassVar[bool] = False
    Entry: ClassVar[type[msgspec.Struct]] = NoFields  # the fields of its entry in a deploy besides `type` and `name`

    def ops(self) -> dict[str, OpHandler]:
        """Every op of this binding by name."""
        found: dict[str, OpHandler] = {}
        for attribute in dir(self):
            method = getattr(self, attribute)
            name = getattr(method, "op_name", None)
            if name is not None:
                assert name.startswith(f"{self.kind}."), f"{name} is no name for an op of {self.kind}"
                found[name] = method
        return found

    def claim(self, tenant: str, entry: Any) -> str:
        """The resource that an entry of a deploy names, as the grant will hold it. InvalidArgument if it cannot be.

        Pure: called for a draft that may never be deployed, and again for every stored version at a start.
        """
        return ""

    async def prepare(self, tenant: str, resource: str) -> None:
        """A version with this grant is about to be deployed: make what it names and is not there yet."""

    async def exists(self, tenant: str, resource: str) -> bool:
        """Whether what a grant names is there. A rollback asks: nobody wants an empty one for what was deleted."""
        return True

    async def holdings(self, tenant: str) -> list[str]:
        """What a tenant has stored here, by name. A tenant that has something is not deleted: the next of that name
        would find it."""
        return []

    async def usage(self, tenant: str) -> dict[str, int]:
        """How much a tenant has of what a quota of this kind bounds, by the name of the quota."""
        return {}

    def bound(self, tenant: str, most: Mapping[str, int | None]) -> None:
        """From now on a tenant may have so much, by the name of the quota; None is no bound. What it has stays."""

    async def forget(self, tenant: str) -> None:
        """A tenant was deleted: what is left of it must not be there for another one of that name."""

    async def close(self) -> None:
        """The node stops: let go of what is open."""
