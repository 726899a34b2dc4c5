"""Answers ops: finds the binding, checks the grant, turns errors into codes.

The engine runs untrusted code. The broker trusts only which worker is calling, which the session knows. An op index
out of range is a fault of the engine and ends it. The meta comes from the worker, which can replace JSON.stringify:
invalid meta fails that op with INVALID_ARGUMENT and never ends the engine.
"""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from atoll.bindings.base import Binding, Later, OpCall, OpHandler, Reply
from atoll.bindings.scope import CallScope
from atoll.errors import AtollError, EngineError, InvalidArgument, NotGranted
from atoll.tallies import OpTally
from atoll.wire.fields import read_json
from atoll.wire.generated import ErrorCode
from atoll.workers import Grant

log = logging.getLogger("atoll.broker")


class Op(NamedTuple):
    """One op, found by its index in the engine's list."""

    name: str
    kind: str
    handler: OpHandler
    ambient: Grant | None  # granted to every worker
    is_free: bool
    continues: bool
    tally: OpTally
    keeps_data: bool = True  # what the binding stores is in the data folder


class OpRefusal(NamedTuple):
    """The answer to an op that failed."""

    code: ErrorCode
    message: str


Respond: TypeAlias = Callable[["Reply | OpRefusal"], None]
# None: it is not forwarded
Forward: TypeAlias = Callable[["Op", CallScope, bytes, bytes, Respond], "Later | None"]


class Broker:
    def __init__(self, bindings: Iterable[Binding]) -> None:
        self.trace_share = 0.0  # share of calls whose ops are timed
        self.forward: Forward | None = None  # takes ops whose data another process has, or will soon have
        self.storing = 0  # ops on stored data that wait for something
        self._ops: dict[str, Op] = {}
        for binding in bindings:
            ambient = Grant("", binding.kind) if binding.ambient else None
            for name, handler in binding.ops().items():
                assert name not in self._ops, f"two bindings have an op {name}"
                self._ops[name] = Op(
                    name,
                    binding.kind,
                    handler,
                    ambient,
                    getattr(handler, "is_free", False),
                    getattr(handler, "continues", False),
                    OpTally(),
                    binding.keeps_data,
                )

    def tallies(self) -> Iterator[tuple[str, str, OpTally]]:
        """(kind of binding, op, its counters) for every op."""
        return ((op.kind, op.name, op.tally) for op in self._ops.values())

    def find(self, name: str) -> Op | None:
        return self._ops.get(name)

    def bind(self, names: Sequence[str]) -> tuple[Op, ...]:
        """The ops in the order of an engine's HELLO. Both sides must have the same ops."""
        strange = sorted(set(names) - set(self._ops))
        missing = sorted(set(self._ops) - set(names))
        if strange or missing or len(set(names)) != len(names):
            raise EngineError(
                f"the engine's ops do not match: only the engine has [{', '.join(strange)[:400]}], "
                f"only this Atoll has [{', '.join(missing)}]; run `make setup` to rebuild it"
            )
        return tuple(self._ops[name] for name in names)

    def answer(
        self, op: Op, scope: CallScope, meta: bytes, body: bytes, respond: Respond
    ) -> asyncio.Task[None] | Later | None:
        """Answer one op through `respond`: at once (returns None), or later from the returned task or Later."""
        if self.forward is not None and (taken := self.forward(op, scope, meta, body, respond)) is not None:
            return taken
        try:
            answer = op.handler(self._checked(op, scope, meta, body))
            if isinstance(answer, Later):
                answer.listen(lambda known: respond(known if isinstance(known, Reply) else self._refusal(op, known)))
                return answer
            if not isinstance(answer, Reply):
                return self._step(op, answer, respond)
        except Exception as error:
            respond(self._refusal(op, error))
        else:
            respond(answer)
        return None

    def _checked(self, op: Op, scope: CallScope, meta: bytes, body: bytes) -> OpCall:
        try:
            fields = read_json(meta)
        except EngineError:
            raise InvalidArgument(f"{op.name}: the arguments are not a JSON object") from None
        grant = op.ambient
        if grant is None:
            name = fields.pop("binding", None)
            grant = scope.version.grants.get(name) if isinstance(name, str) else None
            if grant is None or grant.kind != op.kind:
                raise NotGranted(f"this worker has no {op.kind} binding of that name")
        if not op.is_free:
            scope.spend()
        return OpCall(grant, scope, fields, body)

    def _step(self, op: Op, answer: Awaitable[Reply], respond: Respond) -> asyncio.Task[None] | None:
        """Run a coroutine until it first has to wait; only the rest becomes a task."""
        if not isinstance(answer, Coroutine):
            return asyncio.ensure_future(self._finish(op, answer, respond))
        try:
            waits_for = answer.send(None)
        except StopIteration as stop:
            respond(stop.value)
            return None
        return asyncio.ensure_future(self._finish(op, _rest(answer, waits_for), respond))

    async def _finish(self, op: Op, answer: Awaitable[Reply], respond: Respond) -> None:
        try:
            reply: Reply | OpRefusal = await answer
        except Exception as error:
            reply = self._refusal(op, error)
        respond(reply)

    def _refusal(self, op: Op, error: Exception) -> OpRefusal:
        """The error boundary: known errors become codes; unknown ones are logged in full and become INTERNAL."""
        if isinstance(error, AtollError) and error.code != ErrorCode.INTERNAL:
            return OpRefusal(error.code, str(error))
        log.error("op %s failed", op.name, exc_info=error)
        return OpRefusal(ErrorCode.INTERNAL, "internal error")


@types.coroutine
def _rest(coroutine: Coroutine[Any, Any, Reply], waits_for: Any) -> Generator[Any, Any, Reply]:
    """The rest of a coroutine whose first step ran outside a task: awaits what it waits for, then continues it."""
    try:
        while True:
            try:
                value = yield waits_for
            except GeneratorExit:
                raise
            except BaseException as error:
                waits_for = coroutine.throw(error)
            else:
                waits_for = coroutine.send(value)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        coroutine.close()
