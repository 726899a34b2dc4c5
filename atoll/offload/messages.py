"""The messages between the node and a job process: one packet each way. Large data travels as a descriptor."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import msgspec

MESSAGE: Final = 128 << 10  # bytes of one packet: small data, arguments or a result, with their envelope


class Task(msgspec.Struct, array_like=True):
    """Node to process. Large data comes as a descriptor beside it."""

    function: str
    seconds: int
    args: dict[str, Any]
    data: bytes = b""


class Ending(IntEnum):
    DONE = 0
    MEMORY = 1  # it exceeded a limit
    FAILED = 2  # it raised: a bug in Atoll


class JobAnswer(msgspec.Struct, array_like=True):
    """Process to node. A large result comes as a descriptor beside it; an exception comes as text."""

    ending: Ending
    result: bytes = b""


encode_task = msgspec.msgpack.Encoder().encode
decode_task = msgspec.msgpack.Decoder(Task).decode
encode_answer = msgspec.msgpack.Encoder().encode
decode_answer = msgspec.msgpack.Decoder(JobAnswer).decode
