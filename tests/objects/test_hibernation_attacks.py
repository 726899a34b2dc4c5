"""Attacks on hibernatable WebSockets: each costs its tenant, and nobody else."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from atoll.engine.objects import object_sockets
from atoll.workers import LOCAL_TENANT
from tests.eventually import eventually
from tests.objects.hibernating import Stage, opened, say, stage, until

__all__ = ["stage"]


def generous(fields: dict[str, Any]) -> None:
    fields["limits"] = {"cpu_ms": 30_000, "memory_mb": 256}


async def test_forty_thousand_sockets_on_one_object_are_refused_from_the_32769th() -> None:
    async with opened(change=generous) as stage:
        code = """
          let count = 0;
          try { for (; count < 40_000; count++) ctx.acceptWebSocket(new WebSocketPair()[1]); }
          catch (error) { return [count, error.message, ctx.getWebSockets().length]; }
        """
        message = "only 32768 websockets can be accepted on a single Durable Object instance"
        assert await stage.run(code) == [32_768, message, 32_768]
        await until(lambda: stage.sockets == object_sockets.MAX_SOCKETS, "Python has them all")
        assert await stage.run("return ctx.getWebSockets().length;") == 32_768
        with suppress(AssertionError):
            await stage.run("ctx.abort();")
        await until(lambda: not stage.sockets, "a reset drops them all")
        assert not stage.node.node.holdings.total(LOCAL_TENANT)


async def test_attachments_of_many_sockets_stay_within_the_bytes_of_the_tenant() -> None:
    async with opened(change=generous, tenant_buffer_mb=1) as stage:
        code = """
          const full = "x".repeat(16_000);
          for (let i = 0; i < 1_000; i++) object.accept([], full);
          return ctx.getWebSockets().length;
        """
        async with stage.connect() as client:
            await stage.run(code)
            assert stage.node.node.holdings.total(LOCAL_TENANT) < 5 << 20
            await until(lambda: stage.sockets < 500, "those that were too much are gone")
            with suppress(ConnectionClosed):
                await client.send("return 1;")

            async def serves() -> (
                bool
            ):  # their close events wait for the object, and too many calls that wait are refused
                with suppress(AssertionError):
                    return bool(await stage.run("return 'it serves';") == "it serves")
                return False

            await eventually(serves, "the object serves")


async def test_a_client_that_floods_a_busy_object_is_not_read_any_further(stage: Stage) -> None:
    async with stage.connect("/quiet") as quiet, stage.connect("/loud") as loud:
        await loud.send("await new Promise((resolve) => (object.release = resolve, setTimeout(resolve, 60_000)));")

        async def flood() -> None:
            for _ in range(2_000):
                await loud.send("// " + "x" * 50_000)

        flooding = asyncio.create_task(flood())
        done, _ = await asyncio.wait([flooding], timeout=1)
        assert not done, "100 MB were taken while the object is busy"
        assert stage.node.node.holdings.total(LOCAL_TENANT) < 1 << 20
        assert await say(quiet, "object.release(); return 1;") == 1
        flooding.cancel()
        with suppress(asyncio.CancelledError):
            await flooding


async def test_a_flood_of_pings_that_nobody_reads_the_answers_of_is_bounded(stage: Stage) -> None:
    ping = "p" * 2000
    set_pair = f'ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("{ping}", "{"x" * 2000}"));'
    async with stage.connect(max_queue=1) as client:
        await say(client, set_pair)
        await stage.evicted()
        client.transport.pause_reading()

        async def flood() -> None:
            for _ in range(50_000):
                await client.send(ping)

        flooding = asyncio.create_task(flood())
        done, _ = await asyncio.wait([flooding], timeout=2)
        assert not done, "100 MB of pings were answered, and nobody reads the answers"
        assert stage.node.node.holdings.total(LOCAL_TENANT) < 4 << 20
        assert not stage.runtime.count(), "the object sleeps"
        flooding.cancel()
        with suppress(asyncio.CancelledError):
            await flooding
        client.transport.abort()


async def test_an_object_that_never_returns_from_a_message_loses_its_sockets_and_nothing_else() -> None:
    async with opened(max_cpu_ms=500) as stage:
        async with stage.connect() as client:
            await client.send("for (;;);")
            with pytest.raises(ConnectionClosed):
                await client.recv()
            assert client.close_code in (1011, 1012)
        async with stage.connect() as client:
            assert await say(client, "return 1;") == 1


async def test_a_slow_reader_does_not_hold_up_the_other_clients_of_its_object(stage: Stage) -> None:
    async with stage.connect(max_queue=1) as slow, stage.connect() as quick:
        await say(quick, "return 1;")
        slow.transport.pause_reading()
        code = """
          const text = "x".repeat(100_000);
          for (let i = 0; i < 100; i++) for (const each of ctx.getWebSockets()) if (each !== ws) each.send(text);
          return ctx.getWebSockets().filter((each) => each !== ws)[0].bufferedAmount > 0;
        """
        assert await say(quick, code) is True, "what it does not read stays in the object's memory"
        assert await say(quick, "return 2;") == 2
        await asyncio.sleep(1)
        assert stage.runtime.count() == 1, "the object is not evicted before its messages have left"
        slow.transport.resume_reading()
        for _ in range(100):
            assert len(await slow.recv()) == 100_000
        await stage.evicted()


async def test_a_worker_that_hands_a_socket_over_and_dies_leaves_none_behind(stage: Stage) -> None:
    code = """
      await room.fetch("http://room/w", { headers: { Upgrade: "websocket" } });
      return "the response is dropped";
    """
    assert await stage.run(code, "/worker") == "the response is dropped"
    await until(lambda: not stage.sockets, "the socket went with the call that asked for it")
