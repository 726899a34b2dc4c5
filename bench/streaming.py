"""Responses of 1 MB that are streamed from JavaScript under backpressure, over 8 connections.

One worker copies chunks of 16 KB; the other makes a fresh buffer of 64 KB for each `pull`. The raw echo does not
stream.
"""

from __future__ import annotations

from bench.costs import compared
from bench.harness import script
from bench.report import Options, Row, main

BODY = b"." * (1 << 20)


def run(options: Options) -> list[Row]:
    return [
        *compared("1 MB in 64 chunks of 16 KB", "stream", script("stream"), BODY, options, connections=8),
        *compared(
            "1 MB pulled in 16 fresh chunks of 64 KB", "stream", script("stream_pulled"), BODY, options,
            connections=8, goal_us=700,
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    main(run)
