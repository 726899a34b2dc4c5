"""The load of `atoll bench`: connections that each send a request, wait for the whole response, and send the next.

The parser is llhttp, as on the other side. Durations are counted in buckets of 2 %, so a run of any length takes little
memory. A response counts once its last byte is here.
"""

from __future__ import annotations

import asyncio
import math
import resource
import ssl
import time
from collections import Counter
from typing import Any, NamedTuple, cast

import httptools

GROWTH = 1.02  # of the buckets
LONGEST_BODY = 1 << 40
CONNECT_SECONDS = 5.0


class Aim(NamedTuple):
    """What is sent, and where."""

    address: str
    port: int
    tls: ssl.SSLContext | None
    host: str
    request: bytes  # one request, as bytes
    is_head: bool


class LoadBounds(NamedTuple):
    connections: int
    seconds: float
    requests: int  # 0: as many as fit into the time
    timeout: float


class Durations:
    """Microseconds, in buckets whose width grows with them."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.total = 0
        self.count = 0
        self.least = math.inf
        self.most = 0.0

    def add(self, us: float) -> None:
        self.counts[int(math.log(max(us, 1.0), GROWTH))] += 1
        self.total += int(us)
        self.count += 1
        self.least = min(self.least, us)
        self.most = max(self.most, us)

    def quantile(self, share: float) -> float:
        """The duration within which this share ended, in ms, at most 2 % too long."""
        wanted, seen = share * self.count, 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= wanted:
                return min(GROWTH ** (bucket + 1), self.most) / 1000
        return self.most / 1000

    def bars(self) -> list[tuple[float, int]]:
        """Counts up to 0.1, 0.2, 0.5, 1, 2, 5 … ms, without empty ones at both ends."""
        bounds = [step * 10**power for power in range(2, 9) for step in (1, 2, 5)]  # us
        sums = [0] * (len(bounds) + 1)
        for bucket, count in self.counts.items():
            us = GROWTH ** (bucket + 0.5)
            sums[next((i for i, bound in enumerate(bounds) if us <= bound), len(bounds))] += count
        found = [(bound / 1000, count) for bound, count in zip([*bounds, math.inf], sums, strict=True)]
        used = [i for i, (_, count) in enumerate(found) if count]
        return found[used[0] : used[-1] + 1] if used else []


class LoadResult:
    def __init__(self) -> None:
        self.durations = Durations()
        self.statuses: Counter[int] = Counter()
        self.errors: Counter[str] = Counter()
        self.received = 0  # bytes
        self.seconds = 0.0
        self.cpu_seconds = 0.0  # of this process

    @property
    def answered(self) -> int:
        return self.durations.count


class Load:
    """Runs until the time is over, all requests are answered, or nothing answers any more."""

    def __init__(self, aim: Aim, bounds: LoadBounds) -> None:
        self.aim = aim
        self.bounds = bounds
        self.result = LoadResult()
        self.left = bounds.requests or None  # requests that are yet to be sent; None: no bound
        self.is_over = False
        self._done = asyncio.Event()
        self._open = 0

    async def run(self) -> LoadResult:
        loop = asyncio.get_running_loop()
        used = resource.getrusage(resource.RUSAGE_SELF)
        began = time.perf_counter()
        timer = loop.call_later(self.bounds.seconds, self.end)
        tasks = [loop.create_task(self._keep_busy()) for _ in range(self.bounds.connections)]
        self._open = len(tasks)
        await self._done.wait()
        timer.cancel()
        self.is_over = True
        self.result.seconds = time.perf_counter() - began
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        now = resource.getrusage(resource.RUSAGE_SELF)
        self.result.cpu_seconds = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        return self.result

    def end(self) -> None:
        self._done.set()

    def take(self) -> bool:
        """Whether one more request is to be sent."""
        if self.is_over or self.left == 0:
            return False
        if self.left is not None:
            self.left -= 1
        return True

    async def _keep_busy(self) -> None:
        """One connection at a time. After an error the next one waits a little: a dead server is not hit."""
        try:
            while not self.is_over and self.left != 0:
                sender = LoadSender(self)
                try:
                    async with asyncio.timeout(CONNECT_SECONDS):
                        await asyncio.get_running_loop().create_connection(
                            lambda sender=sender: cast(asyncio.Protocol, sender),
                            self.aim.address,
                            self.aim.port,
                            ssl=self.aim.tls,
                            server_hostname=self.aim.host if self.aim.tls is not None else None,
                        )
                except (OSError, TimeoutError, asyncio.CancelledError) as error:
                    if isinstance(error, asyncio.CancelledError):
                        raise
                    self.result.errors[kind_of(error)] += 1
                    if self.left is not None:
                        self.left = max(self.left - 1, 0)
                    await asyncio.sleep(0.1)
                    continue
                await sender.closed
                if sender.failed:
                    await asyncio.sleep(0.01)
        finally:
            self._open -= 1
            if not self._open:
                self.end()


class LoadSender:
    """An asyncio.Protocol: one request at a time on one connection."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._result = load.result
        self._parser: Any = None
        self._began = 0.0
        self._waits = False
        self._has_end = False  # the head of the response says where its body ends
        self._is_in_body = False
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.failed = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._next()

    def _next(self) -> None:
        if self._transport.is_closing():
            return
        if not self._load.take():
            self._transport.close()
            return
        self._parser = httptools.HttpResponseParser(self)
        self._waits = True
        self._has_end = self._is_in_body = False
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._timer = loop.call_later(self._load.bounds.timeout, self._look)
        self._began = time.perf_counter()
        self._transport.write(self._load.aim.request)

    def _look(self) -> None:
        """One timer for all requests of the connection."""
        left = self._load.bounds.timeout - (time.perf_counter() - self._began)
        if self._waits and left <= 0:
            self._fail("no answer in time")
            self._transport.abort()
        else:
            self._timer = asyncio.get_running_loop().call_later(max(left, 0.01), self._look)

    def data_received(self, data: bytes) -> None:
        self._result.received += len(data)
        if not self._waits:
            self._fail("bytes that nobody asked for")
            self._transport.abort()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if self._waits:
                self._fail("not HTTP")
            self._transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._has_end = True

    def on_headers_complete(self) -> None:
        self._is_in_body = self._parser.get_status_code() >= 200
        if self._load.aim.is_head:
            self.on_message_complete()

    def on_message_complete(self) -> None:
        if not self._waits:
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            return
        self._waits = False
        if not self._load.is_over:
            self._result.durations.add((time.perf_counter() - self._began) * 1e6)
            self._result.statuses[status] += 1
        if self._parser.should_keep_alive():
            asyncio.get_running_loop().call_soon(self._next)
        else:
            self._transport.close()

    def _fail(self, kind: str) -> None:
        self._waits = False
        self.failed = True
        if not self._load.is_over:
            self._result.errors[kind] += 1

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._waits and error is None and self._is_in_body and not self._has_end:
            self.on_message_complete()  # a body without a length ends with its connection
        if self._waits:
            self._fail("closed before the answer" if error is None else kind_of(error))
        if not self.closed.done():
            self.closed.set_result(None)

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


def kind_of(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no connection in time"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "connection reset"
    if isinstance(error, ssl.SSLError):
        return "TLS failed"
    return (getattr(error, "strerror", None) or type(error).__name__).lower()
