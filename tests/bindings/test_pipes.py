"""What streams between workers hold: bounded for each stream, and for all streams of a tenant."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from atoll.bindings.base import OpCall
from atoll.bindings.pipe import ops
from atoll.bindings.pipe.ops import Pipe, PipeBinding
from atoll.bindings.scope import CallScope
from atoll.errors import InvalidArgument
from atoll.workers import Grant, Version

VERSION = Version(id="v", worker_id="w", worker_name="w", tenant="default", modules=(), main="")


def asked(scope: CallScope, body: bytes = b"", **meta: object) -> OpCall:
    return OpCall(Grant("pipe", ""), scope, meta, body)


async def test_tiny_pieces_are_joined() -> None:
    pipe = Pipe("a", Counter())
    for _ in range(50_000):
        assert await pipe.write(b"x", False, None)
    assert len(pipe._chunks) <= 50_000 // ops.JOINED + 1
    assert (await pipe.read()).body == b"x" * 50_000


async def test_a_tenant_with_full_pipes_waits_for_its_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops, "TENANT_ROOM", 1000)
    held: Counter[str] = Counter()
    first, second, other = Pipe("a", held), Pipe("a", held), Pipe("b", held)
    assert await first.write(bytes(900), False, None)
    waits = asyncio.ensure_future(second.write(bytes(900), False, None))
    assert await other.write(bytes(900), False, None)
    await asyncio.sleep(0)
    assert not waits.done()
    assert len((await second.read()).body) == 900
    assert await waits
    first.drop()
    other.drop()
    assert not held


async def test_streams_without_a_reader_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops, "SENT_BYTES", 1000)
    pipes, scope, reader = PipeBinding(), CallScope(VERSION), CallScope(VERSION)
    names = []
    for _ in range(5):
        names.append(pipes.open(asked(scope)).meta["pipe"])
        await pipes.write(asked(scope, bytes(300), pipe=names[-1], ended=True))
    scope.close()
    assert pipes._held["default"] == 900
    for name in names[:2]:
        with pytest.raises(InvalidArgument):
            await pipes.read(asked(reader, pipe=name))
    for name in names[2:]:
        assert len((await pipes.read(asked(reader, pipe=name))).body) == 300
    assert not pipes._held and not pipes._waiting and not pipes._sent


async def test_a_stream_that_breaks_before_it_is_read_holds_nothing() -> None:
    pipes, scope = PipeBinding(), CallScope(VERSION)
    name = pipes.open(asked(scope)).meta["pipe"]
    await pipes.write(asked(scope, bytes(300), pipe=name))
    scope.close()
    assert not pipes._held and not pipes._waiting
