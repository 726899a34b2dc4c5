"""What the front refuses. No split into packets and no garbage changes its behaviour.

The table lists what llhttp itself refuses, and what llhttp accepts but the front refuses.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packets import run_packets
from scripted import Front

Start = Callable[..., Awaitable[Front]]

H = b"Host: w.localhost\r\n"
GOOD = b"GET / HTTP/1.1\r\n" + H + b"\r\n"
CHUNKED = b"POST / HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n"


def get(*lines: bytes) -> bytes:
    return b"GET / HTTP/1.1\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


def post(headers: bytes, body: bytes = b"") -> bytes:
    return b"POST / HTTP/1.1\r\n" + H + headers + b"\r\n" + body


REFUSED = {
    # the request line
    "no version": (b"GET /\r\n" + H + b"\r\n", 400),
    "two spaces": (b"GET  / HTTP/1.1\r\n" + H + b"\r\n", 400),
    "space at the end": (b"GET / HTTP/1.1 \r\n" + H + b"\r\n", 400),
    "HTTP/0.9": (b"GET / HTTP/0.9\r\n" + H + b"\r\n", 505),
    "HTTP/2.0": (b"GET / HTTP/2.0\r\n" + H + b"\r\n", 505),
    "HTTP/1.2": (b"GET / HTTP/1.2\r\n" + H + b"\r\n", 505),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "version in lower case": (b"GET / http/1.1\r\n" + H + b"\r\n", 400),
    "unknown method": (b"BREW / HTTP/1.1\r\n" + H + b"\r\n", 501),
    "method in lower case": (b"get / HTTP/1.1\r\n" + H + b"\r\n", 501),
    "method with a colon": (b"G:T / HTTP/1.1\r\n" + H + b"\r\n", 400),
    "CONNECT": (b"CONNECT w.localhost:80 HTTP/1.1\r\n" + H + b"\r\n", 501),
    "CONNECT of a path": (b"CONNECT /x HTTP/1.1\r\n" + H + b"\r\n", 501),
    "star that is not for OPTIONS": (b"GET * HTTP/1.1\r\n" + H + b"\r\n", 400),
    "target without a slash": (b"GET foo HTTP/1.1\r\n" + H + b"\r\n", 400),
    "tab in the target": (b"GET /a\tb HTTP/1.1\r\n" + H + b"\r\n", 400),
    "control character in the target": (b"GET /a\x01b HTTP/1.1\r\n" + H + b"\r\n", 400),
    "high byte in the target": (b"GET /\xff HTTP/1.1\r\n" + H + b"\r\n", 400),
    "fragment": (b"GET /a#b HTTP/1.1\r\n" + H + b"\r\n", 400),
    "absolute URL of another host": (b"GET http://other/ HTTP/1.1\r\n" + H + b"\r\n", 400),
    "absolute URL with a user": (b"GET http://u@w.localhost/ HTTP/1.1\r\n" + H + b"\r\n", 400),
    "absolute URL of another scheme": (b"GET ftp://w.localhost/ HTTP/1.1\r\n" + H + b"\r\n", 400),
    "TLS handshake": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    # Host
    "no Host": (get(b"X: y"), 400),
    "no Host in HTTP/1.0": (b"GET / HTTP/1.0\r\n\r\n", 400),
    "two Hosts": (get(b"Host: w.localhost", b"Host: w.localhost"), 400),
    "two Hosts in different case": (get(b"Host: w.localhost", b"hOsT: w.localhost"), 400),
    "empty Host": (get(b"Host:"), 400),
    "Host with a space": (get(b"Host: w .localhost"), 400),
    "Host with a slash": (get(b"Host: w.localhost/x"), 400),
    "Host with a user": (get(b"Host: u@w.localhost"), 400),
    "Host with a bad port": (get(b"Host: w.localhost:http"), 400),
    "Host with a port too high": (get(b"Host: w.localhost:65536"), 400),
    "Host list": (get(b"Host: w.localhost, w.localhost"), 400),
    "Host with empty label": (get(b"Host: w..localhost"), 400),
    "Host with a high byte": (get(b"Host: w\xff.localhost"), 400),
    # header lines
    "space before the colon": (get(b"Host: w.localhost", b"X : y"), 400),
    "no colon": (get(b"Host: w.localhost", b"nocolon"), 400),
    "empty name": (get(b"Host: w.localhost", b": x"), 400),
    "folded line": (get(b"Host: w.localhost", b"X: y", b" z"), 400),
    "space before the first header": (b"GET / HTTP/1.1\r\n " + H + b"\r\n", 400),
    "NUL in a value": (get(b"Host: w.localhost", b"X: a\x00b"), 400),
    "bare CR in a value": (get(b"Host: w.localhost", b"X: a\rb"), 400),
    "bare LF after a value": (b"GET / HTTP/1.1\r\n" + H + b"X: y\nZ: q\r\n\r\n", 400),
    "bare LF after the request line": (b"GET / HTTP/1.1\n" + H + b"\r\n", 400),
    "bytes that are no token": (get(b"Host: w.localhost", b"X\x80: y"), 400),
    # framing
    "Content-Length and Transfer-Encoding": (post(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400),
    "Transfer-Encoding and Content-Length": (post(b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400),
    "two lengths": (post(b"Content-Length: 5\r\nContent-Length: 5\r\n", b"hello"), 400),
    "list of lengths": (post(b"Content-Length: 5, 5\r\n", b"hello"), 400),
    "signed length": (post(b"Content-Length: +5\r\n", b"hello"), 400),
    "negative length": (post(b"Content-Length: -5\r\n", b"hello"), 400),
    "hexadecimal length": (post(b"Content-Length: 0x5\r\n", b"hello"), 400),
    "empty length": (post(b"Content-Length: \r\n"), 400),
    "length that overflows": (post(b"Content-Length: 99999999999999999999\r\n"), 400),
    "Transfer-Encoding in HTTP/1.0": (b"POST / HTTP/1.0\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "gzip, chunked": (post(b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"), 501),
    "xchunked": (post(b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"), 400),
    "identity": (post(b"Transfer-Encoding: identity\r\n"), 400),
    "chunked, identity": (post(b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n"), 400),
    "chunked twice": (post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"), 400),
    "empty Transfer-Encoding": (post(b"Transfer-Encoding:\r\n"), 400),
    "chunk size that is no number": (CHUNKED + b"\r\nxyz\r\n", 400),
    "negative chunk size": (CHUNKED + b"\r\n-1\r\n", 400),
    "chunk size that overflows": (CHUNKED + b"\r\nfffffffffffffffff\r\n", 400),
    "chunk size with a prefix": (CHUNKED + b"\r\n0x5\r\nhello\r\n0\r\n\r\n", 400),
    "chunk longer than its size": (CHUNKED + b"\r\n3\r\nhello\r\n0\r\n\r\n", 400),
    "bare LF after a chunk size": (CHUNKED + b"\r\n5\nhello\r\n0\r\n\r\n", 400),
    "malformed trailer": (CHUNKED + b"\r\n0\r\n Bad\r\n\r\n", 400),
    "unknown expectation": (post(b"Expect: tea\r\nContent-Length: 5\r\n"), 417),
    # size
    "URL too long": (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n" + H + b"\r\n", 414),
    "header too long": (get(b"Host: w.localhost", b"X: " + b"a" * 140_000), 431),
    "1001 header lines": (get(b"Host: w.localhost", *[b"a:"] * 1001), 431),
    "body too long": (post(b"Content-Length: 104857601\r\n"), 413),
}


@pytest.mark.parametrize(("request_bytes", "status"), REFUSED.values(), ids=REFUSED.keys())
async def test_a_malformed_request_is_refused_and_ends_the_connection(
    front: Front, request_bytes: bytes, status: int
) -> None:
    answer = await front.exchange(GOOD + request_bytes + GOOD)
    first, second = re.split(rb"HTTP/1\.1 (?=\d{3} )", answer)[1:]
    assert first.startswith(b"200 ")
    assert second.startswith(b"%d " % status), second
    assert b"\r\nconnection: close\r\n" in second
    assert len([call for call in front.pool.calls if not call.cancelled]) == 1


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [(b"GET /" + b"a" * 20_000, 414), (b"GET / HTTP/1.1\r\n" + b"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" * 6000, 431)],
)
async def test_a_head_without_end_is_refused_once_it_is_too_long(
    front: Front, request_bytes: bytes, status: int
) -> None:
    assert (await front.exchange(request_bytes)).startswith(b"HTTP/1.1 %d " % status)


async def test_tls_on_a_plain_port_is_refused_at_once(front: Front) -> None:
    answer = await front.exchange(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"use http://" in answer


ACCEPTED = {
    "dense headers": get(b"Host:w.localhost", b"A:", b"b:c"),
    "a trailing dot": get(b"Host: w.localhost.:80"),
    "upper case": get(b"Host: W.LOCALHOST"),
    "a thousand header lines": get(b"Host: w.localhost", *[b"a:"] * 999),
    "a header of 100 KB": get(b"Host: w.localhost", b"X: " + b"a" * 100_000),
    "a URL of 16 KB": b"GET /" + b"a" * 16_383 + b" HTTP/1.1\r\n" + H + b"\r\n",
    "high bytes in a value": get(b"Host: w.localhost", b"X: \xc3\xa9"),
    "any method llhttp knows": b"PROPFIND / HTTP/1.1\r\n" + H + b"\r\n",
    "a GET with a body": b"GET / HTTP/1.1\r\n" + H + b"Content-Length: 2\r\n\r\nhi",
    "a length of zero": post(b"Content-Length: 0\r\n"),
    "CHUNKED in capitals": post(b"Transfer-Encoding: CHUNKED\r\n", b"0\r\n\r\n"),
    "an expectation without a body": get(b"Host: w.localhost", b"Expect: 100-continue"),
}


@pytest.mark.parametrize("request_bytes", ACCEPTED.values(), ids=ACCEPTED.keys())
async def test_an_unusual_but_valid_request_is_served(front: Front, request_bytes: bytes) -> None:
    client = await front.connect()
    client.send(request_bytes + GOOD)
    assert (await client.response()).status == 200
    assert (await client.response()).status == 200


async def test_a_refusal_explains_its_reason(front: Front) -> None:
    answer = await front.exchange(get(b"Host: a", b"Host: b"))
    assert answer.endswith(b"\r\n\r\n400 Bad Request: exactly one Host header is required: it selects the worker\n")


# Any split into packets ---------------------------------------------------------------------------------------------

STREAM = (
    GOOD,
    b"POST /a HTTP/1.1\r\n" + H + b"Content-Length: 9\r\n\r\n\r\n\r\nab\r\n\r",
    b"\r\nGET /b HTTP/1.1\r\n" + H + b"Connection: Upgrade\r\n\r\n",
    CHUNKED.replace(b"/", b"/c", 1) + b"\r\n4\r\n\r\n\r\n\r\n6;x=y\r\n0\r\n\r\n!\r\n0\r\nT: u\r\n\r\n",
    b"HEAD /d HTTP/1.1\r\n" + H + b"\r\n",
    b"POST /e HTTP/1.1\r\n" + H + b"Upgrade: foo\r\nContent-Length: 2\r\n\r\nhi",
    CHUNKED.replace(b"/", b"/f", 1) + b"\r\n0\r\n\r\n",
    b"POST /g HTTP/1.1\r\n" + H + b"Connection: Upgrade\r\nUpgrade: foo\r\nContent-Length: 2\r\n\r\nho",
)


WHOLE = b"".join(STREAM)


def answers_of(packets: list[bytes]) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    outcome = run_packets(packets)
    return outcome.written, [(call.head, bytes(call.body)) for call in outcome.calls]


EXPECTED = answers_of([WHOLE])


def test_the_stream_of_the_split_tests_is_parsed_correctly() -> None:
    answers, calls = EXPECTED
    assert answers.count(b"HTTP/1.1 200 OK") == len(STREAM)
    bodies = [b"", b"\r\n\r\nab\r\n\r", b"", b"\r\n\r\n0\r\n\r\n!", b"", b"hi", b"", b"ho"]
    assert [body for _, body in calls] == bodies


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(1, len(WHOLE) - 1), max_size=40))
def test_any_split_of_a_pipelined_stream_gives_the_same_answers(cuts: list[int]) -> None:
    edges = [0, *sorted(set(cuts)), len(WHOLE)]
    assert answers_of([WHOLE[a:b] for a, b in pairwise(edges)]) == EXPECTED


def test_one_byte_per_packet_gives_the_same_answers() -> None:
    assert answers_of([WHOLE[i : i + 1] for i in range(len(WHOLE))]) == EXPECTED


pieces = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [*STREAM, b"\r\n", b"\r\n\r\n", b"GET ", b" HTTP/1.1\r\n", H, b"Transfer-Encoding: chunked\r\n", b"0"]
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, max_size=20))
def test_no_input_raises_an_exception_in_the_connection(packets: list[bytes]) -> None:
    run_packets([packet for packet in packets if packet])
