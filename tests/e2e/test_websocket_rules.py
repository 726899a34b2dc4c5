"""WebSockets byte by byte: clients that break the rules, and clients at the edge of them."""

from __future__ import annotations

import select
import socket
import struct
import zlib
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from tests.raw_websocket import frame, handshake, read, request_for
from tests.running import Atoll

ECHO = """export default { async fetch(request) {
  if (request.headers.get("upgrade") !== "websocket") return new Response("no socket wanted");
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.addEventListener("message", ({ data }) => server.send(data));
  return new Response(null, { status: 101, webSocket: client });
} };"""


@pytest.fixture(scope="module")
def echo(atoll: Atoll) -> Atoll:
    atoll.deploy("ws-echo-raw", ECHO)
    return atoll


@pytest.mark.parametrize(
    ("attack", "code"),
    [
        (frame(1, b"hi", masked=False), 1002),
        (frame(3, b"reserved opcode"), 1002),
        (frame(9, b"x" * 126), 1002),  # a ping that is too long
        (frame(0, b"continues nothing"), 1002),
        (frame(1, b"a", fin=False) + frame(1, b"b"), 1002),  # a message inside a message
        (frame(1, b"\xff\xfe"), 1007),
        (frame(2, b"", length=1 << 40), 1009),
        (frame(8, struct.pack(">H", 1005)), 1002),
        (frame(8, b"\x03"), 1002),
        (frame(8, struct.pack(">H", 999)), 1002),
        (frame(8, struct.pack(">H", 5000)), 1002),
        (frame(8, struct.pack(">H", 1000) + b"\xff"), 1007),
        (frame(9, b"a ping in parts", fin=False), 1002),
        (frame(1, b"\xe2\x82", fin=False) + frame(0, b"no third byte"), 1007),
        (bytes([0xC1, 0x80]) + b"\0\0\0\0", 1002),  # a reserved bit without an extension
    ],
)
def test_a_client_that_breaks_the_protocol_is_closed_with_the_right_code(echo: Atoll, attack: bytes, code: int) -> None:
    with handshake(echo, "ws-echo-raw") as raw:
        raw.sendall(attack)
        data = b""
        while chunk := raw.recv(4096):
            data += chunk
        assert data[0] == 0x88 and struct.unpack(">H", data[2:4])[0] == code
    assert echo.get("ws-echo-raw").status == 200


def test_a_character_may_be_split_between_fragments(echo: Atoll) -> None:
    with handshake(echo, "ws-echo-raw") as raw:
        raw.sendall(
            frame(1, b"\xf0\x9f", fin=False) + frame(9, b"between") + frame(0, b"\x98", fin=False) + frame(0, b"\x80")
        )
        wanted = [b"\x8a\x07between", b"\x81\x04" + "\U0001f600".encode()]
        data = b""
        while len(data) < len(b"".join(wanted)):
            data += raw.recv(4096)
        assert data == b"".join(wanted)


