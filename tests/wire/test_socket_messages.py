"""Messages of sockets as engines send them: split, and forged."""

from __future__ import annotations

import random
import struct

import pytest

from atoll.wire.incoming import MAX_MESSAGE
from atoll.wire.outgoing import BadMessage
from atoll.wire.sockets import FrameCheck, pack_close
from tests.wire.socket_codecs import message, served


def test_messages_pass_in_any_split() -> None:
    chance = random.Random(7)
    whole = b"".join(message(chance.choice((1, 2)), bytes(chance.choice((0, 1, 4, 5, 300)))) for _ in range(300))
    whole += pack_close(1000, "bye")
    for _ in range(30):
        check, codec, rest = FrameCheck(), served(), whole
        while rest:
            size = chance.choice((1, 2, 4, 5, 6, 50, 1000))
            assert check.look(rest[:size]) == rest[:size]
            codec.speak(rest[:size])
            rest = rest[size:]
        assert not codec.is_open  # the close was the last message


@pytest.mark.parametrize(
    "bad", [message(4, b""), message(0, b"x"), struct.pack("<BI", 2, MAX_MESSAGE + 1), message(3, bytes(126))]
)
@pytest.mark.parametrize("cut", [1, 4, 5, 100])
def test_an_invalid_message_of_an_engine_is_refused(bad: bytes, cut: int) -> None:
    data = message(1, b"fine") + bad
    for check in (FrameCheck().look, served().speak):
        with pytest.raises(BadMessage):
            for at in range(0, len(data), cut):
                check(data[at : at + cut])
