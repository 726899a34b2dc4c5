"""The request splitter against llhttp: a worker receives exactly what llhttp reads, whatever the packets.

A fresh llhttp reads the whole stream at once. The front reads the same stream in random packets. The calls that reach
the worker must be the messages that llhttp saw, in order and byte for byte, up to the first one that the front refuses.
The front serves nothing after a refusal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

import httptools
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from packets import Outcome, run_packets
from scripted import ScriptedCall, echo, hello

from atoll.router import host_name

H = b"Host: w.localhost\r\n"
UPGRADE = b"Connection: upgrade\r\nUpgrade: "
SOCKET = UPGRADE + b"websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
EVIL = b"GET /evil HTTP/1.1\r\nHost: w.localhost\r\n\r\n"


@dataclass
class Message:
    method: bytes = b""
    target: bytes = b""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    has_head: bool = False
    is_complete: bool = False
    is_last: bool = False  # the connection ends after this message


class Reader:
    """Records every event of llhttp for a stream."""

    def __init__(self) -> None:
        self.at = self.start = 0
        self.messages: list[Message] = []
        self.parser = httptools.HttpRequestParser(self)

    def on_message_begin(self) -> None:
        self.start = self.at
        self.messages.append(Message())

    def on_url(self, url: bytes) -> None:
        self.messages[-1].method = self.parser.get_method()
        self.messages[-1].target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.messages[-1].has_head:  # later ones are trailers
            self.messages[-1].headers.append((name.lower(), value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        self.messages[-1].has_head = True

    def on_body(self, body: bytes) -> None:
        self.messages[-1].body += body

    def on_message_complete(self) -> None:
        self.messages[-1].is_complete = True
        self.messages[-1].is_last = not self.parser.should_keep_alive()


def read(data: bytes) -> list[Message]:
    reader = Reader()
    try:
        for at in range(len(data)):
            reader.at = at
            reader.parser.feed_data(data[at : at + 1])
    except httptools.HttpParserUpgrade:
        # llhttp stops at the head. If the front ignores the upgrade, the body is that of the same head without the
        # upgrade.
        start, end = reader.start, reader.at + 1
        last = reader.messages[-1]
        last.is_last = True
        if last.method != b"CONNECT":
            head = re.sub(rb"(?i)\r\nupgrade:", b"\r\nx-other:", data[start:end])
            message = read(head + data[end:])[0]
            last.body, last.is_complete = message.body, message.is_complete
    except httptools.HttpParserError:
        pass
    return reader.messages


def as_message(call: ScriptedCall) -> tuple[bytes, bytes, list[tuple[bytes, bytes]]]:
    line, block = call.head.split(b"\n", 1)
    method, url = line.split(b" ")
    headers = []
    for row in block.split(b"\r\n")[:-1]:
        name, value = row.split(b":", 1)
        headers.append((name.lower(), value.strip(b" \t")))
    return method, re.sub(rb"^https?://[^/]*", b"", url), headers


def path_of(target: bytes) -> bytes:
    path = re.sub(rb"(?i)^https?://[^/?]*", b"", target)
    return b"/" if path in (b"", b"*") else path if path.startswith(b"/") else b"/" + path


def is_for_worker(message: Message) -> bool:
    return any(name == b"host" and host_name(value) == b"w.localhost" for name, value in message.headers)


def check(data: bytes, cuts: list[int], script: object = echo) -> Outcome:
    edges = [0, *sorted({cut % len(data) for cut in cuts} - {0}), len(data)]
    outcome = run_packets([data[a:b] for a, b in pairwise(edges)], script)  # type: ignore[arg-type]
    seen = read(data)
    refusal = next((i for i, status in enumerate(outcome.statuses) if status not in (200, 404, 100, 101)), None)
    if refusal is not None:
        assert refusal == len(outcome.statuses) - 1, "nothing is answered after a refusal"
        assert outcome.is_closed
    index = 0
    for call in outcome.calls:
        while index < len(seen) and not is_for_worker(seen[index]):
            index += 1
        assert index < len(seen), f"llhttp saw no such request: {call.head!r}"
        message = seen[index]
        index += 1
        method, target, headers = as_message(call)
        assert (method, target, headers) == (message.method, path_of(message.target), message.headers)
        if call.ended:
            assert message.is_complete and bytes(call.body) == message.body
        else:
            assert message.body.startswith(bytes(call.body))
    answered = [status for status in outcome.statuses if status != 100]
    served = len(answered) - (refusal is not None)
    complete = [message for message in seen if message.is_complete]
    for message in complete[: max(0, served - 1)]:
        assert not message.is_last, "no request is served after the last one"
    if refusal is None and not outcome.is_closed and all(call.ended for call in outcome.calls):
        assert served == len(complete), "every request is answered once"
    return outcome


# The streams -------------------------------------------------------------------------------------------------------

LINES = [
    b"Content-Length: 0\r\n", b"Content-Length: 5\r\n", b"Content-Length: %d\r\n" % len(EVIL), b"content-length:3\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: CHUNKED\r\n", b"Transfer-Encoding: identity\r\n",
    b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n", b"Content-Length: 5, 5\r\n",
    b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Connection: upgrade\r\n", b"Upgrade: h2c\r\n",
    b"Connection: keep-alive, Upgrade\r\n", b"Upgrade: websocket\r\n", b"Upgrade:\r\n", UPGRADE + b"h2c\r\n", SOCKET,
    UPGRADE + b"websocket, h2c\r\n", b"HTTP2-Settings: AAMAAABk\r\n", b"Expect: 100-continue\r\n", b"X: y\r\n",
    b"X: \t y \t\r\n", b"X:\r\n", b"X: a\r\n b\r\n", b"X: a\nY: b\r\n", b"Host: nobody.localhost\r\n", b"X: \xff\r\n",
    b"Proxy-Connection: close\r\n", b"Trailer: X\r\n", b"Connection: close, upgrade\r\n",
]  # fmt: skip
methods = st.sampled_from([b"GET", b"POST", b"PUT", b"HEAD", b"OPTIONS", b"CONNECT", b"PRI", b"TRACE", b"M-SEARCH"])
targets = st.sampled_from([b"/", b"/a?b=c", b"*", b"http://w.localhost/x", b"w.localhost:80", b"/a#b", b"//x"])
versions = st.sampled_from([b"HTTP/1.1"] * 6 + [b"HTTP/1.0", b"HTTP/2.0"])
hosts = st.sampled_from([H] * 8 + [b"Host: nobody.localhost\r\n", b"HOST:w.localhost\r\n", b""])
contents = st.one_of(st.binary(max_size=12), st.sampled_from([EVIL, b"\r\n\r\n", b"0\r\n\r\n", b"hello"]))


def chunked(pieces: list[bytes], extension: bytes, trailer: bytes) -> bytes:
    body = b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces if piece)
    return body + b"0\r\n" + trailer + b"\r\n"


chunks = st.builds(
    chunked, st.lists(contents, max_size=4), st.sampled_from([b"", b";a=b", b" "]), st.sampled_from([b"", b"T: u\r\n"])
)


@st.composite
def good_requests(draw: st.DrawFn) -> bytes:
    """Requests with valid bodies."""
    head = draw(methods) + b" " + draw(targets) + b" " + draw(versions) + b"\r\n" + draw(hosts)
    head += b"".join(draw(st.lists(st.sampled_from(LINES[10:]), max_size=2)))
    kind = draw(st.integers(0, 2))
    if kind == 0:
        return head + b"\r\n"
    if kind == 1:
        body = draw(contents)
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + draw(chunks)


@st.composite
def odd_requests(draw: st.DrawFn) -> bytes:
    """Requests with arbitrary headers about their bodies."""
    line = draw(methods) + b" " + draw(targets) + b" " + draw(versions) + b"\r\n"
    lines = draw(st.lists(st.sampled_from(LINES), max_size=4))
    body = draw(st.one_of(st.just(b""), contents, chunks))
    return line + draw(hosts) + b"".join(lines) + b"\r\n" + body


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A valid stream with a few changed bytes."""
    data = bytearray(b"".join(draw(st.lists(good_requests(), min_size=1, max_size=4))))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 2))] = draw(
            st.sampled_from([b"", b"\r", b"\n", b" ", b"\t", b"\0", b":", b"\r\n", b"\r\n\r\n", b"0", b"x", b"\x0b"])
        )
    return bytes(data) or b"\r\n"


