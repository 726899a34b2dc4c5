"""The Python part of a plain request alone: bytes of a client to CALL, RESPONSE to bytes for the client.

A connection and an engine's link run on transports that keep what is written, so neither the kernel nor an engine is
part of the figure. The figure is CPU time of one thread: steady on a busy machine, unlike `hello`.

There are four kinds of traffic, because clients differ. A load generator repeats one request, an API client repeats its
headers, browsers and crawlers of many sites repeat little, and a proxy mixes the requests of many clients on one
connection.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any, cast

import uvloop

from atoll.broker import Broker
from atoll.engine.link.ledger import Ledger
from atoll.engine.pool import Pool
from atoll.front.connection import ClientConnection
from atoll.front.options import FrontOptions
from atoll.front.peer import Proxies
from atoll.front.shared import Shared
from atoll.observe.meter import Meter
from atoll.router import Router
from atoll.wire.codec import frame
from atoll.wire.generated import WIRE_HASH, Flag, Frame
from atoll.workers import Module, ModuleKind, Version
from bench.report import Options, Row, main

BATCH = 32  # requests per turn of the loop: `hello` has as many connections
REQUEST = b"GET / HTTP/1.1\r\nHost: hello.localhost:8080\r\n\r\n"
OTHERS = [b"GET /%d HTTP/1.1\r\nHost: hello.localhost:8080\r\nAccept: */*\r\n\r\n" % turn for turn in range(2)]
HOSTS = [f"shop{number}.example.com" for number in range(100)]
VARIED = 997  # different requests; a prime, so that each connection gets all of them
BROWSER = (
    b"GET %b HTTP/1.1\r\nHost: %b\r\n"
    b"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0\r\n"
    b"Accept: %b\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n"
    b"Referer: https://%b/\r\nCookie: session=%016x\r\n%b\r\n"
)
ACCEPTS = (
    b"text/html,application/xhtml+xml,*/*;q=0.8",
    b"application/json",
    b"image/avif,image/webp,*/*;q=0.8",
    b"*/*",
)
ANSWER = (200).to_bytes(2, "little") + b"\x01\0" + b"\x09\0\0\0"


class Tap:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None

    def set_write_buffer_limits(self, high: int, low: int = 0) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


def response(head: bytes, body: bytes) -> bytes:
    return ANSWER + len(head).to_bytes(4, "little") + head + body


def varied(*, proxied: bool) -> list[bytes]:
    """Requests of browsers to random hosts and paths, all different. Behind a proxy they carry the client's address."""
    chance = random.Random(7)
    requests = []
    for _ in range(VARIED):
        host = chance.choice(HOSTS).encode()
        path = b"/items/%d?page=%d" % (chance.randrange(100_000), chance.randrange(100))
        address = bytes(".".join(str(chance.randrange(1, 255)) for _ in range(4)), "ascii")
        forwarded = b"X-Forwarded-For: %b\r\nX-Forwarded-Proto: https\r\n" % address if proxied else b""
        accept = chance.choice(ACCEPTS)
        requests.append(BROWSER % (path, host, accept, host, chance.getrandbits(64), forwarded))
    return requests


async def measure(requests: list[bytes], seconds: float, proxies: Proxies | None = None) -> float:
    """Microseconds of CPU time per request: the best of many short rounds."""
    loop = asyncio.get_running_loop()
    meter = Meter()

    def skim(version: Version, outcome: int, status: int, cpu_us: int, wall_us: int) -> bool:
        meter.count(version, outcome, status, cpu_us, wall_us)
        return True

    pool = Pool(Broker(()), meter.record, skim=skim)
    version = Version("version_1", "worker_1", "hello", "t", (Module("w.js", ModuleKind.ESM, b""),), "w.js")
    router = Router()
    router.put("hello", version, HOSTS)
    session = pool.session(pool.loader.groups.shared, Ledger())
    engine = Tap()
    session.link.connection_made(cast(asyncio.Transport, engine))
    hello = b'{"wire":"%b","v8":"1","ops":[]}' % WIRE_HASH.encode()
    session.link.data_received(frame(Frame.HELLO, payload=hello))
    pool.add(session, pool.loader.groups.shared)
    shared = Shared(cast(Any, pool), router, None, FrontOptions(proxies=proxies or Proxies()))
    shared.tick(loop.time(), time.time())
    clients = [Tap() for _ in range(BATCH)]
    connections = []
    for client in clients:
        connections.append(ClientConnection(shared))
        connections[-1].connection_made(cast(asyncio.Transport, client))
    payload = response(b"content-type: text/plain;charset=UTF-8\r\n", b"Hello World!")

    async def turn(number: int) -> None:
        for place, connection in enumerate(connections):
            connection.data_received(requests[(number + place * 31) % len(requests)])
        await asyncio.sleep(0)
        session.link.data_received(answers)
        await asyncio.sleep(0)

    for connection in connections:
        connection.data_received(requests[0])
    session.link.data_received(frame(Frame.LOADED, 1, payload=b'{"handlers":["fetch"],"startup_ms":1}'))
    numbers = list(session.calls.calls)  # ids are reused, so one batch of answers fits every turn
    answers = b"".join(frame(Frame.RESPONSE, 1, each, payload, Flag.END | Flag.DONE) for each in numbers)
    session.link.data_received(answers)
    await asyncio.sleep(0)
    best = float("inf")
    number = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.thread_time_ns()
        for _ in range(20):
            number += 1
            await turn(number)
        best = min(best, (time.thread_time_ns() - began) / (20 * BATCH) / 1000)
        engine.written.clear()
        for client in clients:
            assert client.written[-1].startswith(b"HTTP/1.1 200 OK\r\n"), "every request is answered"
            client.written.clear()
    session.link.close()
    return best


def run(options: Options) -> list[Row]:
    seconds = options.seconds / 4
    trusted = Proxies(("127.0.0.1",))
    figures = {
        "a request like the last one, Python alone": uvloop.run(measure([REQUEST], seconds)),
        "a request of another path, Python alone": uvloop.run(measure(OTHERS, seconds)),
        "requests of random hosts and paths, Python alone": uvloop.run(measure(varied(proxied=False), seconds)),
        "the same behind a proxy, Python alone": uvloop.run(measure(varied(proxied=True), seconds, trusted)),
    }
    return [Row(what, "us", {"atoll": figure}) for what, figure in figures.items()]


if __name__ == "__main__":
    main(run)
