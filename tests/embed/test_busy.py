"""After many requests: no objects are left, and every request is counted."""

from __future__ import annotations

import asyncio
import gc

from atoll import Atoll
from atoll.engine.calls.call import Call
from atoll.front.exchange import ClientExchange
from atoll.observe.table import Question
from atoll.wire.generated import Outcome

COUNT = 300


async def ask(port: int, count: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(count):
        writer.write(b"GET / HTTP/1.1\r\nHost: hello.localhost\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        await reader.readuntil(b"hello")
    writer.close()
    await writer.wait_closed()


async def test_requests_leave_nothing_for_the_garbage_collector() -> None:
    async with Atoll(port=0) as atoll:
        await atoll.deploy("hello", 'export default { fetch: () => new Response("hello") }')
        await ask(atoll.port, 10)
        gc.collect()
        gc.disable()
        try:
            await ask(atoll.port, COUNT)
            left = [each for each in gc.get_objects() if isinstance(each, Call | ClientExchange)]
        finally:
            gc.enable()
        assert len(left) < 10


async def test_every_call_is_counted_even_without_a_record() -> None:
    async with Atoll(port=0, log_rate=10) as atoll:
        worker = await atoll.deploy("hello", 'export default { fetch: () => new Response("hello") }')
        await ask(atoll.port, COUNT)
        node = atoll.node
        dropped = node.logs.dropped(worker.facts["id"])
        assert 0 < dropped < COUNT
        assert node.meter.outcomes[Outcome.OK] == COUNT
        page = await node.logs.find(Question(worker.facts["id"], limit=COUNT))
        assert len(page.entries) + dropped == COUNT
