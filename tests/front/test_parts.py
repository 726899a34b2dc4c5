"""Long parts of a body that come in one turn of the event loop."""

from __future__ import annotations

import asyncio

from packets import Tap
from scripted import PLAIN, ScriptedCall, ScriptedPool, version

from atoll.errors import Failure
from atoll.front.connection import ClientConnection
from atoll.front.options import FrontOptions
from atoll.front.shared import MAX_PART_BYTES, Shared
from atoll.router import Router
from atoll.wire.generated import CHUNK, ErrorCode

GET = b"GET / HTTP/1.1\r\nHost: w.localhost\r\n\r\n"


class WritesOf(Tap):
    """A transport that tells single writes apart. With `fills`, each of them fills its buffer."""

    def __init__(self, connection: ClientConnection, *, fills: bool = False) -> None:
        super().__init__()
        self.connection = connection
        self.fills = fills
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writelines([data])

    def writelines(self, list_of_data: object) -> None:
        self.writes.append(b"".join(list_of_data))  # type: ignore[arg-type]
        if self.fills:
            self.connection.pause_writing()


def streaming(*, fills: bool = False) -> tuple[ClientConnection, WritesOf, ScriptedCall]:
    """A connection whose response has begun, the writes to its client, and the call."""
    pool, router = ScriptedPool(), Router()
    pool.script = None
    router.put("w", version("w"))
    connection = ClientConnection(Shared(pool, router, None, FrontOptions()))
    writes = WritesOf(connection, fills=fills)
    connection.connection_made(writes)
    connection.data_received(GET)
    (call,) = pool.calls
    call.caller.on_response(200, PLAIN, b"", False)
    return connection, writes, call


async def test_long_parts_of_one_turn_leave_in_one_write_and_are_granted_after_it() -> None:
    _, client, call = streaming()
    parts = [bytes([letter]) * CHUNK for letter in b"ab"]
    for part in parts:
        call.caller.on_body(part, False)
    assert (client.writes, call.granted) == ([], 0)
    await asyncio.sleep(0)
    (write,) = client.writes
    assert write.endswith(b"\r\n\r\n" + b"".join(b"10000\r\n%b\r\n" % part for part in parts))
    assert call.granted == 2 * CHUNK
    call.caller.on_body(parts[0], False)
    call.caller.on_body(b"", True)
    await asyncio.sleep(0)
    assert client.writes[1:] == [b"10000\r\n%b\r\n0\r\n\r\n" % parts[0]]


async def test_parts_that_fill_the_buffer_of_a_client_are_granted_when_it_reads() -> None:
    connection, client, call = streaming(fills=True)
    for _ in range(2):
        call.caller.on_body(bytes(CHUNK), False)
    await asyncio.sleep(0)
    assert len(client.writes) == 1 and call.granted == 0
    connection.resume_writing()
    assert call.granted == 2 * CHUNK


async def test_parts_of_a_turn_do_not_wait_when_they_are_many() -> None:
    _, client, call = streaming()
    for _ in range(MAX_PART_BYTES // CHUNK):
        call.caller.on_body(bytes(CHUNK), False)
    assert not client.writes
    call.caller.on_body(bytes(CHUNK), False)
    assert len(client.writes[0]) > MAX_PART_BYTES


async def test_parts_before_a_failure_reach_the_client() -> None:
    """What was sent of a broken response is there, and its end is not."""
    _, client, call = streaming()
    call.caller.on_body(b"x" * CHUNK, False)
    call.caller.on_failure(Failure(ErrorCode.STREAM, "broke"))
    (write,) = client.writes
    assert write.endswith(b"x\r\n") and client.is_closed
