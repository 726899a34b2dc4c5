"""A record in its three forms: the Invocation from atoll/engine, a row of logs.db, and the JSON of the API.

Secrets are redacted when the first form is converted, so they are never stored or shown.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import msgspec

from atoll.clock import iso_time
from atoll.errors import Failure
from atoll.logs import Invocation
from atoll.observe.meter import near_limits
from atoll.redact import MAX_HEADERS, redacted_headers, redacted_url
from atoll.wire.generated import OUTCOME_NAMES, ErrorCode, Level

ROW_BYTES = 120  # size of a row without its text, with its index entry
SAID_NOTHING = -1
LEVEL_NAMES = {int(level): level.name.lower() for level in Level}


class StoredLine(msgspec.Struct, array_like=True):
    timestamp_ms: float
    level: int
    text: str


class Thrown(msgspec.Struct, array_like=True):
    """A Failure as it is stored."""

    code: int
    name: str
    message: str
    file: str
    line: int
    column: int
    stack: str


class Rest(msgspec.Struct, array_like=True):
    """Fields that are not searched by column: one JSON array per row. New fields go to the end, with a default."""

    event: str
    entrypoint: str
    method: str
    headers: msgspec.Raw  # a JSON object by lower-case name, redacted
    lines: list[StoredLine]
    truncated: bool
    thrown: Thrown | None = None
    ops: dict[str, int] = {}
    subrequests: int = 0
    skipped: int = 0
    memory_mb: int = 0
    near: list[str] = []


class Row(NamedTuple):
    """One row of `records`, in the order of its columns."""

    id: int | None  # None until SQLite assigns it
    worker: str
    at: int
    outcome: int
    level: int
    version: str
    status: int
    cpu_us: int
    wall_us: int
    url: str
    rest: str
    bytes: int


class LineAnswer(msgspec.Struct):
    timestamp: str
    level: str
    message: str


class ExceptionAnswer(msgspec.Struct, omit_defaults=True):
    """`file` to `stack` are set if a script is at fault and the place is known."""

    code: int
    type: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    stack: str = ""


class LogEntry(msgspec.Struct, omit_defaults=True):
    """One call as the API shows it."""

    timestamp: str
    event: str
    version_id: str
    outcome: str
    status: int
    method: str
    url: str
    headers: dict[str, str]
    cpu_ms: float
    wall_ms: float
    logs: list[LineAnswer]
    truncated: bool
    entrypoint: str = ""
    exception: ExceptionAnswer | None = None
    ops: dict[str, int] = {}  # number of calls of each op
    subrequests: int = 0  # requests of the call to bindings and other servers
    memory_mb: int = 0  # of its isolate, at its response
    near_limits: list[str] = []  # of which it used 80 % or more: cpu, memory, subrequests
    skipped: int = 0  # calls of the worker since the last record that were not kept: see log_rate


decode_rest = msgspec.json.Decoder(Rest).decode
decode_headers = msgspec.json.Decoder(dict[str, str]).decode
encode_json = msgspec.json.Encoder().encode


@functools.lru_cache(maxsize=1_024)
def _shown_headers(block: bytes) -> msgspec.Raw:
    """The redacted headers as JSON. Cached: clients repeat their headers, and this is most of the cost of a row."""
    return msgspec.Raw(encode_json(redacted_headers(block)))


def row_of(record: Invocation) -> Row:
    """A record as a row: about 3 us for a call without console lines, with headers in the cache."""
    address, _, block = record.head.partition(b"\n")
    method, _, url = address.decode("latin-1").partition(" ")
    url = redacted_url(url)
    failure = record.failure
    thrown = None
    level = max((line.level for line in record.logs), default=SAID_NOTHING)
    if failure is not None:
        level = Level.ERROR
        thrown = _thrown(failure)
    lines = [StoredLine(line.timestamp_ms, int(line.level), line.text) for line in record.logs]
    headers = _shown_headers(block[:MAX_HEADERS] if record.event == "fetch" else b"")  # other events have none
    rest = Rest(
        record.event,
        record.entrypoint,
        method,
        headers,
        lines,
        record.truncated,
        thrown,
        dict(record.ops),
        record.subrequests,
        record.skipped,
        record.memory_mb,
        list(near_limits(record)),
    )
    text = encode_json(rest).decode("utf-8", "replace")
    version = record.version
    return Row(
        None,
        version.worker_id,
        int(record.started_at * 1000),
        int(record.outcome),
        int(level),
        version.id,
        record.status,
        record.cpu_us,
        record.wall_us,
        url,
        text,
        ROW_BYTES + len(version.worker_id) * 2 + len(version.id) + len(url) + len(text),
    )


def _thrown(failure: Failure) -> Thrown:
    return Thrown(
        int(failure.code),
        _whole(failure.name),
        _whole(failure.message),
        _whole(failure.file),
        failure.line,
        failure.column,
        _whole(failure.stack),
    )


def _whole(text: str) -> str:
    """A text without lone surrogates, which JavaScript allows and UTF-8 does not."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def entry_of(row: Row) -> LogEntry:
    rest = decode_rest(row.rest)
    return LogEntry(
        timestamp=iso_time(row.at),
        event=rest.event,
        version_id=row.version,
        outcome=OUTCOME_NAMES.get(row.outcome, "unknown"),
        status=row.status,
        method=rest.method,
        url=row.url,
        headers=decode_headers(rest.headers),
        cpu_ms=row.cpu_us / 1000,
        wall_ms=row.wall_us / 1000,
        logs=[LineAnswer(iso_time(line.timestamp_ms), LEVEL_NAMES[line.level], line.text) for line in rest.lines],
        truncated=rest.truncated,
        subrequests=rest.subrequests,
        skipped=rest.skipped,
        memory_mb=rest.memory_mb,
        near_limits=rest.near,
        entrypoint=rest.entrypoint,
        ops=rest.ops,
        exception=None if rest.thrown is None else _exception(rest.thrown),
    )


def _exception(thrown: Thrown) -> ExceptionAnswer:
    kind = thrown.name or ErrorCode(thrown.code).name
    return ExceptionAnswer(thrown.code, kind, thrown.message, thrown.file, thrown.line, thrown.column, thrown.stack)


def says(entry: LogEntry, text: str) -> bool:
    """Whether the URL, console lines or exception of the entry contain a text. Case is ignored."""
    wanted = text.lower()
    thrown = entry.exception
    return (
        wanted in entry.url.lower()
        or any(wanted in line.message.lower() for line in entry.logs)
        or (thrown is not None and wanted in f"{thrown.type}: {thrown.message}\n{thrown.stack}".lower())
    )
