"""The contract of a binding: what a worker may ask of the world, one method per op.

A binding is a folder: `<kind>.js` is what a worker sees, `ops.py` is the half that touches the world. An op is a method
marked with @op("<kind>.<verb>"), the same name that the JavaScript half gives to defineOp.

An op takes an OpCall and returns a Reply, or raises an AtollError, which reaches the worker as an exception of the
right class. Anything else it raises is our bug: logged whole, INTERNAL to the worker. It may be a plain function or a
coroutine; a coroutine is stepped once at once and becomes a task only if it really waits, so an answer from memory
costs no task. The price: until its first real wait it runs outside any task. What asks for the current task
(asyncio.timeout, TaskGroup, aiohttp) must come after `await own_task()`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, TypeVar

from atoll.workers import Grant


@dataclass(slots=True)
class OpCall:
    """One thing a worker asks for. `meta` and `body` come from the worker: check them."""

    grant: Grant
    meta: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""


@dataclass(slots=True)
class Reply:
    """What the worker gets back: a JSON object and raw bytes."""

    meta: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""


OpHandler: TypeAlias = Callable[[OpCall], "Reply | Awaitable[Reply]"]
Method = TypeVar("Method", bound=Callable[..., "Reply | Awaitable[Reply]"])


def op(name: str) -> Callable[[Method], Method]:
    """Mark a method as the op `name`."""

    def mark(method: Method) -> Method:
        method.op_name = name  # type: ignore[attr-defined]
        return method

    return mark


async def own_task() -> None:
    """From here on the op runs in a task of its own."""
    await asyncio.sleep(0)


class Binding:
    """A kind of binding. One object serves every worker that was granted it; the grant says on whose behalf."""

    kind: ClassVar[str]

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
