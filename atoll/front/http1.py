"""HTTP/1.1 heads of requests and responses as bytes, in pure functions: the hottest code of the project.

`request_head` turns the head of a request into the head of a CALL frame. `response_bytes` turns the response of a
worker into the bytes for the client. Neither builds a header object. The header lines of a request go to the engine
unchanged, except for those that make claims about the client (peer.py). The header block of a response is checked by
one pattern and then remembered, because most responses of a worker carry the same block.

Nothing is trusted. llhttp (framing.py) decides on the grammar of a request; this file refuses the rest of what must not
pass. Engines are hostile, so a response's header block may hold no header that frames a message.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final, TypeAlias

from atoll.errors import EngineError
from atoll.front.cookies import HAS_DOMAIN, guarded
from atoll.front.peer import NOBODY, Peer
from atoll.wire.codec import read_reason
from atoll.wire.generated import MAX_HEAD

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE: Final = b"connection: close\r\n"
KEEP_ALIVE: Final = b"connection: keep-alive\r\n"  # only HTTP/1.0 clients need it
CHUNKED_BODY: Final = b"transfer-encoding: chunked\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"

MAX_HEADER_LINES: Final = 1000
CHUNKED: Final = -1  # instead of a length: the body marks its own end

# method, host (lower case, maybe with a port), target (path and query), HTTP/1.<minor>, head of the CALL frame
RequestHead: TypeAlias = tuple[bytes, bytes, bytes, int, bytes]

CLAIM = re.compile(rb"\r\n(?:x-|cf-|true-client-ip:|forwarded:)")  # lines that peer.py may have to remove

HASH: Final = 35  # `bytes in bytes` raises and clears an exception inside CPython first; `int in bytes` does not


class Rejection(Exception):
    """A request that the front refuses with `status` and `reason`. Its connection ends."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class BadResponse(Exception):
    """The engine sent a response that may not go to a client."""


def request_head(head: bytes, url_bytes: int, peer: Peer = NOBODY) -> RequestHead:
    """Turn the head of a request, up to and including its empty line, into the head of a CALL frame.

    It looks only for what Python needs. Use the result only if llhttp accepts `head` too.
    """
    line, rest = head.split(b"\r\n", 1)
    try:
        method, target, version = line.split(b" ")
    except ValueError:
        raise Rejection(400, "the request line must be METHOD TARGET HTTP/1.1") from None
    if rest == peer.rest:  # the same as in the last request of this connection
        host, scheme, block = peer.known
    else:
        host, scheme, block = header_block(head, rest, peer)
    if version != b"HTTP/1.1" and version != b"HTTP/1.0":
        raise unknown_version(version)
    if len(target) > url_bytes:
        raise Rejection(414, f"the URL is longer than {url_bytes} bytes")
    if target[:1] != b"/":
        target = origin_form(method, target, host)
    if HASH in target:
        raise Rejection(400, "the target holds a fragment (#), which clients must not send")
    call_head = b"".join((method, scheme, host, target, b"\n", block))
    return method, host, target, version[7] - 48, call_head


def header_block(head: bytes, rest: bytes, peer: Peer) -> tuple[bytes, bytes, bytes]:
    """The host, the scheme and the header lines of a CALL frame: the request's lines, then ours about the client."""
    lower = head.lower()
    try:
        _, after = lower.split(b"\r\nhost:")
    except ValueError:
        raise Rejection(400, "exactly one Host header is required: it selects the worker") from None
    host = after.split(b"\r", 1)[0].strip()
    if peer is NOBODY:  # the control API applies its own rules and must see every claim
        return host, peer.scheme, rest[:-2]
    if peer.is_proxy or CLAIM.search(lower) is not None:  # the lines may claim something about the client
        block, scheme, lines = peer.rewrite(rest[:-2])
    else:
        block, scheme, lines = rest[:-2], peer.scheme, peer.lines
    known = host, scheme, block + lines
    if len(rest) <= MAX_KNOWN_BLOCK:
        peer.rest, peer.known = rest, known
    return known


