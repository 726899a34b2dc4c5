"""Logs: a query over a million records, and the cost of a live listener and of log records for a busy worker."""

from __future__ import annotations

import asyncio
import http.client
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw

from atoll.observe.processes import use_of
from atoll.observe.store import LOGS_FILE, LogStore
from atoll.observe.table import Question
from atoll.wire.generated import Outcome
from bench.harness import Atoll, BenchError, script
from bench.load import wrk
from bench.report import Options, Row, main

RECORDS = 1_000_000
WORKERS = 20
START = 1_800_000_000_000  # ms since 1970; the records are a tenth of a second apart
FILL = f"""
WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {RECORDS - 1})
INSERT INTO records SELECT NULL, 'worker' || (n % {WORKERS}), {START} + n * 100, n % 97 = 7, iif(n % 97 = 7, 4, -1),
  'version1', 200, 150, 900, 'http://shop.localhost/item/' || n,
  '["fetch","","GET",{{"host":"shop.localhost","user-agent":"curl/8","accept":"*/*"}},[],false,null]', 300 FROM numbers
"""


def run(options: Options) -> list[Row]:
    return [*questions(), *costs(options)]


def control_figures(options: Options) -> list[Row]:
    """Two rows of the control plane: a query by worker and time, and the cost of a live listener."""
    return [questions()[0], costs(options)[1]]


# Queries


def questions() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="atoll-bench-") as folder:
        times = asyncio.run(ask(Path(folder)))
    bar = "50"
    return [
        Row(
            f"logs, {what}, {RECORDS:,} records",
            "ms",
            {"atoll": ms},
            bar=bar if must else "",
            met=ms <= 50 if must else None,
        )
        for what, ms, must in times
    ]


async def ask(folder: Path) -> list[tuple[str, float, bool]]:
    await LogStore(folder).close()  # makes the tables
    connection = apsw.Connection(str(folder / LOGS_FILE))
    with connection:
        connection.execute(FILL)
    connection.close()
    logs = LogStore(folder, days=36_500)
    middle = START + RECORDS * 50
    hour = {"since": middle, "until": middle + 3_600_000}
    try:
        return [
            ("by worker and hour", await median_ms(logs, hour), True),
            ("newest of a worker", await median_ms(logs, {}), True),
            ("failures of a worker and hour", await median_ms(logs, hour | {"outcome": int(Outcome.EXCEPTION)}), False),
            ("a text in one record of a worker", await median_ms(logs, {"text": f"item/{RECORDS // 2}"}), False),
        ]
    finally:
        await logs.close()


async def median_ms(logs: LogStore, fields: Mapping[str, object]) -> float:
    times = []
    for turn in range(21):
        question = Question(f"worker{turn % WORKERS}", limit=100, **fields)  # type: ignore[arg-type]
        start = time.perf_counter()
        found = await logs.find(question)
        times.append((time.perf_counter() - start) * 1000)
        if not found.entries and "text" not in fields:
            raise BenchError(f"the query {fields} found nothing")
    return statistics.median(times)


# The cost for a busy worker


def costs(options: Options) -> list[Row]:
    """CPU time of the node per request, with and without. Each pair is compared; the two take turns at going first.

    Each node has one engine: a hot worker that spreads to a second engine changes the figure more than the measured
    cost does.
    """
    workers = {"hello": script("hello")}
    with ExitStack() as stack:
        atoll = stack.enter_context(Atoll(workers, engines=1))
        quiet = stack.enter_context(Atoll(workers, engines=1, log_rate=0))

        def plain() -> float:
            return us_per_request(atoll, options.seconds)

        def listened() -> float:
            with listener(atoll, "hello"):
                return us_per_request(atoll, options.seconds)

        def unlogged() -> float:
            return us_per_request(quiet, options.seconds)

        for warm_up in (plain, unlogged):
            warm_up()
        tails, records = [], []
        for turn in range(3 * options.rounds):
            first, second, third = (plain, listened, unlogged) if turn % 2 else (unlogged, listened, plain)
            each = first(), second(), third()
            without, with_all = (each[2], each[0]) if turn % 2 else (each[0], each[2])
            tails.append(each[1] / with_all)
            records.append(with_all / without)
    tail = (statistics.median(tails) - 1) * 100
    return [
        Row("hello, CPU of the node", "us/req", {"atoll": with_all}),
        Row("cost of a live listener on a busy worker", "% of CPU", {"atoll": tail}, bar="at most 5", met=tail <= 5),
        Row("hello, cost of keeping log records", "% of CPU", {"atoll": (statistics.median(records) - 1) * 100}),
    ]


def us_per_request(atoll: Atoll, seconds: int) -> float:
    port, host = atoll.address("hello")
    before = cpu(atoll)
    load = wrk(port, host, "/", connections=32, seconds=seconds)
    if load.failures:
        raise BenchError(load.failures)
    return (cpu(atoll) - before) / (load.rate * seconds) * 1e6


def cpu(atoll: Atoll) -> float:
    assert atoll.process is not None
    use = use_of(atoll.process.pid)
    if use is None:
        raise BenchError("the node has gone")
    return use.cpu_seconds


@contextmanager
def listener(atoll: Atoll, worker: str) -> Iterator[None]:
    """A client that reads the live stream of a worker."""
    connection = http.client.HTTPConnection("127.0.0.1", atoll.port, timeout=60)
    connection.request("GET", f"/api/workers/{worker}/logs/live", headers={"Host": "localhost"})
    response = connection.getresponse()
    if response.status != 200:
        raise BenchError(f"the live stream answered {response.status}")
    response.readline()
    stopped = threading.Event()

    def read() -> None:
        try:
            while response.readline():
                pass
        except (OSError, ValueError, AttributeError):
            if not stopped.is_set():
                raise

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        if connection.sock is not None:
            connection.sock.shutdown(2)
        thread.join()
        connection.close()


if __name__ == "__main__":
    main(run)
