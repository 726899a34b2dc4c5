"""The format of the journal's files.

    segment = header, copy of the header, groups
    group   = HEAD directory, payloads, END directory (a copy)

A group is written at once and synced before any record of it is acknowledged. Groups begin at multiples of 64 bytes.

- Every segment has a random nonce, which is in each HEAD and END. A segment's file is used again when it is not needed
  any more, and a tenant chooses what is in pages: neither old groups nor imitated ones are taken for groups.
- The directory names the object of each record, and is stored twice with at least a block of 4096 bytes between the
  beginnings: a damaged block never hides which objects lost a commit.
- The header says where the groups of the segment before end. What is behind was never acknowledged.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from atoll.objects.durable import DELETE_NAMESPACE, KINDS, Record
from atoll.objects.store import PAGE, ObjectKey

ALIGN = 64
FIRST = 2 * PAGE  # offset of the first group, behind the two headers
# magic, checksum of the rest, nonce, number, first group, end of the segment before
HEADER = struct.Struct("<8sI16sQQQ")
MAGIC = b"atolljl1"
GROUP = struct.Struct("<4sI16sQIIII")  # magic, checksum, nonce, group, offset, length, records, bytes of the directory
HEAD, END = b"HEAD", b"END."
# kind, alarm + 16 x part, namespace, crc, sequence, alarm, pages, count, ms of the time, offset, seconds of it, id.
# The time is 0 in journals that are older than it.
ENTRY = struct.Struct("<BBHIQqIHHII32s")


class SegmentHeader(NamedTuple):
    nonce: bytes
    number: int
    first_group: int
    previous_end: int  # 0: there is no segment before


class Group(NamedTuple):
    number: int
    offset: int
    length: int
    records: list[Record]


def encode_header(header: SegmentHeader) -> bytes:
    """Both copies."""
    rest = HEADER.pack(MAGIC, 0, *header)[12:]
    return ((MAGIC + struct.pack("<I", crc32(rest)) + rest).ljust(PAGE, b"\0")) * 2


def decode_header(data: memoryview) -> SegmentHeader | None:
    for start in (0, PAGE):
        raw = bytes(data[start : start + HEADER.size])
        if len(raw) == HEADER.size and raw[:8] == MAGIC and struct.unpack_from("<I", raw, 8)[0] == crc32(raw[12:]):
            _, _, nonce, number, first_group, previous_end = HEADER.unpack(raw)
            return SegmentHeader(nonce, number, first_group, previous_end)
    return None


def aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def directory_size(records: Sequence[Record]) -> int:
    return sum(ENTRY.size + len(record.key.namespace.encode()) for record in records)


def group_size(records: Sequence[Record]) -> int:
    directory = GROUP.size + directory_size(records)
    return _end_offset(directory, sum(record.size for record in records)) + aligned(directory)


def _end_offset(directory: int, payloads: int) -> int:
    """Where END is, from the start of the group."""
    return aligned(directory + max(payloads, PAGE))


def encode_group(nonce: bytes, number: int, segment: int, offset: int, records: Sequence[Record]) -> list[bytes]:
    """The pieces to write at `offset`. Sets the place of every record, but not its group: it is not durable yet."""
    entries: list[bytes] = []
    payloads: list[bytes] = []
    place = offset + GROUP.size + directory_size(records)
    for record in records:
        record.segment, record.offset = segment, place
        record.crc = crc32(record.contents, crc32(record.numbers))
        place += record.size
        entries.append(_encode_entry(record))
        payloads += (record.numbers, record.contents) if record.size else ()  # type: ignore[arg-type]  # any buffer
    directory = b"".join(entries)
    length = group_size(records)
    rest = GROUP.pack(HEAD, 0, nonce, number, offset, length, len(records), len(directory))[8:] + directory
    head = struct.pack("<I", crc32(rest)) + rest
    end = offset + _end_offset(GROUP.size + len(directory), place - offset - GROUP.size - len(directory))
    last = (END + head).ljust(offset + length - end, b"\0")
    return [HEAD + head, *payloads, bytes(end - place), last]


def _encode_entry(record: Record) -> bytes:
    namespace = record.key.namespace.encode()
    count = len(record.numbers) // 4
    seconds, ms = divmod(record.at_ms, 1000)
    return (
        ENTRY.pack(
            record.kind,
            record.alarm | record.part << 4,
            len(namespace),
            record.crc,
            record.sequence,
            record.alarm_ms,
            record.pages,
            count,
            ms,
            record.offset,
            seconds,
            bytes.fromhex(record.key.id),
        )
        + namespace
    )


def decode_group(data: memoryview, at: int, nonce: bytes, segment: int) -> Group | None:
    """The group whose HEAD or END is at `at`, or None. Payloads are not checked."""
    if at + GROUP.size > len(data):
        return None
    magic, crc, have, number, offset, length, count, size = GROUP.unpack_from(data, at)
    is_placed = (magic == HEAD and offset == at) or (magic == END and offset < at < offset + length)
    if have != nonce or not is_placed or at + GROUP.size + size > len(data) or offset + length > len(data):
        return None
    rest = data[at + 8 : at + GROUP.size + size]
    if crc32(rest) != crc:
        return None
    records = _decode_entries(bytes(rest[GROUP.size - 8 :]), count, data)
    for record in records:
        record.segment, record.group = segment, number
    return Group(number, offset, length, records)


def _decode_entries(directory: bytes, count: int, data: memoryview) -> list[Record]:
    records: list[Record] = []
    at = 0
    for _ in range(count):
        kind, alarm, name, crc, sequence, alarm_ms, pages, of_pages, ms, offset, seconds, raw = ENTRY.unpack_from(
            directory, at
        )
        at += ENTRY.size
        assert kind in KINDS, "the checksum of the directory is right"
        key = ObjectKey(directory[at : at + name].decode(), "" if kind == DELETE_NAMESPACE else raw.hex())
        at += name
        numbers = bytes(data[offset : offset + 4 * of_pages])
        record = Record(kind, key, sequence, pages, numbers, b"", alarm & 15, alarm_ms)
        record.crc, record.offset, record.part, record.at_ms = crc, offset, alarm >> 4, seconds * 1000 + ms
        records.append(record)
    return records


def is_whole(data: memoryview, record: Record) -> bool:
    """Whether the pages of a record are what was written."""
    size = len(record.numbers) // 4 * (4 + PAGE)
    return crc32(data[record.offset : record.offset + size]) == record.crc
