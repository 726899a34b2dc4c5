"""A bucket of 1,000,000 objects: lists of 1,000 as a worker sees them, and the start of the node.

The rows are inserted by SQL into the index of a stopped node, with all its triggers and in the form in which a put
writes them, because a million puts would take too long. The objects are small, so their contents are in the index too.
A node with an empty bucket is started in turn with it.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import apsw

from bench.harness import Atoll, BenchError, fetch, script
from bench.report import Options, Row, main

FOLDERS, FILES = 1_000, 1_000
OBJECTS = FOLDERS * FILES
MOST_MS = 20.0
LISTS = {
    "/all": "the first 1,000",
    "/late": "1,000 near the end",
    "/metadata": "1,000 with metadata",
    "/prefix": "1,000 under a prefix",
    "/groups": "1,000 groups by delimiter, of 1,000 keys each",
}
NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ? - 1) "
KEY = f"CAST(printf('dir-%04d/%04d', i / {FILES}, i % {FILES}) AS BLOB)"
FILL_BODIES = NUMBERS + "INSERT INTO bodies (content, body) SELECT i + 1, CAST(printf('%064d', i) AS BLOB) FROM n"
FILL_OBJECTS = (
    f"{NUMBERS}INSERT INTO objects (bucket, key, version, size, etag, uploaded, storage_class, checksums, content,"
    f" part_size, cost, http, custom) SELECT (SELECT id FROM buckets WHERE name = 'bench'), {KEY},"
    " lower(hex(randomblob(16))), 64, lower(hex(randomblob(16))), 1700000000000 + i, 'Standard',"
    " '{\"md5\":\"' || lower(hex(randomblob(16))) || '\"}', i + 1, 0, 80 + 64,"
    ' \'{"contentType":"text/plain"}\', \'{"owner":"bench"}\' FROM n'
)


class AtollBucket(Atoll):
    """Atoll, with a worker that has a bucket."""

    def __enter__(self) -> AtollBucket:
        super().__enter__()
        self.deploy({"lists": script("r2_size")}, bindings=[{"type": "r2", "name": "R2", "bucket": "bench"}])
        return self

    def fill(self) -> None:
        self.stop()
        connection = apsw.Connection(str(Path(self.folder.name) / "data/r2/index.db"))
        with connection:
            connection.execute(FILL_BODIES, (OBJECTS,))
            connection.execute(FILL_OBJECTS, (OBJECTS,))
        connection.close()
        self.start()


def start_seconds(server: Atoll) -> float:
    server.stop()
    began = time.monotonic()
    server.start()
    return time.monotonic() - began


def list_ms(server: Atoll, path: str, times: int) -> float:
    """The median of lists one after the other, with the call of the worker around them."""
    port, host = server.address("lists")
    taken = []
    for _ in range(times):
        began = time.monotonic()
        status, answer = fetch(port, host, path)
        taken.append((time.monotonic() - began) * 1000)
        if status != 200 or answer != b"1000":
            raise BenchError(f"{path} answered {status} {answer[:200]!r}")
    return statistics.median(taken)


def run(options: Options) -> list[Row]:
    rows = []
    with AtollBucket({}) as server, AtollBucket({}) as empty:
        server.fill()
        for path, what in LISTS.items():
            list_ms(server, path, 5)
            taken = list_ms(server, path, 15 * options.rounds)
            is_page = path != "/groups"  # a group is a search of its own
            bar, met = (f"{MOST_MS:g} ms", taken < MOST_MS) if is_page else ("", None)
            rows.append(Row(f"R2 list of {OBJECTS:,} objects: {what}", "ms", {"atoll": taken}, bar, met))
        starts: dict[Atoll, list[float]] = {server: [], empty: []}
        for _ in range(options.rounds):
            for each in (empty, server):
                starts[each].append(start_seconds(each))
        few, many = statistics.median(starts[empty]), statistics.median(starts[server])
        rows.append(Row("start of a node with an empty bucket", "s", {"atoll": few}))
        bar = "as with an empty one, within a fifth"
        rows.append(Row(f"start with {OBJECTS:,} objects", "s", {"atoll": many}, bar, many < 1.2 * few))
    return rows


if __name__ == "__main__":
    main(run)