def unknown_version(version: bytes) -> Rejection:
    if re.fullmatch(rb"HTTP/\d\.\d", version):
        return Rejection(505, "only HTTP/1.1 and HTTP/1.0 are supported")
    return Rejection(400, "the request line does not end in HTTP/1.1")


def origin_form(method: bytes, target: bytes, host: bytes) -> bytes:
    """Path and query of a target that does not start with a slash: `*` of OPTIONS, or an absolute URL."""
    if method == b"CONNECT":
        raise Rejection(501, "CONNECT is not supported")
    if target == b"*" and method == b"OPTIONS":
        return b"/"
    scheme, found, rest = target.partition(b"://")
    if not found or scheme.lower() not in (b"http", b"https"):
        raise Rejection(400, "the target is neither a path nor an http or https URL")
    cut = min((i for i in (rest.find(b"/"), rest.find(b"?")) if i >= 0), default=len(rest))
    if rest[:cut].lower() != host:
        raise Rejection(400, "the host of the URL and the Host header differ")
    path = rest[cut:]
    return path if path.startswith(b"/") else b"/" + path


def check_size(head: bytes, header_bytes: int) -> None:
    """Refuse a head with too many header lines, or with too many bytes. Short heads need no check."""
    if len(head) - head.find(b"\r\n") - 4 > header_bytes or len(head) > MAX_HEAD - 512:
        raise Rejection(431, f"the headers are longer than {header_bytes} bytes")
    if head.count(b"\r\n") - 2 > MAX_HEADER_LINES:
        raise Rejection(431, f"more than {MAX_HEADER_LINES} header lines")


def header(lower: bytes, name: bytes) -> bytes | None:
    """The first value of a header in the head of a request or of a CALL frame. All arguments are in lower case."""
    line = b"\n" + name + b":"
    start = lower.find(line)
    if start < 0:
        return None
    start += len(line)
    return lower[start : lower.find(b"\r", start)].strip()


def waits_for_invitation(lower: bytes, minor: int) -> bool:
    """Whether the client waits for 100 Continue before it sends its body. Raises Rejection for other expectations."""
    expectation = header(lower, b"expect")
    if expectation is None or minor == 0:
        return False
    if expectation != b"100-continue":
        raise Rejection(417, "the only supported expectation is `100-continue`")
    return True


def body_length(lower: bytes, minor: int) -> int:
    """The length of the body that follows a head, or CHUNKED. Call it only if llhttp says that there is one."""
    coding = header(lower, b"transfer-encoding")
    if coding is not None:
        if minor == 0:
            raise Rejection(400, "Transfer-Encoding does not exist in HTTP/1.0")
        if coding != b"chunked":
            raise Rejection(501, "the only supported Transfer-Encoding is `chunked`")
        return CHUNKED
    length = header(lower, b"content-length")
    if length is None or not length.isdigit() or len(length) > 19:
        raise Rejection(400, "the length of the body is unclear")
    return int(length)


# ---------------------------------------------------------------------------------------------------------------
# Responses


def status_lines() -> dict[int, bytes]:
    phrases = {int(status): status.phrase for status in HTTPStatus}
    return {code: b"HTTP/1.1 %d %b\r\n" % (code, phrases.get(code, "").encode()) for code in range(200, 600)}


STATUS_LINES: Final = status_lines()
BEFORE_REASON: Final = len(b"HTTP/1.1 200 ")
SMALL_LENGTHS: Final = [b"content-length: %d\r\n\r\n" % size for size in range(1024)]
BODYLESS: Final = frozenset((204, 304))  # sent without a Content-Length

HEADER_BLOCK: Final = re.compile(
    rb"(?:(?!(?i:content-length|transfer-encoding|connection|keep-alive|upgrade|trailer|proxy-connection|te):)"
    rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[ ][\t\x20-\x7e\x80-\xff]*+\r\n)*+"
)
DATE_LINE: Final = re.compile(rb"(?:\A|\n)date:", re.IGNORECASE)

