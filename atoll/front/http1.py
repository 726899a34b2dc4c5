"""HTTP/1.1 heads as bytes, both ways, as pure functions: the hottest code of the project.

`request_head` turns the head of a request into the head of a CALL frame; `response_bytes` turns what a worker
answered into what the client reads. Neither builds a header object: the raw header lines of the request travel to the
engine unchanged but for what they claim about the client (peer.py), and the header block of a response is checked
whole by one pattern and then remembered, because most responses of a worker carry the same block again.

What is trusted: nothing. llhttp (see framing.py) has the say on the grammar of a request; this file refuses what llhttp
lets through. The engine is hostile, so its header block may hold no line of its own making that frames a message.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final, TypeAlias

from atoll.errors import EngineError
from atoll.front.peer import NOBODY, Peer
from atoll.wire.codec import read_reason
from atoll.wire.generated import MAX_HEAD

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE: Final = b"connection: close\r\n"
KEEP_ALIVE: Final = b"connection: keep-alive\r\n"  # only HTTP/1.0 clients need to be told
CHUNKED_BODY: Final = b"transfer-encoding: chunked\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"

MAX_HEADER_LINES: Final = 1000
CHUNKED: Final = -1  # the length of a body that says itself where it ends

# method, host (lower case, maybe with a port), target (path and query), HTTP/1.<minor>, head of the CALL frame
RequestHead: TypeAlias = tuple[bytes, bytes, bytes, int, bytes]

CLAIM = re.compile(rb"\r\n(?:x-|cf-|true-client-ip:|forwarded:)")  # how lines begin that peer.py may have to take out

HASH: Final = 35  # `bytes in bytes` raises and clears an exception inside CPython first; `int in bytes` does not


class Refusal(Exception):
    """A request that is answered by the front itself, with `status` and in words, and ends its connection."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class BadResponse(Exception):
    """The engine answered with something that may not be sent to a client."""


def request_head(head: bytes, url_bytes: int, peer: Peer = NOBODY) -> RequestHead:
    """The head of a request, from its first byte to its empty line, as the head of a CALL frame.

    Only what Python needs is looked for. llhttp must have agreed to `head` too before the result is used.
    """
    line, rest = head.split(b"\r\n", 1)
    try:
        method, target, version = line.split(b" ")
    except ValueError:
        raise Refusal(400, "the request line is not METHOD TARGET HTTP/1.1") from None
    if rest == peer.rest:  # as in the last request of this connection
        host, scheme, block = peer.known
    else:
        host, scheme, block = header_block(head, rest, peer)
    if version != b"HTTP/1.1" and version != b"HTTP/1.0":
        raise unknown_version(version)
    if len(target) > url_bytes:
        raise Refusal(414, f"the URL is longer than {url_bytes} bytes")
    if target[:1] != b"/":
        target = origin_form(method, target, host)
    if HASH in target:
        raise Refusal(400, "a fragment (#) is never sent to a server")
    call_head = b"".join((method, scheme, host, target, b"\n", block))
    return method, host, target, version[7] - 48, call_head


def header_block(head: bytes, rest: bytes, peer: Peer) -> tuple[bytes, bytes, bytes]:
    """The host, the scheme and the header lines of a CALL frame: those of the request, and ours about the client."""
    lower = head.lower()
    try:
        _, after = lower.split(b"\r\nhost:")
    except ValueError:
        raise Refusal(400, "there must be one Host header: Atoll finds the worker by it") from None
    host = after.split(b"\r", 1)[0].strip()
    if peer is NOBODY:  # whoever reads it makes up its own mind: it must see every claim
        return host, peer.scheme, rest[:-2]
    if peer.is_proxy or CLAIM.search(lower) is not None:  # it may claim to be somebody
        block, scheme, lines = peer.rewrite(rest[:-2])
    else:
        block, scheme, lines = rest[:-2], peer.scheme, peer.lines
    known = host, scheme, block + lines
    if len(rest) <= MAX_KNOWN_BLOCK:
        peer.rest, peer.known = rest, known
    return known


def unknown_version(version: bytes) -> Refusal:
    if re.fullmatch(rb"HTTP/\d\.\d", version):
        return Refusal(505, "only HTTP/1.1 and HTTP/1.0 are spoken here")
    return Refusal(400, "the request line does not end in HTTP/1.1")


def origin_form(method: bytes, target: bytes, host: bytes) -> bytes:
    """Path and query of a target that does not begin with a slash: `*` of OPTIONS, or an absolute URL."""
    if method == b"CONNECT":
        raise Refusal(501, "CONNECT is for proxies")
    if target == b"*" and method == b"OPTIONS":
        return b"/"
    scheme, found, rest = target.partition(b"://")
    if not found or scheme.lower() not in (b"http", b"https"):
        raise Refusal(400, "the target is neither a path nor an http URL")
    cut = min((i for i in (rest.find(b"/"), rest.find(b"?")) if i >= 0), default=len(rest))
    if rest[:cut].lower() != host:
        raise Refusal(400, "the host of the URL and the Host header differ")
    path = rest[cut:]
    return path if path.startswith(b"/") else b"/" + path


def check_size(head: bytes, header_bytes: int) -> None:
    """Refuse a head with too many or too long header lines. Only heads of some kilobytes need to be asked."""
    if len(head) - head.find(b"\r\n") - 4 > header_bytes or len(head) > MAX_HEAD - 512:
        raise Refusal(431, f"the headers are longer than {header_bytes} bytes")
    if head.count(b"\r\n") - 2 > MAX_HEADER_LINES:
        raise Refusal(431, f"more than {MAX_HEADER_LINES} header lines")


