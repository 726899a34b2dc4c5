"""Echo through the broker: the contract of ops, mistakes of workers, and the one error boundary."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from atoll.bindings.base import Binding, OpCall, Reply, op, own_task
from atoll.bindings.echo.ops import Echo
from atoll.bindings.scope import CallScope
from atoll.broker import Broker, OpRefusal
from atoll.errors import EngineError, InvalidArgument, QuotaExceeded
from atoll.wire.generated import ErrorCode
from atoll.workers import Grant, Limits, Version

VERSION = Version(
    id="version_1",
    worker_id="worker_1",
    worker_name="worker",
    tenant="default",
    modules=(),
    main="",
    grants={"ECHO": Grant("ECHO", "echo"), "KV": Grant("KV", "kv")},
    limits=Limits(subrequests=2, internal_subrequests=3),
)


class Odd(Binding):
    """Ops that fail, each in its own way."""

    kind = "kv"

    @op("kv.bug")
    def bug(self, call: OpCall) -> Reply:
        raise ZeroDivisionError("a secret of ours")

    @op("kv.late_bug")
    async def late_bug(self, call: OpCall) -> Reply:
        await asyncio.sleep(0)
        raise ZeroDivisionError("a secret of ours")

    @op("kv.timeout")
    async def timeout(self, call: OpCall) -> Reply:
        await own_task()
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
        return Reply({"ok": True})


@pytest.fixture
def broker() -> Broker:
    return Broker([Echo(), Odd()])


async def ask(broker: Broker, name: str, meta: object, body: bytes = b"") -> tuple[Reply | OpRefusal, bool]:
    """The answer, and True if it needed a task."""
    answers: list[Reply | OpRefusal] = []
    (op,) = [op for op in broker.bind(sorted(broker._ops)) if op.name == name]
    raw = meta if isinstance(meta, bytes) else json.dumps(meta).encode()
    task = broker.answer(op, CallScope(VERSION), raw, body, answers.append)
    if task is not None:
        await task
    (answer,) = answers
    return answer, task is not None


async def test_say_gives_back_meta_and_body_without_a_task(broker: Broker) -> None:
    answer = await ask(broker, "echo.say", {"binding": "ECHO", "text": "hi"}, b"bytes")
    assert answer == (Reply({"text": "hi"}, b"bytes"), False)


async def test_wait_answers_later_from_a_task(broker: Broker) -> None:
    assert await ask(broker, "echo.wait", {"binding": "ECHO", "ms": 1}) == (Reply({"ms": 1}), True)


async def test_a_coroutine_that_does_not_wait_needs_no_task(broker: Broker) -> None:
    assert await ask(broker, "echo.wait", {"binding": "ECHO", "ms": 0}) == (Reply({"ms": 0}), False)


@pytest.mark.parametrize("ms", [-1, 10_001, "5", None, True, [], float("inf")])
async def test_a_wait_beyond_its_bounds_is_refused(broker: Broker, ms: object) -> None:
    answer, _ = await ask(broker, "echo.wait", {"binding": "ECHO", "ms": ms})
    assert isinstance(answer, OpRefusal)
    assert answer.code == ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize("binding", ["OTHER", "", None, 5, ["ECHO"], "KV"])
async def test_a_binding_the_worker_was_not_given_is_refused(broker: Broker, binding: object) -> None:
    answer, _ = await ask(broker, "echo.say", {"binding": binding})
    assert isinstance(answer, OpRefusal)
    assert answer.code == ErrorCode.NOT_GRANTED


@pytest.mark.parametrize("meta", [b"", b"undefined", b"5", b"[]", b"{" * 100_000, b'{"binding":"ECHO"'])
async def test_forged_meta_fails_only_that_op(broker: Broker, meta: bytes) -> None:
    answer, _ = await ask(broker, "echo.say", meta)
    assert isinstance(answer, OpRefusal)
    assert answer.code == ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize("name", ["kv.bug", "kv.late_bug"])
async def test_an_internal_error_is_logged_in_full_and_hidden_from_the_worker(
    broker: Broker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer, _ = await ask(broker, name, {"binding": "KV"})
    assert answer == OpRefusal(ErrorCode.INTERNAL, "internal error")
    assert "a secret of ours" in caplog.text


async def test_an_op_that_asks_for_its_task_gets_one(broker: Broker) -> None:
    assert await ask(broker, "kv.timeout", {"binding": "KV"}) == (Reply({"ok": True}), True)


async def test_a_running_op_can_be_cancelled(broker: Broker) -> None:
    answers: list[object] = []
    (wait,) = [op for op in broker.bind(sorted(broker._ops)) if op.name == "echo.wait"]
    task = broker.answer(wait, CallScope(VERSION), b'{"binding":"ECHO","ms":9000}', b"", answers.append)
    assert task is not None
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert answers == []


def test_ops_are_bound_in_the_order_of_the_engine(broker: Broker) -> None:
    names = sorted(broker._ops, reverse=True)
    assert [op.name for op in broker.bind(names)] == names


@pytest.mark.parametrize("names", [[], ["echo.say"], ["echo.say", "echo.say"]])
def test_an_engine_with_other_ops_is_refused_by_name(broker: Broker, names: list[str]) -> None:
    with pytest.raises(EngineError, match=r"echo\.wait"):
        broker.bind(names)


def test_a_refusal_names_the_argument() -> None:
    with pytest.raises(InvalidArgument, match="ms"):
        asyncio.run(Echo().wait(OpCall(VERSION.grants["ECHO"], CallScope(VERSION), {"ms": "x"})))  # type: ignore[arg-type]


async def test_subrequests_of_a_call_are_limited(broker: Broker) -> None:
    scope = CallScope(VERSION)
    answers: list[Reply | OpRefusal] = []
    say = broker.bind(sorted(broker._ops))[0]
    for _ in range(VERSION.limits.internal_subrequests + 1):
        broker.answer(say, scope, b'{"binding": "ECHO"}', b"", answers.append)
    last = answers.pop()
    assert all(isinstance(answer, Reply) for answer in answers)
    assert isinstance(last, OpRefusal) and last.code == ErrorCode.QUOTA_EXCEEDED
    assert last.message == (
        "Too many subrequests: one request may make 3 calls of bindings. "
        "Raise `limits.internal_subrequests` of the worker to allow more."
    )


def test_fetches_and_binding_ops_have_separate_budgets() -> None:
    outer, inner = CallScope(VERSION), CallScope(replace(VERSION, limits=Limits(subrequests=9, internal_subrequests=9)))
    inner.caller = outer
    for _ in range(2):
        inner.spend(external=True)
    for scope in (inner, outer):  # fetches of a bound worker also count for its caller
        with pytest.raises(QuotaExceeded, match=r"may make 2 fetches. Raise `limits.subrequests`"):
            scope.spend(external=True)
    assert (inner.external, inner.internal) == (outer.external, outer.internal) == (2, 0)
    for _ in range(3):
        outer.spend()
    with pytest.raises(QuotaExceeded, match="3 calls of bindings"):
        inner.spend()
    assert outer.told()[3:] == (5, 2)
