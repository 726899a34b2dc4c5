"""Responses with small static assets, complete but for their date. Most requests for a file are answered from here.

A response is kept under the path of its request if nothing but the path and a few headers decides the answer: no
fallback page, no rule about a host, no version whose table comes and goes. `find` looks for those headers and never
decides anything else. Whatever it does not know goes to site.py, which also fills this memory.

The memory is bounded for the node and shared fairly by tenants (asset_files/shares.py). What was kept for a version is
dropped when the version is gone.
"""

from __future__ import annotations

import weakref
from typing import Final, Protocol

from atoll.asset_files.shares import Shares
from atoll.assets.messages import chosen_coding
from atoll.assets.table import AssetFile, AssetTable
from atoll.front.http1 import LENGTH, STATUS_LINES, BadResponse, checked_block, header
from atoll.workers import Version

QUERY: Final = 63  # `?`
END: Final = b"\r\n"
OBJECTS: Final = 500  # bytes of the objects around one response, about
SWEPT: Final = 32  # responses of versions that are gone, dropped when a response is added


class CountAsset(Protocol):
    """Counts answers: version, status, bytes of the body."""

    def __call__(self, version: Version, status: int, size: int) -> None: ...


class ReadyFile:
    """The responses with one file under one path, by content coding."""

    __slots__ = ("answers", "file", "home", "path", "size", "tenant")

    def __init__(self, tenant: str, home: dict[bytes, ReadyFile], path: bytes, file: AssetFile) -> None:
        self.tenant = tenant
        self.home = home  # where it is found: `ready` of its table
        self.path = path
        self.file = file
        self.answers: dict[str, tuple[bytes, bytes]] = {}  # coding -> head without its end, body
        self.size = OBJECTS + len(path)


class ReadyFiles:
    """`most` bounds the bytes of all responses; `base` is the base domain, for which assets may set no cookies."""

    __slots__ = ("base", "count", "gone", "kept", "suspended")

    def __init__(self, most: int, count: CountAsset, base: str) -> None:
        self.count = count
        self.base = base
        self.kept: Shares[ReadyFile] = Shares(most)
        self.suspended: set[str] = set()  # tenants, of which nothing is served
        self.gone: list[dict[bytes, ReadyFile]] = []  # of tables that no version has any more

    def find(self, version: Version, target: bytes, head: bytes, date: bytes) -> bytes | None:
        """The response to a GET, or None if it is not kept. `head` is the whole head of the request."""
        table = version.assets
        if table is None or (self.suspended and version.tenant in self.suspended):
            return None
        home: dict[bytes, ReadyFile] = table.ready
        found = home.get(target[: target.index(b"?")] if QUERY in target else target)
        if found is None:
            return None
        lower = head.lower()
        if lower.find(b"\nrange:") >= 0 or lower.find(b"\nif-none-match:") >= 0 or lower.find(b"\nauthorization:") >= 0:
            return None
        coding = ""
        file = found.file
        if file.br or file.gzip:
            coding = chosen_coding(file, header(lower, b"accept-encoding") or b"")
        answer = found.answers.get(coding)
        if answer is None:
            return None
        start, body = answer
        self.count(version, 200, len(body))
        return b"".join((start, date, END, body))

    def keep(
        self, version: Version, table: AssetTable, path: str, file: AssetFile, coding: str, block: bytes, body: bytes
    ) -> None:
        """Keep a response of a version with traffic. The tables of others come and go (late_files.py)."""
        self.sweep()
        if not version.has_code:
            return
        home: dict[bytes, ReadyFile] = table.ready
        key = path.encode()
        found = home.get(key)
        if found is not None and coding in found.answers:
            return
        try:
            lines, _ = checked_block(block, self.base)
        except BadResponse:
            return  # who sends it refuses it
        if not table.is_watched:
            # The last reference to a table may be dropped in any thread, so its end is only noted.
            table.is_watched = True
            weakref.finalize(table, self.gone.append, home).atexit = False
        if found is None:
            found = home[key] = ReadyFile(version.tenant, home, key, file)
        start = b"%b%b%b%d\r\n" % (STATUS_LINES[200], lines, LENGTH, len(body))
        found.answers[coding] = (start, body)
        found.size += len(start) + len(body)
        for other in self.kept.put(found.tenant, found, found.size):
            other.home.pop(other.path, None)

    def sweep(self) -> None:
        """Drop a few responses of versions that are gone: a site may have thousands."""
        left = SWEPT
        while self.gone and left:
            home = self.gone[-1]
            if not home:
                self.gone.pop()
                continue
            _, found = home.popitem()
            self.kept.drop(found.tenant, found)
            left -= 1
