"""WebSockets that stay open while their object is evicted."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from atoll.objects.store import Commit, Done, ObjectKey
from tests.objects.hibernating import FIELDS, SOURCE, Stage, opened, say, stage, until

__all__ = ["stage"]

WHO = "return [object.number, ctx.getTags(ws), ws.deserializeAttachment(), ctx.id.name];"


async def test_a_message_wakes_the_object_up_and_its_tags_and_attachment_are_there(stage: Stage) -> None:
    async with stage.connect("/a?tag=x&tag=y&tag=x") as a, stage.connect("/b") as b:
        assert await say(a, WHO) == [1, ["x", "y"], {"path": "/a"}, "one"]
        assert await say(a, "ws.serializeAttachment([1, new Date(5)]); ws.mark = 1; return ws.mark;") == 1
        await stage.evicted()
        assert stage.sockets == 2
        after = "return [object.number, ws.deserializeAttachment()[1].getTime(), ws.mark ?? null];"
        assert await say(a, after) == [2, 5, None]
        assert await say(b, WHO) == [2, [], {"path": "/b"}, "one"]
        await b.send(b"x" * 300_000)
        assert await b.recv() == "ArrayBuffer 300000"
    await until(lambda: not stage.sockets, "both are closed")


async def test_a_long_message_reaches_a_hibernated_object_and_comes_back(stage: Stage) -> None:
    async with stage.connect() as client:
        await stage.evicted()
        text = "é" * 1_500_000
        await client.send(f"return `{text}`;")
        assert json.loads(await client.recv()) == text


async def test_sockets_are_listed_newest_first_and_by_tag_oldest_first(stage: Stage) -> None:
    async with stage.connect("/1?tag=t"), stage.connect("/2?tag=t"), stage.connect("/3") as client:
        paths = "const of = (all) => all.map((each) => each.deserializeAttachment().path); "
        code = paths + 'return [of(ctx.getWebSockets()), of(ctx.getWebSockets("t")), of(ctx.getWebSockets("none"))];'
        expected = [["/3", "/2", "/1"], ["/1", "/2"], []]
        assert await say(client, code) == expected
        await stage.evicted()
        assert await say(client, code) == expected


async def test_automatic_responses_do_not_wake_the_object(stage: Stage) -> None:
    set_pair = 'ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong")); '
    time = "return ctx.getWebSocketAutoResponseTimestamp(ws)?.getTime() ?? null;"
    async with stage.connect() as client:
        assert await say(client, set_pair + time) is None
        await client.send("ping")
        assert await client.recv() == "pong"
        assert isinstance(await say(client, time), int)
        await stage.evicted()
        events = stage.runtime.hibernation.events
        for _ in range(3):
            await client.send("ping")
            assert await client.recv() == "pong"
        assert (stage.runtime.count(), stage.runtime.hibernation.events) == (0, events)
        pair = "const { request, response } = ctx.getWebSocketAutoResponse(); return [request, response];"
        assert await say(client, pair) == ["ping", "pong"]
        assert isinstance(await say(client, time), int)
        assert await say(client, "ctx.setWebSocketAutoResponse(); return ctx.getWebSocketAutoResponse();") is None
        assert await say(client, 'return "ping";') == "ping"


async def test_messages_of_one_socket_are_handled_one_after_the_other(stage: Stage) -> None:
    slow = "object.log = ['a1']; await new Promise((r) => setTimeout(r, 200)); object.log.push('a2');"
    async with stage.connect("/a") as a, stage.connect("/b") as b:
        await a.send(slow)
        await a.send("object.log.push('a3'); return object.log;")
        await asyncio.sleep(0.05)
        assert await say(b, "object.log.push('b'); return object.log;") == ["a1", "b"], "others do not wait"
        await a.recv()
        assert json.loads(await a.recv()) == ["a1", "b", "a2", "a3"]
        await a.send("ctx.waitUntil(new Promise((r) => setTimeout(r, 5000)));")
        await a.recv()
        assert await asyncio.wait_for(say(a, "return 1;"), 3) == 1, "waitUntil() does not hold back the next message"


async def test_a_handler_that_throws_keeps_the_socket(stage: Stage) -> None:
    async with stage.connect() as client:
        await client.send("throw new Error('oops');")
        assert await say(client, "return 1;") == 1
    records = await stage.node.logs("room")
    assert any(record["outcome"] == "exception" and "oops" in json.dumps(record) for record in records)


async def test_closes_of_clients_are_heard_and_answered(stage: Stage) -> None:
    async with stage.connect() as watcher:
        async with stage.connect() as client:
            await client.close(4321, "bye")
            assert (client.close_code, client.close_reason) == (4321, "bye")
        await stage.evicted()
        gone = await stage.connect().__aenter__()
        await stage.evicted()
        gone.transport.abort()
        await until(lambda: stage.sockets == 1, "the lost one is gone")
        closes = await say(watcher, "return object.closes;")
        assert closes == [[1006, "WebSocket disconnected without sending Close frame.", False, 3, True]]
        assert await say(watcher, "return ctx.getWebSockets().length;") == 1


async def test_an_object_closes_its_sockets(stage: Stage) -> None:
    async with stage.connect() as watcher, stage.connect("/x?tag=x") as client:
        code = """
          const [x] = ctx.getWebSockets("x");
          x.close(4000, "out");
          try { x.send("y"); } catch (error) { return [x.readyState, error.message]; }
        """
        assert await say(watcher, code) == [2, "Can't call WebSocket send() after close()."]
        await client.wait_closed()
        assert (client.close_code, client.close_reason) == (4000, "out")
        await until(lambda: stage.sockets == 1, "it is gone")
        assert await say(watcher, "return object.closes;") == [[4000, "out", True, 3, True]]


def dated(fields: dict[str, Any]) -> None:
    fields["compatibility_date"] = "2026-04-06"


async def test_before_2026_04_07_the_object_answers_a_close_itself() -> None:
    async with opened(change=dated) as stage, stage.connect() as watcher:
        answering = 'object.onClose = (ws) => ws.close(4001, "from the object"); return 1;'
        assert await say(watcher, answering) == 1
        client = await stage.connect().__aenter__()
        await client.close(4000, "from the client")
        assert (client.protocol.close_rcvd.code, client.protocol.close_rcvd.reason) == (4001, "from the object")
        assert (await say(watcher, "return object.closes;"))[0][:4] == [4000, "from the client", True, 2]
        await say(watcher, "object.onClose = null;")
        client = await stage.connect().__aenter__()
        await client.close(4000)
        assert client.protocol.close_rcvd is None, "without an answer of the object the connection is cut"


async def test_a_worker_may_be_the_client(stage: Stage) -> None:
    code = """
      const { webSocket } = await room.fetch("http://room/w", { headers: { Upgrade: "websocket" } });
      const heard = [];
      const event = (name) => new Promise((resolve) => webSocket.addEventListener(name, resolve, { once: true }));
      const closed = event("close").then(({ code, reason, wasClean }) => [code, reason, wasClean]);
      const next = () => event("message").then(({ data }) => data);
      webSocket.accept();
      webSocket.send("return [ctx.getWebSockets().length, ws.deserializeAttachment().path];");
      heard.push(await next());
      webSocket.send(new Uint8Array(200_000));
      heard.push(await next());
      webSocket.send('ws.close(4009, "enough");');
      return [...heard, await closed];
    """
    assert await stage.run(code, "/worker") == ['[1,"/w"]', "ArrayBuffer 200000", [4009, "enough", True]]
    await until(lambda: not stage.sockets, "it is gone")


async def test_errors_have_the_known_texts(stage: Stage) -> None:
    code = """
      const thrown = (run) => {
        try { return run() ?? null; } catch (error) { return `${error.name}: ${error.message}`; }
      };
      const timeout = (ms) => {
        ctx.setHibernatableWebSocketEventTimeout(ms);
        return ctx.getHibernatableWebSocketEventTimeout();
      };
      const accepted = () => { const [a, b] = new WebSocketPair(); a.accept(); return [a, b]; };
      const pair = () => new WebSocketPair()[0];
      const held = pair(); ctx.acceptWebSocket(held, ["t"]);
      const big = "x".repeat(2049);
      return [
        thrown(() => ctx.acceptWebSocket(accepted()[0])),
        thrown(() => ctx.acceptWebSocket(accepted()[1])),
        thrown(() => ctx.acceptWebSocket(pair(), Array.from({ length: 11 }, (_, i) => `${i}`))),
        thrown(() => ctx.acceptWebSocket(pair(), ["y".repeat(257)])),
        thrown(() => held.accept()),
        thrown(() => ctx.getTags(pair())),
        thrown(() => held.serializeAttachment("x".repeat(16384))),
        thrown(() => ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(big, ""))),
        thrown(() => ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("", big))),
        thrown(() => ctx.setHibernatableWebSocketEventTimeout(604800001)),
        timeout(100),
        timeout(0),
        thrown(() => ctx.getWebSocketAutoResponseTimestamp(held)),
        thrown(() => held.deserializeAttachment()),
        ctx.getTags(held),
      ];
    """
    assert await stage.run(code) == [
        "Error: Cannot call `acceptWebSocket()` if the WebSocket was already accepted via `accept()`",
        "Error: Cannot call `acceptWebSocket()` on this WebSocket because its pair has already been accepted or used in"
        " a Response.",
        "Error: a Hibernatable WebSocket cannot have more than 10 tags",
        f'Error: "{"y" * 257}" is longer than the max tag length (256 characters).',
        "TypeError: Can't accept() WebSocket after enabling hibernation.",
        "Error: only hibernatable websockets can have tags.",
        "Error: A WebSocket 'attachment' cannot be larger than 16384 bytes.'attachment' was 16390 bytes.",
        "RangeError: Request cannot be larger than 2048 bytes. A request of size 2049 was provided.",
        "RangeError: Response cannot be larger than 2048 bytes. A response of size 2049 was provided.",
        "Error: Event timeout should not exceed 604800000 ms.",
        100,
        None,
        None,
        None,
        ["t"],
    ]


async def closed(client: Any) -> tuple[int | None, str | None]:
    with pytest.raises(ConnectionClosed):
        while True:
            await client.recv()
    return client.close_code, client.close_reason


async def test_a_reset_closes_the_sockets_and_a_deploy_does_too(stage: Stage) -> None:
    async with stage.connect() as client:
        await client.send("ctx.abort('broken');")
        assert await closed(client) == (1011, "broken")
    async with stage.connect() as live, stage.connect() as asleep:
        assert await say(live, "return 1;") == 1
        await stage.evicted()
        await stage.node.deploy("room", SOURCE + "// new", **FIELDS)
        expected = 1012, "Durable Object reset because its code was updated."
        assert [await closed(live), await closed(asleep)] == [expected, expected]
    assert not stage.sockets


async def test_an_event_that_takes_too_long_resets_the_object(stage: Stage) -> None:
    async with stage.connect() as client:
        await say(client, "ctx.setHibernatableWebSocketEventTimeout(200);")
        await client.send("await new Promise((resolve) => setTimeout(resolve, 60_000));")
        assert await closed(client) == (1011, "Actor exceeded event execution time and was disconnected.")


async def test_a_message_waits_until_the_write_before_it_is_durable(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, waiting = stage.runtime.store, list[Any]()
    commit = store.commit
    async with stage.connect() as client, stage.connect() as other:
        assert await say(client, "return 1;") == await say(other, "return 1;") == 1

        def slow(key: ObjectKey, each: Commit, done: Done) -> None:
            commit(key, each, lambda error: waiting.append(lambda: done(error)))

        monkeypatch.setattr(store, "commit", slow)
        await client.send("await ctx.storage.put('n', 1); for (const each of ctx.getWebSockets()) each.send('sent');")
        await until(lambda: waiting, "the commit")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(other.recv(), 0.2)
        for report in waiting:
            report()
        assert [await other.recv(), await client.recv()] == ["sent", "sent"]


async def test_sockets_of_a_killed_engine_are_closed_and_hibernated_ones_wake_up_elsewhere(stage: Stage) -> None:
    async with stage.connect() as asleep:
        assert await say(asleep, "return object.number;") == 1
        await stage.evicted()
        node = stage.node.node
        before = node.supervisor.pids
        for pid in before:
            os.kill(pid, 9)
        await until(lambda: node.supervisor.pids and not set(before) & set(node.supervisor.pids), "another engine")
        assert await say(asleep, "return [object.number, ws.deserializeAttachment().path];") == [1, "/"]
        for pid in node.supervisor.pids:
            os.kill(pid, 9)
        assert await closed(asleep) == (1012, "Network connection lost.")