blanks = st.sampled_from([b"", b"", b"", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" "])
streams = st.one_of(
    st.lists(good_requests(), min_size=1, max_size=5).map(b"".join),
    st.lists(st.builds(bytes.__add__, blanks, odd_requests()), min_size=1, max_size=5).map(b"".join),
    st.builds(lambda request, count: request * count, good_requests(), st.integers(2, 5)),
    damaged(),
)
pieces = st.one_of(st.just([]), st.lists(st.integers(0, 5000), max_size=30), st.just(list(range(5000))))

GET = b"GET / HTTP/1.1\r\n" + H


@settings(max_examples=600, deadline=None)
@given(streams, pieces, st.sampled_from([echo, hello]))
@example(GET + SOCKET + b"Content-Length: %d\r\n\r\n" % len(EVIL) + EVIL, [], hello)
@example(GET + SOCKET + b"Transfer-Encoding: chunked\r\n\r\n" + EVIL, [], hello)
@example(b"GET / HTTP/1.0\r\n" + H + b"Connection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n\r\n" + EVIL, [], echo)
@example(b"\n" + EVIL, [], echo)
@example(b"\r" + EVIL, [1], echo)
def test_a_worker_receives_what_llhttp_reads(data: bytes, cuts: list[int], script: object) -> None:
    check(data, cuts, script)


@pytest.mark.parametrize("script", [echo, hello])
def test_the_generated_streams_are_served(script: object) -> None:
    body = b"POST /b HTTP/1.1\r\n" + H + b"Content-Length: 5\r\n\r\nhello"
    data = (
        GET
        + b"\r\n"
        + body
        + b"POST /c HTTP/1.1\r\n"
        + H
        + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    )
    assert check(data * 3, [], script).statuses == [200] * 9
    assert [message.body for message in read(data)] == [b"", b"hello", b"hello"]
