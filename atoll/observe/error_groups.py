"""Errors of workers, grouped by what they have in common: type, shape of the message, first frame of the worker's code.

The shape is the message without what differs between two errors of one kind: numbers, ids, quoted texts. The frame
counts without line and column, so that a deploy that moves code does not make new groups; where no function is named,
the line counts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from atoll.clock import iso_time
from atoll.errors import Failure
from atoll.logs import Invocation
from atoll.wire.generated import ErrorCode

MOST_GROUPS = 200  # of a worker; the ones not seen for longest go first
SHAPED = 300  # characters of a message that count
SHOWN = 500
MOST_STACK = 4_000
VARYING = re.compile(r"""'[^']{0,200}'|"[^"]{0,200}"|`[^`]{0,200}`|\b[0-9a-fA-F-]{8,200}\b|\d+""")
NOT_OWN = ("node:", "atoll:", "cloudflare:", "<anonymous>")


class ErrorPlace(NamedTuple):
    """Where a page begins: groups last seen before this one."""

    last_seen: int
    id: int


class ErrorGroup(msgspec.Struct):
    """A group as the API shows it, but for the name of its worker."""

    worker: str
    fingerprint: str
    message: str
    frame: str
    count: int
    first_seen: str
    last_seen: str
    example: str  # the cursor with which the logs of the worker begin at the last one


def shape_of(failure: Failure) -> tuple[str, str, str]:
    """The fingerprint, message and frame of an error."""
    kind = failure.name or ErrorCode(failure.code).name
    frame, place = first_own_frame(failure.stack)
    if not frame and failure.file:
        frame = place = f"{failure.file}:{failure.line}"
    shape = VARYING.sub("#", failure.message[:SHAPED])
    digest = hashlib.sha256(f"{kind}\0{shape}\0{place}".encode("utf-8", "replace")).hexdigest()[:16]
    message = f"{kind}: {failure.message}"[:SHOWN].encode("utf-8", "replace").decode()
    return digest, message, frame.encode("utf-8", "replace").decode()


def first_own_frame(stack: str) -> tuple[str, str]:
    """The first line of a stack that is the worker's own: as it is shown, and what of it counts."""
    for line in stack[:MOST_STACK].split("\n"):
        text = line.strip()
        if not text.startswith("at "):
            continue
        before, found, place = text[3:].removesuffix(")").rpartition(" (")
        file, _, position = place.partition(":") if not place.startswith("file:") else place[5:].partition(":")
        if not position or file.startswith(NOT_OWN) or place.startswith(NOT_OWN):
            continue
        function = before.removeprefix("async ") if found else ""
        where = place.rpartition(":")[0]
        return f"{function or '<anonymous>'} ({where})", f"{function} {file}" if function else where
    return "", ""


def count_errors(connection: apsw.Connection, records: Sequence[Invocation], first_id: int) -> None:
    """Add a batch of records to the groups. `first_id` is the id of the first of them."""
    found: dict[tuple[str, str], tuple[str, str, str, str, str, int, int, int, int]] = {}
    for number, record in enumerate(records, first_id):
        if record.failure is None:
            continue
        digest, message, frame = shape_of(record.failure)
        version, at = record.version, int(record.started_at * 1000)
        key = version.worker_id, digest
        before = found.get(key)
        count, first = (before[5], before[6]) if before is not None else (0, at)
        found[key] = (*key, version.tenant, message, frame, count + 1, min(first, at), at, number)
    connection.executemany(
        "INSERT INTO errors (worker, fingerprint, tenant, message, frame, count, first_seen, last_seen, example)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (worker, fingerprint) DO UPDATE SET"
        " message = ?4, frame = ?5, count = count + ?6, last_seen = max(last_seen, ?8), example = ?9",
        list(found.values()),
    )
    for worker in {key[0] for key in found}:
        connection.execute(
            "DELETE FROM errors WHERE id IN (SELECT id FROM errors WHERE worker = ? ORDER BY last_seen DESC"
            " LIMIT -1 OFFSET ?)",
            (worker, MOST_GROUPS),
        )


def find_errors(
    connection: apsw.Connection, tenant: str, worker: str, before: ErrorPlace, limit: int, oldest: int
) -> tuple[list[ErrorGroup], ErrorPlace | None]:
    """A page of a tenant's groups, or of one worker's, those seen last first; and where the next page begins."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT e.id, e.worker, fingerprint, message, frame, count, first_seen, last_seen, coalesce(r.at, 0), example"
        " FROM errors e LEFT JOIN records r ON r.id = example AND r.worker = e.worker"
        " WHERE tenant = ?1 AND (?2 = '' OR e.worker = ?2) AND last_seen >= ?3 AND (last_seen, e.id) < (?4, ?5)"
        " ORDER BY last_seen DESC, e.id DESC LIMIT ?6",
        (tenant, worker, oldest, *before, limit),
    ).fetchall()
    groups = [
        ErrorGroup(
            found, digest, message, frame, count, iso_time(first), iso_time(last), f"{at}-{example + 1}" if at else ""
        )
        for _, found, digest, message, frame, count, first, last, at, example in rows
    ]
    rest = ErrorPlace(rows[-1][7], rows[-1][0]) if len(rows) == limit else None
    return groups, rest
