"""Messages of RPC sessions, checked: the engines that send them are hostile.

A batch is {"m": [[session, kind, id, target, path, size], ...]} and the bodies of all messages, joined. Bodies are
values that only engines understand. `web/rpc/session.js` describes the kinds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from atoll.errors import InvalidArgument

CALL, GET, RETURN, THROW, RELEASE, ENDED = "c", "g", "r", "t", "x", "e"
SENT = frozenset((CALL, GET, RETURN, THROW, RELEASE))  # kinds that a worker may send
MAX_BATCH = 256  # messages
MAX_PATH = 64  # names
MAX_NAME = 1_024  # characters
MAX_NUMBER = (1 << 53) - 1  # the largest exact integer of JavaScript
MAX_VALUE = (32 << 20) + (1 << 20)  # bytes: a value of 32 MiB and its platform objects
OVERHEAD = 256  # bytes of memory that a message takes besides its texts


class RpcMessage(NamedTuple):
    session: int  # the number of the session at the end that sends or receives it
    kind: str
    id: int  # of a call, at the side that made it
    target: int
    path: list[str]
    body: bytes = b""

    @property
    def cost(self) -> int:
        """Its bytes in memory, about."""
        return OVERHEAD + len(self.body) + sum(map(len, self.path))


Described = tuple[int, str, int, int, list[str], int]


def read_batch(meta: dict[str, Any], body: bytes) -> list[RpcMessage]:
    """The messages of one rpc.send. InvalidArgument if any field is wrong."""
    try:
        described = msgspec.convert(meta.get("m"), list[Described])
        for _, _, _, _, path, _ in described:
            "".join(path).encode()
    except (msgspec.ValidationError, UnicodeEncodeError):  # names may be no text: halves of surrogate pairs
        raise InvalidArgument("the messages of an RPC session are malformed") from None
    if len(described) > MAX_BATCH:
        raise InvalidArgument(f"more than {MAX_BATCH} messages of RPC sessions are sent at once")
    batch: list[RpcMessage] = []
    at = 0
    for session, kind, number, target, path, size in described:
        if kind not in SENT or not 0 <= session <= MAX_NUMBER or not 0 <= number <= MAX_NUMBER:
            raise InvalidArgument("the messages of an RPC session are malformed")
        if not -MAX_NUMBER <= target <= MAX_NUMBER or not 0 <= size <= min(MAX_VALUE, len(body) - at):
            raise InvalidArgument("the messages of an RPC session are malformed")
        if len(path) > MAX_PATH or any(len(name) > MAX_NAME for name in path):
            raise InvalidArgument(f"an RPC path has more than {MAX_PATH} names, or a name is too long")
        batch.append(RpcMessage(session, kind, number, target, path, body[at : at + size]))
        at += size
    if at != len(body):
        raise InvalidArgument("the messages of an RPC session are malformed")
    return batch
