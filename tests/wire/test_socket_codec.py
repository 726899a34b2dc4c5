"""The protocol of WebSockets without a socket: what a hostile client may make Python keep."""

from __future__ import annotations

import tracemalloc

from atoll.wire.sockets import SERVER, Codec

TEXT = b"\x01\x81" + bytes(4) + b"x"  # the beginning of a message, masked with zeros
NOTHING_MORE = b"\x00\x80" + bytes(4)  # a fragment without content
END = b"\x80\x80" + bytes(4)


def test_fragments_without_content_take_no_memory() -> None:
    codec = Codec(SERVER, [])
    codec.receive(TEXT)
    codec.receive(NOTHING_MORE * 1000)
    tracemalloc.start()
    try:
        for _ in range(50):
            assert codec.receive(NOTHING_MORE * 1000) == b""
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 100_000
    assert codec.receive(END).endswith(b"x")