def header(lower: bytes, name: bytes) -> bytes | None:
    """The first value of a header in a head of a request or of a CALL frame; all in lower case."""
    line = b"\n" + name + b":"
    start = lower.find(line)
    if start < 0:
        return None
    start += len(line)
    return lower[start : lower.find(b"\r", start)].strip()


def keeps_alive(lower: bytes, minor: int) -> bool:
    """What the client wants for after this request. Asked only when llhttp has not seen the whole message yet."""
    wishes = header(lower, b"connection") or b""
    return b"close" not in wishes if minor else b"keep-alive" in wishes


def waits_for_invitation(lower: bytes, minor: int) -> bool:
    """Does the client wait to be told that it may send its body? Raises Refusal when it expects anything else."""
    expectation = header(lower, b"expect")
    if expectation is None or minor == 0:
        return False
    if expectation != b"100-continue":
        raise Refusal(417, "the only expectation met is `100-continue`")
    return True


def body_length(lower: bytes, minor: int) -> int:
    """How long the body is that llhttp says follows: a number of bytes, or CHUNKED."""
    coding = header(lower, b"transfer-encoding")
    if coding is not None:
        if minor == 0:
            raise Refusal(400, "Transfer-Encoding does not exist in HTTP/1.0")
        if coding != b"chunked":
            raise Refusal(501, "the only Transfer-Encoding taken is `chunked`")
        return CHUNKED
    length = header(lower, b"content-length")
    if length is None or not length.isdigit() or len(length) > 19:
        raise Refusal(400, "the length of the body is unclear")
    return int(length)


# ---------------------------------------------------------------------------------------------------------------
# Responses


def status_lines() -> dict[int, bytes]:
    phrases = {int(status): status.phrase for status in HTTPStatus}
    return {code: b"HTTP/1.1 %d %b\r\n" % (code, phrases.get(code, "").encode()) for code in range(200, 600)}


STATUS_LINES: Final = status_lines()
BEFORE_REASON: Final = len(b"HTTP/1.1 200 ")
SMALL_LENGTHS: Final = [b"content-length: %d\r\n\r\n" % size for size in range(1024)]
BODYLESS: Final = frozenset((204, 304))  # not even a length is sent

HEADER_BLOCK: Final = re.compile(
    rb"(?:(?!(?i:content-length|transfer-encoding|connection|keep-alive|upgrade|trailer|proxy-connection|te):)"
    rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[ ][\t\x20-\x7e\x80-\xff]*+\r\n)*+"
)
DATE_LINE: Final = re.compile(rb"(?:\A|\n)date:", re.IGNORECASE)

# Header blocks already found good, and whether they bring a Date of their own. Emptied when full: a worker that never
# repeats itself costs the others one match each, nothing more.
known_blocks: dict[bytes, bool] = {}
MAX_KNOWN_BLOCKS: Final = 1024
MAX_KNOWN_BLOCK: Final = 2048


LENGTH: Final = b"content-length: "
TOLD_LENGTH: Final = re.compile(rb"content-length: (\d{1,15})\r\n")


def told_length(block: bytes) -> tuple[int, bytes]:
    """The length an engine tells in the first line of a block, and the block without it.

    That is the length of a body it streams, or, in answer to HEAD, of the one that GET would bring.
    """
    match = TOLD_LENGTH.match(block)
    if match is None:
        raise BadResponse("the length of the body is no number")
    return int(match[1]), block[match.end() :]


def check_block(block: bytes) -> bool:
    """Refuse a header block that could change the framing of the response; tell whether it holds a Date."""
    if len(block) > MAX_HEAD or HEADER_BLOCK.fullmatch(block) is None:
        raise BadResponse("the header block is malformed or holds a header that only the front may send")
    dated = DATE_LINE.search(block) is not None
    if len(block) <= MAX_KNOWN_BLOCK:
        if len(known_blocks) >= MAX_KNOWN_BLOCKS:
            known_blocks.clear()
        known_blocks[block] = dated
    return dated


def look_at(line: bytes, block: bytes) -> tuple[bytes, bytes, bool]:
    """The status line, header lines and whether they hold a Date, of a block that is not known word for word.

    A reason phrase of the worker's takes the place of the usual words; the lines after it may well be known.
    """
    try:
        reason, rest = read_reason(block)
    except EngineError as error:
        raise BadResponse(str(error)) from None
    if not reason:
        return line, block, check_block(block)
    dated = known_blocks.get(rest)
    return b"%b%b\r\n" % (line[:BEFORE_REASON], reason), rest, check_block(rest) if dated is None else dated


def response_bytes(status: int, block: bytes, body: bytes, date: bytes, connection: bytes = b"") -> bytes:
    """A whole response to anything but HEAD. `date` and `connection` are header lines, or empty."""
    line = STATUS_LINES.get(status)
    if line is None or status in BODYLESS:
        return response_head(status, block, b"", date, connection)
    dated = known_blocks.get(block)
    if dated is None:
        line, block, dated = look_at(line, block)
    size = len(body)
    end = SMALL_LENGTHS[size] if size < 1024 else b"content-length: %d\r\n\r\n" % size
    return b"".join((line, block, b"" if dated else date, connection, end, body))


def response_head(status: int, block: bytes, framing: bytes, date: bytes, connection: bytes = b"") -> bytes:
    """The head alone. `framing` is the line that says how the body ends, or empty when there is none to be told."""
    line = STATUS_LINES.get(status)
    if line is None:
        raise BadResponse(f"the status {status} is not one a worker may answer with (200 to 599)")
    dated = known_blocks.get(block)
    if dated is None:
        line, block, dated = look_at(line, block)
    return b"%b%b%b%b%b\r\n" % (line, block, b"" if dated else date, connection, framing)