# Header blocks that passed the check, and whether they hold a Date. Emptied when full: a worker whose blocks never
# repeat costs each other worker one more check.
known_blocks: dict[bytes, bool] = {}
MAX_KNOWN_BLOCKS: Final = 1024
MAX_KNOWN_BLOCK: Final = 2048


LENGTH: Final = b"content-length: "
TOLD_LENGTH: Final = re.compile(rb"content-length: (\d{1,15})\r\n")


def told_length(block: bytes) -> tuple[int, bytes]:
    """Split the Content-Length that an engine puts first off a block: the length, and the rest of the block.

    It is the length of a streamed body or, for HEAD, of the body that GET would get.
    """
    match = TOLD_LENGTH.match(block)
    if match is None:
        raise BadResponse("the announced length of the body is not a number")
    return int(match[1]), block[match.end() :]


def check_block(block: bytes, base: str) -> tuple[bytes, bool]:
    """Refuse a header block that could change the framing of the response. Returns whether it holds a Date.

    The returned block lacks cookies that workers of a node with this base domain may not set.
    """
    checked, dated = checked_block(block, base)
    if len(block) <= MAX_KNOWN_BLOCK and HAS_DOMAIN.search(block) is None:
        if len(known_blocks) >= MAX_KNOWN_BLOCKS:
            known_blocks.clear()
        known_blocks[block] = dated
    return checked, dated


def checked_block(block: bytes, base: str) -> tuple[bytes, bool]:
    """As `check_block`, for a block that will be looked up elsewhere."""
    if len(block) > MAX_HEAD or HEADER_BLOCK.fullmatch(block) is None:
        raise BadResponse("the header block is malformed or holds a header that only the front may send")
    dated = DATE_LINE.search(block) is not None
    return (guarded(block, base) if HAS_DOMAIN.search(block) is not None else block), dated


def look_at(line: bytes, block: bytes, base: str) -> tuple[bytes, bytes, bool]:
    """Check a block that is not in `known_blocks`: the status line, the header lines, and whether they hold a Date.

    A reason phrase that the worker set replaces the usual one. The lines after it may be known.
    """
    try:
        reason, rest = read_reason(block)
    except EngineError as error:
        raise BadResponse(str(error)) from None
    if reason:
        line = b"%b%b\r\n" % (line[:BEFORE_REASON], reason)
        dated = known_blocks.get(rest)
        if dated is not None:
            return line, rest, dated
    rest, has_date = check_block(rest, base)
    return line, rest, has_date


def response_bytes(
    status: int, block: bytes, body: bytes, date: bytes, connection: bytes = b"", base: str = "localhost"
) -> bytes:
    """A complete response to any method but HEAD. `date` and `connection` are header lines, or empty."""
    line = STATUS_LINES.get(status)
    if line is None or status in BODYLESS:
        return response_head(status, block, b"", date, connection, base)
    dated = known_blocks.get(block)
    if dated is None:
        line, block, dated = look_at(line, block, base)
    size = len(body)
    end = SMALL_LENGTHS[size] if size < 1024 else b"content-length: %d\r\n\r\n" % size
    return b"".join((line, block, b"" if dated else date, connection, end, body))


def response_head(
    status: int, block: bytes, framing: bytes, date: bytes, connection: bytes = b"", base: str = "localhost"
) -> bytes:
    """The head of a response. `framing` is the header line that tells where the body ends, or empty."""
    line = STATUS_LINES.get(status)
    if line is None:
        raise BadResponse(f"the status {status} is not allowed (200 to 599)")
    dated = known_blocks.get(block)
    if dated is None:
        line, block, dated = look_at(line, block, base)
    return b"%b%b%b%b%b\r\n" % (line, block, b"" if dated else date, connection, framing)
