"""WebSocket codecs for tests: ours, and one of the `websockets` package as the other side."""

from __future__ import annotations

import struct

from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, SERVER, Protocol

from atoll.wire.sockets import Codec


def served(*, deflate: bool = False) -> Codec:
    """Our codec as a server."""
    return Codec(False, 15, 15) if deflate else Codec(False, 0, 0)


def dialled(*, deflate: bool = False) -> Codec:
    """Our codec as a client."""
    return Codec(True, 15, 15) if deflate else Codec(True, 0, 0)


def receive(codec: Codec, data: bytes, now: float = 0.0) -> bytes:
    """Everything that the worker receives from these bytes."""
    codec.feed(data)
    found: list[bytes | bytearray] = []
    while not codec.is_hungry:
        codec.step(now)
        found += codec.take()
    return b"".join(found)


def message(kind: int, payload: bytes) -> bytes:
    """A message in the form that engines send and receive."""
    return struct.pack("<BI", kind, len(payload)) + payload


class Other:
    """The other side, from the `websockets` package."""

    def __init__(self, *, is_client: bool, deflate: bool = False) -> None:
        self.protocol = Protocol(CLIENT if is_client else SERVER, max_size=None)
        self.protocol.extensions = [PerMessageDeflate(True, True, 15, 15)] if deflate else []
        self.kind = 0
        self.content = b""

    def sends(self, payload: bytes, *, text: bool, pieces: int = 1) -> bytes:
        """The bytes of a message in this number of fragments."""
        size = len(payload) // pieces + 1
        parts = [payload[at : at + size] for at in range(0, len(payload), size)] or [b""]
        first = self.protocol.send_text if text else self.protocol.send_binary
        first(parts[0], fin=len(parts) == 1)
        for at, part in enumerate(parts[1:], 2):
            self.protocol.send_continuation(part, fin=at == len(parts))
        return b"".join(self.protocol.data_to_send())

    def hears(self, data: bytes) -> list[tuple[Opcode, bytes]]:
        """Complete messages and control frames."""
        self.protocol.receive_data(data)
        assert self.protocol.parser_exc is None, self.protocol.parser_exc
        heard = []
        for event in self.protocol.events_received():
            assert isinstance(event, Frame)
            if event.opcode >= Opcode.CLOSE:
                heard.append((event.opcode, bytes(event.data)))
                continue
            if event.opcode is not Opcode.CONT:
                self.kind, self.content = event.opcode, b""
            self.content += event.data
            if event.fin:
                heard.append((Opcode(self.kind), self.content))
        return heard