def test_a_message_that_grows_endlessly_is_closed_with_1009(echo: Atoll) -> None:
    """200 MB of zeros in 200 KB, in one piece and in fragments."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = packer.compress(bytes(200 << 20)) + packer.flush(zlib.Z_SYNC_FLUSH)
    half = len(bomb) // 2
    compressed = 0x40
    for data in (
        frame(compressed | 2, bomb[:-4]),
        frame(compressed | 2, bomb[:half], fin=False) + frame(0, bomb[half:-4]),
    ):
        before = echo.memory_mb()
        with handshake(echo, "ws-echo-raw", Sec_WebSocket_Extensions="permessage-deflate") as raw:
            raw.sendall(data)
            said = b""
            while len(said) < 4 and (chunk := read(raw, 4096)):
                said += chunk
            assert said[0] == 0x88 and struct.unpack(">H", said[2:4])[0] == 1009
        assert echo.memory_mb() - before < 150
    assert echo.get("ws-echo-raw").status == 200


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Sec_WebSocket_Version": "8"}, 426),
        ({"Sec_WebSocket_Key": "short"}, 400),
        ({"Sec_WebSocket_Key": None}, 400),
    ],
)
def test_a_malformed_handshake_is_refused(echo: Atoll, changes: dict[str, Any], status: int) -> None:
    with socket.create_connection(("127.0.0.1", echo.port), 10) as raw:
        raw.sendall(request_for(echo, "ws-echo-raw", **changes))
        assert int(raw.recv(4096).split()[1]) == status


def test_a_flood_of_fragments_pings_and_sockets_does_not_harm_the_node(echo: Atoll) -> None:
    before = echo.memory_mb()
    sockets = [handshake(echo, "ws-echo-raw") for _ in range(100)]
    for raw in sockets:
        raw.sendall(frame(1, b"x", fin=False) + frame(0, b"", fin=False) * 500 + frame(9, b"p") * 100)
    for raw in sockets:
        raw.close()
    echo.wait_until(lambda: echo.pool()["in_flight"] == 0)
    assert echo.get("ws-echo-raw").status == 200
    assert echo.memory_mb() - before < 64


def test_pings_with_unread_answers_do_not_fill_the_memory(echo: Atoll) -> None:
    """Only the latest ping is answered, and too many of them close the connection."""
    before = echo.memory_mb()
    pings = frame(9, b"p" * 125) * 1000
    with handshake(echo, "ws-echo-raw") as raw:
        with pytest.raises(ConnectionError):
            while True:
                raw.sendall(pings)
        assert echo.memory_mb() - before < 32
    assert echo.get("ws-echo-raw").status == 200


@pytest.mark.parametrize(
    "flood",
    [frame(9, b"") * 1001, frame(10, b"x") * 1001, frame(1, b"x", fin=False) + frame(0, b"", fin=False) * 1024],
    ids=["pings", "pongs", "empty fragments"],
)
def test_a_flood_of_small_frames_is_closed_with_1008_and_a_reason(echo: Atoll, flood: bytes) -> None:
    with handshake(echo, "ws-echo-raw") as raw:
        raw.sendall(flood)
        data = b""
        while chunk := read(raw, 65536):
            data += chunk
        close = data[data.rindex(b"\x88") :]
        assert struct.unpack(">H", close[2:4])[0] == 1008
        assert b"pings and pongs in 10 s" in close or b"too many small fragments" in close


def test_unfinished_messages_of_one_tenant_are_bounded_and_the_largest_is_closed(echo: Atoll) -> None:
    """Twelve clients hold 30 MB each: those beyond 256 MB must try again later. A small client is unaffected."""
    large = frame(2, bytes(30 << 20), fin=False)
    with ExitStack() as stack:
        small = stack.enter_context(handshake(echo, "ws-echo-raw"))
        small.sendall(frame(1, b"small ", fin=False))
        clients = [stack.enter_context(handshake(echo, "ws-echo-raw")) for _ in range(12)]
        for client in clients:
            with suppress(ConnectionError):
                client.sendall(large)
        echo.wait_until(lambda: len(select.select(clients, [], [], 0)[0]) >= 4, 20)
        closed = [read(client, 4096) for client in select.select(clients, [], [], 0)[0]]
        assert all(not said or struct.unpack(">H", said[2:4])[0] == 1013 for said in closed)
        small.sendall(frame(0, b"message"))
        assert read(small, 4096) == b"\x81\x0dsmall message"


def test_a_plain_answer_to_an_upgrade_is_the_last_of_its_connection(atoll: Atoll) -> None:
    atoll.deploy("ws-refuses", "export default { fetch() { return new Response('no', { status: 403 }); } }")
    second = f"GET / HTTP/1.1\r\nHost: {atoll.host('ws-refuses')}\r\n\r\n".encode()
    for _ in range(
        100
    ):  # the second request comes before, while or after the answer is written: it never resets the connection
        with socket.create_connection(("127.0.0.1", atoll.port), 10) as raw:
            raw.sendall(request_for(atoll, "ws-refuses"))
            raw.sendall(second)
            answer = b"".join(iter(lambda: raw.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 403 ") and answer.endswith(b"\r\n\r\nno")
        assert answer.count(b"HTTP/1.1 ") == 1


def test_bytes_after_the_last_answer_of_a_connection_do_not_reset_it(atoll: Atoll) -> None:
    atoll.deploy("ws-refuses-too", "export default { fetch() { return new Response('no', { status: 403 }); } }")
    with socket.create_connection(("127.0.0.1", atoll.port), 10) as raw:
        raw.sendall(request_for(atoll, "ws-refuses-too"))
        answer = b"".join(iter(lambda: raw.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 403 ")
        for _ in range(3):  # a closed socket answers the first with a reset, and the next one fails
            raw.sendall(b"GET / HTTP/1.1\r\n")
            assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
