"""A hostile worker, or a hostile engine, on one side of an RPC session: the other side and Python stay whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from atoll.bindings.base import Later, Reply
from atoll.bindings.passes import Passes
from atoll.bindings.rpc.messages import MAX_BATCH, MAX_PATH, read_batch
from atoll.bindings.rpc.sessions import MAX_SESSIONS, ROOM, RpcEnds, RpcSession
from atoll.bindings.scope import CallScope
from atoll.bindings.service.target import export_of, target_of
from atoll.errors import InvalidArgument, NotGranted, QuotaExceeded
from atoll.workers import Limits
from tests.bindings.service.rpc_workers import API, ask
from tests.engine.conftest import open_room, snapshots
from tests.engine.engine_room import EngineRoom, script

__all__ = ["open_room", "snapshots"]


@pytest_asyncio.fixture
async def room(open_room: Callable[..., Any]) -> AsyncIterator[EngineRoom]:
    room = await open_room()
    room.workers["api"] = script(API, name="api", limits=Limits(cpu_ms=5000))
    yield room


# --- what Python refuses ---


def message(**fields: Any) -> list[Any]:
    return list({"session": 0, "kind": "c", "id": 1, "target": 1, "path": ["x"], "size": 0, **fields}.values())


@pytest.mark.parametrize(
    "meta",
    [
        {}, {"m": 1}, {"m": [1]}, {"m": [[0, "c", 1, 1, ["x"]]]}, {"m": [message(kind="e")]}, {"m": [message(kind="")]},
        {"m": [message(session=-1)]}, {"m": [message(session=1 << 53)]}, {"m": [message(session="0")]}, {"m": [message(session=True)]},
        {"m": [message(id=-1)]}, {"m": [message(id=1.5)]}, {"m": [message(target=1 << 53)]}, {"m": [message(target=-(1 << 53))]},
        {"m": [message(size=-1)]}, {"m": [message(size=5)]}, {"m": [message(size=1 << 60)]}, {"m": [message(size=3)]},
        {"m": [message(path=["x"] * (MAX_PATH + 1))]}, {"m": [message(path=["x" * 2000])]}, {"m": [message(path=[1])]},
        {"m": [message()] * (MAX_BATCH + 1)},
    ],
)  # fmt: skip
async def test_malformed_messages_are_refused(meta: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        read_batch(meta, b"body")


def joined(limits: Limits | None = None) -> tuple[RpcEnds, RpcEnds, RpcSession]:
    """The two ends of a session: its caller's and its callee's."""
    version = script("", name="x", limits=limits or Limits())
    caller = CallScope(version).local(RpcEnds)
    session = caller.open(7, is_used=True)
    scope = CallScope(version)
    scope.session = session
    return caller, scope.local(RpcEnds), session


def batch(*messages: list[Any], body: bytes = b"") -> Any:
    return read_batch({"m": list(messages)}, body)


async def test_messages_to_sessions_of_others_arrive_nowhere() -> None:
    caller, callee, _ = joined()
    stranger = CallScope(script("", name="y")).local(RpcEnds)
    assert isinstance(stranger.send(batch(message(session=7), message(kind="r", session=0))), Reply)
    assert callee.inbox.is_empty and caller.inbox.is_empty
    reply = stranger.receive()  # the stranger learns that there is nobody, and nothing else
    assert isinstance(reply, Reply) and [told[1] for told in reply.meta["m"]] == ["e"]


async def test_session_numbers_are_checked_and_bounded() -> None:
    ends = CallScope(script("", name="x")).local(RpcEnds)
    for number in (0, -1, 1.5, "1", None, 1 << 53, [1]):
        with pytest.raises(InvalidArgument):
            ends.open(number, is_used=False)
    for number in range(1, MAX_SESSIONS + 1):
        ends.open(number, is_used=False)
    with pytest.raises(InvalidArgument):
        ends.open(5, is_used=False)
    with pytest.raises(QuotaExceeded):
        ends.open(MAX_SESSIONS + 1, is_used=False)


async def test_a_sender_waits_while_the_other_side_does_not_receive() -> None:
    caller, callee, _ = joined()
    body = bytes(ROOM)
    assert isinstance(caller.send(batch(message(session=7, size=len(body)), body=body)), Reply)
    waiting = caller.send(batch(message(session=7, id=2)))
    assert isinstance(waiting, Later)
    told: list[object] = []
    waiting.listen(told.append)
    first = callee.receive()
    assert isinstance(first, Reply) and len(first.meta["m"]) == 1 and told == [Reply()]
    second = callee.receive()
    assert isinstance(second, Reply) and second.meta["m"] == [[0, "c", 2, 1, ["x"], 0]]


async def test_messages_for_a_callee_that_never_listens_are_bounded_and_end_with_it() -> None:
    caller = CallScope(script("", name="x")).local(RpcEnds)
    session = caller.open(7, is_used=False)
    body = bytes(ROOM)
    caller.send(batch(message(session=7, size=len(body)), body=body))
    waiting = caller.send(batch(message(session=7, id=2)))
    assert isinstance(waiting, Later)
    told: list[object] = []
    waiting.listen(told.append)
    session.response_ended()
    assert told == [Reply()]
    reply = caller.receive()
    assert isinstance(reply, Reply) and {entry[1] for entry in reply.meta["m"]} == {"e"}


async def test_only_one_receive_waits_at_a_time() -> None:
    caller, _, _ = joined()
    assert isinstance(caller.receive(), Later)
    with pytest.raises(InvalidArgument):
        caller.receive()


async def test_calls_of_stubs_count_as_subrequests_of_both_sides() -> None:
    caller, callee, _ = joined(Limits(internal_subrequests=2))
    caller.send(batch(*[message(session=7, id=number) for number in (1, 2, 3)]))
    reply = callee.receive()
    assert isinstance(reply, Reply) and [told[2] for told in reply.meta["m"]] == [1, 2]
    refused = caller.receive()
    assert (
        isinstance(refused, Reply)
        and refused.meta["m"][0][:3] == [7, "t", 3]
        and b"Too many subrequests" in refused.body
    )


async def test_the_end_of_one_side_tells_the_other_once() -> None:
    caller, callee, session = joined()
    waiting = caller.receive()
    assert isinstance(waiting, Later)
    told: list[Any] = []
    waiting.listen(told.append)
    callee.scope.close()
    session.end()
    await asyncio.sleep(0)
    assert [reply.meta["m"][0][:2] for reply in told] == [[7, "e"]] and caller.inbox.is_empty and not caller.sessions


@pytest.mark.parametrize(
    "name",
    ["exports ", "exports []", 'exports {"entrypoint": "a b"}', 'exports {"service": "x"}', "exports " + "x" * 20_000],
)
def test_forged_names_of_exports_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgument):
        export_of(name)
    with pytest.raises((InvalidArgument, NotGranted)):
        target_of(script("", name="x"), name, Passes())


# --- what the engine refuses: a worker cannot reach the session itself, so forged messages are sent from Python ---


@pytest.mark.parametrize("side", ["the caller", "the callee"])
@pytest.mark.parametrize(
    "messages",
    [
        [message(id=9, target=999)],  # a capability that does not exist
        [message(kind="x", id=5, target=1), message(kind="x", id=5, target=1)],  # released twice, and too often
        [message(kind="x", id=1, target=999), message(kind="x", id=1, target=-900)],
        [message(kind="r", id=77), message(kind="t", id=78, size=2)],  # answers to questions that nobody asked
        [message(kind="t", id=1, size=1)],  # an exception that cannot be read
        [message(kind="r", id=0), message(id=9), message(id=9)],  # the method call's answer; one number twice
        [message(id=0)],  # the number of the method call itself
        [message(id=9, target=-100)],  # about an answer that does not exist
        [message(id=9, path=["__proto__"]), message(id=10, path=["constructor", "constructor"])],
    ],
    ids=[
        "unknown",
        "released twice",
        "unknown released",
        "unasked",
        "unreadable",
        "twice",
        "number 0",
        "no answer",
        "prototypes",
    ],
)
async def test_a_forged_session_harms_only_itself(
    room: EngineRoom, messages: list[list[Any]], side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = batch(*messages, body=b"{}"[: sum(entry[-1] for entry in messages)])
    sent: list[int] = []
    receive = RpcEnds.receive

    def spy(ends: RpcEnds) -> Reply | Later:
        number = next(iter(ends.sessions), None) if side == "the caller" else 0
        if not sent and number is not None and ends.find(number) is not None:
            sent.append(number)
            ends.send([entry._replace(session=number) for entry in forged])
        return receive(ends)

    monkeypatch.setattr(RpcEnds, "receive", spy)
    code = """const c = await env.API.counter(1); const first = await fails(c.add(1));
      return [first, await fails(env.API.callTwice((x) => c.add(x)))];"""
    await ask(room, code)  # this session may break, but it ends
    assert sent
    code = "const c = await env.API.counter(1); return [await c.add(1), await env.API.callTwice((x) => x)];"
    assert await ask(room, code) == [2, [1, 2]]


async def test_a_flood_of_calls_is_refused_and_the_rest_answered(room: EngineRoom) -> None:
    code = """const stub = await env.API.passBack(() => new Promise(() => {})); let refused = 0;
      const f = await env.API.func(), slow = [];
      for (let i = 0; i < 3000; i++) slow.push(f(i, 1).then(() => true, () => false));
      const answered = (await Promise.all(slow)).filter(Boolean).length;
      return [answered > 900, typeof stub];"""
    limits = Limits(cpu_ms=30_000, internal_subrequests=100_000)
    assert await ask(room, code, limits=limits) == [True, "function"]


async def test_a_table_of_stubs_is_bounded(room: EngineRoom) -> None:
    code = "return (await fails(env.API.roundTrip(Array.from({ length: 20_000 }, () => () => 1))))[1];"
    assert await ask(room, code) == "One RPC call holds more than 10000 stubs: dispose some."


async def test_a_worker_cannot_use_the_sessions_of_another_request(room: EngineRoom) -> None:
    other = replace(room.workers["api"], tenant="other")
    scope, stranger = CallScope(room.workers["api"]), CallScope(other)
    scope.local(RpcEnds).open(1, is_used=True)
    assert stranger.local(RpcEnds).find(1) is None and stranger.local(RpcEnds).find(0) is None
