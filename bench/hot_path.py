"""What Python does for a plain request, and nothing else: bytes of a client to CALL, RESPONSE to bytes for it.

A connection and an engine's link stand on transports that keep what is written, so neither the kernel nor an engine is
in the figure, which is CPU time of one thread: steady on a busy machine, where `hello` is not.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import uvloop

from atoll.broker import Broker
from atoll.engine.ledger import Ledger
from atoll.engine.pool import Pool
from atoll.front.bounds import Bounds
from atoll.front.connection import Connection
from atoll.front.shared import Shared
from atoll.observe.meter import Meter
from atoll.router import Router
from atoll.wire.codec import frame
from atoll.wire.generated import WIRE_HASH, Flag, Frame
from atoll.workers import Module, ModuleKind, Version
from bench.report import Options, Row, main

BATCH = 32  # requests of one turn of the loop: as many connections as `hello` has
REQUEST = b"GET / HTTP/1.1\r\nHost: hello.localhost:8080\r\n\r\n"
OTHERS = [b"GET /%d HTTP/1.1\r\nHost: hello.localhost:8080\r\nAccept: */*\r\n\r\n" % turn for turn in range(2)]
ANSWER = (200).to_bytes(2, "little") + b"\x01\0" + b"\x09\0\0\0"


class Tap:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None

    def set_write_buffer_limits(self, high: int) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


def response(head: bytes, body: bytes) -> bytes:
    return ANSWER + len(head).to_bytes(4, "little") + head + body


async def measure(requests: list[bytes], seconds: float) -> float:
    """Microseconds of CPU time per request: the best of many short rounds."""
    loop = asyncio.get_running_loop()
    meter = Meter()

    def skim(version: Version, outcome: int, status: int, cpu_us: int, wall_us: int) -> bool:
        meter.count(version, outcome, status, cpu_us, wall_us)
        return True

    pool = Pool(Broker(()), meter.record, skim=skim)
    version = Version("version_1", "worker_1", "hello", "t", (Module("w.js", ModuleKind.ESM, b""),), "w.js")
    router = Router()
    router.put("hello", version)
    session = pool.session(pool.cells.shared, Ledger())
    engine = Tap()
    session.link.connection_made(cast(asyncio.Transport, engine))
    hello = b'{"wire":"%b","v8":"1","ops":[]}' % WIRE_HASH.encode()
    session.link.data_received(frame(Frame.HELLO, payload=hello))
    pool.add(session)
    shared = Shared(cast(Any, pool), router, None, Bounds())
    shared.tick(loop.time(), time.time())
    clients = [Tap() for _ in range(BATCH)]
    connections = []
    for client in clients:
        connections.append(Connection(shared))
        connections[-1].connection_made(cast(asyncio.Transport, client))
    payload = response(b"content-type: text/plain;charset=UTF-8\r\n", b"Hello World!")

    async def turn(number: int) -> None:
        request = requests[number % len(requests)]
        for connection in connections:
            connection.data_received(request)
        await asyncio.sleep(0)
        session.link.data_received(answers)
        await asyncio.sleep(0)

    for connection in connections:
        connection.data_received(requests[0])
    session.link.data_received(frame(Frame.LOADED, 1, payload=b'{"handlers":["fetch"],"startup_ms":1}'))
    numbers = list(session.calls.calls)  # ids are used again, so one batch of answers is right for every turn
    answers = b"".join(frame(Frame.RESPONSE, 1, each, payload, Flag.END | Flag.DONE) for each in numbers)
    session.link.data_received(answers)
    await asyncio.sleep(0)
    best = float("inf")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.thread_time_ns()
        for number in range(20):
            await turn(number)
        best = min(best, (time.thread_time_ns() - began) / (20 * BATCH) / 1000)
        engine.written.clear()
        for client in clients:
            assert client.written[-1].startswith(b"HTTP/1.1 200 OK\r\n"), "every request is answered"
            client.written.clear()
    session.link.close()
    return best


def run(options: Options) -> list[Row]:
    same = uvloop.run(measure([REQUEST], options.seconds / 2))
    other = uvloop.run(measure(OTHERS, options.seconds / 2))
    return [
        Row("a request like the last one, Python alone", "us", {"atoll": same}),
        Row("a request of another path, Python alone", "us", {"atoll": other}),
    ]


if __name__ == "__main__":
    main(run)
