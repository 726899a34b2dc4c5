"""Lines of the access log, in the combined format or as JSON, from what access.py notes.

Paths, headers and unparsed requests come from clients, so everything that could end a line, end a field or command a
terminal is escaped. Ids in URLs that look like credentials are replaced, as in log records.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from atoll.front.access import Note
from atoll.front.http1 import header
from atoll.front.peer import Peer
from atoll.plain import plain_json
from atoll.redact import redacted_url

Line: TypeAlias = Callable[[Note], bytes]

MAX_VALUE = 512  # bytes of a header that are shown
MAX_KNOWN = 1024
UNSAFE = re.compile(rb'[\x00-\x1f"\\\x7f-\xff]')
HOST = re.compile(rb"https?://([^/?]*)")
encode = msgspec.json.Encoder().encode


class Entry(msgspec.Struct):
    """A line of JSON."""

    time: str
    client: str
    method: str
    scheme: str
    host: str
    path: str
    protocol: str
    status: int
    bytes: int
    duration_ms: float
    complete: bool  # false: the response was broken off, or the client left
    tenant: str
    worker: str
    version: str
    referer: str
    user_agent: str


class Lines:
    """Makes lines. It remembers what most requests of a client repeat: their headers."""

    def __init__(self) -> None:
        self._epoch = 0.0
        self._second = 0
        self._shown = b""
        self._known: dict[bytes, tuple[bytes, bytes]] = {}
        self.set_clock()

    def set_clock(self) -> None:
        """Notes are timed by a clock that is never set. The wall clock may be."""
        self._epoch = time.time() - time.perf_counter()

    def combined(self, note: Note) -> bytes:
        """The combined format of Apache and nginx."""
        _, ended, peer, head, minor, status, size, _, _ = note
        method, _, _, path, block = parts(head, peer)
        referer, agent = self._told(block)
        request = b"%b %b HTTP/1.%d" % (method, path, minor) if method else path
        return b'%b - - [%b] "%b" %d %d "%b" "%b"\n' % (
            peer.client(block).encode() or b"-", self._clock(self._epoch + ended), escaped(request), status, size,
            escaped(referer) or b"-", escaped(agent) or b"-",
        )  # fmt: skip

    def json(self, note: Note) -> bytes:
        began, ended, peer, head, minor, status, size, is_whole, version = note
        method, scheme, host, path, block = parts(head, peer)
        referer, agent = self._told(block)
        at = self._epoch + ended
        entry = Entry(
            time=f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at))}.{int(at % 1 * 1000):03d}Z",
            client=peer.client(block),
            method=text(method),
            scheme=text(scheme),
            host=text(host),
            path=text(path),
            protocol=f"HTTP/1.{minor}" if method else "",
            status=status,
            bytes=size,
            duration_ms=round((ended - began) * 1000, 3),
            complete=is_whole,
            tenant=version.tenant if version is not None else "",
            worker=version.worker_name if version is not None else "",
            version=version.id if version is not None else "",
            referer=text(referer),
            user_agent=text(agent),
        )
        return plain_json(encode(entry).decode()).encode() + b"\n"

    def _clock(self, at: float) -> bytes:
        second = int(at)
        if second != self._second:
            self._second, self._shown = second, time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(second)).encode()
        return self._shown

    def _told(self, block: bytes) -> tuple[bytes, bytes]:
        """Referer, without what looks like a credential, and User-Agent."""
        known = self._known.get(block)
        if known is None:
            known = safe_url(value(block, b"referer")), value(block, b"user-agent")
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[block] = known
        return known


def parts(head: bytes, peer: Peer) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """Method, scheme, host, path and header lines. Of a request that was refused unread: what came, as the path."""
    line, _, block = head.partition(b"\n")
    method, _, url = line.partition(b" ")
    found = HOST.match(url)
    if line.endswith(b"\r") or found is None or not method.isalpha():
        return b"", b"", b"", safe_url(line.rstrip(b"\r")), block
    return (
        method,
        b"https" if url[4:5] == b"s" else peer.scheme.strip(b" :/"),
        found[1],
        safe_url(url[found.end() :]),
        block,
    )


def value(block: bytes, name: bytes) -> bytes:
    """The first value of a header, with its case."""
    found = header(b"\n" + block.lower(), name)
    if not found:
        return b""
    lower = b"\n" + block.lower()
    at = lower.find(found, lower.find(b"\n" + name + b":"))
    return block[at - 1 : at - 1 + len(found)][:MAX_VALUE]


def safe_url(url: bytes) -> bytes:
    return redacted_url(url.decode("latin-1")).encode("latin-1") if url else b""


def text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def escaped(value: bytes) -> bytes:
    """As nginx escapes values: `\\x22` for a quote."""
    return UNSAFE.sub(_escape, value) if UNSAFE.search(value) is not None else value


def _escape(found: re.Match[bytes]) -> bytes:
    return b"\\x%02X" % ord(found[0])
