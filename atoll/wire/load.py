"""LOAD and UNLOAD. LOAD is the only frame that may have many megabytes; it is made and sent in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from atoll.wire.codec import frame, frame_head
from atoll.wire.fields import to_exact_json
from atoll.wire.generated import Frame

COPIED: Final = 4 << 10  # bytes of a blob that may be copied into a frame: a worker has at most 1,000 blobs


def load_payload(tenant: str, meta: dict[str, Any], blobs: Sequence[bytes]) -> list[bytes]:
    """The payload of a LOAD, without its header: the same for every engine, so the pool keeps it.

    It comes in pieces: large blobs are not copied, because that takes long; everything between them is joined.
    """
    name, text = tenant.encode(), to_exact_json(meta)
    pieces: list[bytes] = []
    small = [len(name).to_bytes(4, "little"), name, len(text).to_bytes(4, "little"), text]
    for blob in blobs:
        if len(blob) <= COPIED:
            small.append(blob)
            continue
        if small:
            pieces.append(b"".join(small))
            small = []
        pieces.append(blob)
    if small:
        pieces.append(b"".join(small))
    return pieces


def encode_load(worker: int, memory_mb: int, payload: list[bytes]) -> list[bytes]:
    """The memory limit is sent in place of the call id: the engine needs it before it can read the meta."""
    head = frame_head(sum(map(len, payload)), Frame.LOAD, worker, memory_mb)
    return [head + payload[0], *payload[1:]]


def encode_unload(worker: int) -> bytes:
    return frame(Frame.UNLOAD, worker)
