"""The two hottest functions: bytes -> head of a call, response -> bytes. And the error pages made with the latter."""

from __future__ import annotations

import json

import pytest

from atoll.errors import Failure
from atoll.front import http1
from atoll.front.http1 import BadResponse, Rejection, header, request_head, response_bytes, response_head
from atoll.front.pages import Detail, error_page, refusal_bytes
from atoll.wire.generated import ERRORS, ErrorCode

DATE = b"date: Mon, 16 Nov 2026 09:00:00 GMT\r\n"
HEAD = b"GET /a?b HTTP/1.1\r\nAccept: */*\r\nHOST: W.localhost:8080\r\nX-Host: other\r\n\r\n"


def test_a_request_head_becomes_the_head_of_a_call() -> None:
    assert request_head(HEAD, 100) == (
        b"GET",
        b"w.localhost:8080",
        b"/a?b",
        1,
        b"GET http://w.localhost:8080/a?b\nAccept: */*\r\nHOST: W.localhost:8080\r\nX-Host: other\r\n",
    )


def test_the_minor_version_is_reported() -> None:
    assert request_head(HEAD.replace(b"1.1", b"1.0"), 100)[3] == 0


@pytest.mark.parametrize(
    ("target", "expected"),
    [(b"http://h", b"/"), (b"http://h?q", b"/?q"), (b"HTTPS://H/p?q=http://x/", b"/p?q=http://x/"), (b"//h/", b"//h/")],
)
def test_targets_in_other_forms_become_paths(target: bytes, expected: bytes) -> None:
    _, host, path, _, head = request_head(b"GET %b HTTP/1.1\r\nHost: h\r\n\r\n" % target, 100)
    assert (host, path) == (b"h", expected)
    assert head.startswith(b"GET http://h" + expected + b"\n")


def test_a_url_over_the_limit_is_a_414() -> None:
    with pytest.raises(Rejection) as caught:
        request_head(HEAD, 3)
    assert caught.value.status == 414


def test_a_header_is_found_in_heads_of_requests_and_of_calls() -> None:
    call_head = request_head(HEAD, 100)[4]
    for head in (HEAD.lower(), call_head.lower()):
        assert header(head, b"accept") == b"*/*"
        assert header(head, b"x-host") == b"other"
        assert header(head, b"host") == b"w.localhost:8080"
        assert header(head, b"cookie") is None


def test_a_response_is_framed_by_the_front() -> None:
    assert response_bytes(200, b"a: b\r\n", b"Hello", DATE) == (
        b"HTTP/1.1 200 OK\r\na: b\r\n" + DATE + b"content-length: 5\r\n\r\nHello"
    )
    assert response_bytes(200, b"", b"x" * 5000, b"", http1.CLOSE) == (
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5000\r\n\r\n" + b"x" * 5000
    )
    assert response_bytes(299, b"", b"", b"") == b"HTTP/1.1 299 \r\ncontent-length: 0\r\n\r\n"
    assert response_bytes(204, b"", b"dropped", b"") == b"HTTP/1.1 204 No Content\r\n\r\n"
    assert response_head(200, b"", http1.CHUNKED_BODY, b"").endswith(b"OK\r\ntransfer-encoding: chunked\r\n\r\n")


def test_a_reason_phrase_replaces_the_standard_one() -> None:
    for _ in range(2):
        assert response_bytes(200, b" Fine\t\xff\r\na: b\r\n", b"Hello", DATE) == (
            b"HTTP/1.1 200 Fine\t\xff\r\na: b\r\n" + DATE + b"content-length: 5\r\n\r\nHello"
        )
        assert response_head(204, b" Gone \r\n", b"", b"") == b"HTTP/1.1 204 Gone \r\n\r\n"
    assert not any(block.startswith(b" ") for block in http1.known_blocks)


@pytest.mark.parametrize(
    "head",
    [b" \r\n", b" a\nb\r\n", b" a\rb\r\n", b" a\0\r\n", b" a\x7f\r\n", b" a", b" " + b"a" * 1025 + b"\r\n",
     b" a\r\n b\r\n", b" a\r\nContent-Length: 3\r\n", b"a: b\r\n c\r\n"],
)  # fmt: skip
def test_a_reason_phrase_that_could_inject_headers_is_refused(head: bytes) -> None:
    for _ in range(2):
        with pytest.raises(BadResponse):
            response_bytes(200, head, b"", DATE)
        with pytest.raises(BadResponse):
            response_head(200, head, b"", DATE)


def test_a_date_of_the_worker_is_kept_and_not_doubled() -> None:
    for block in (b"Date: now\r\n", b"a: b\r\ndate: now\r\n"):
        assert response_bytes(200, block, b"", DATE).lower().count(b"date:") == 1
    assert response_bytes(200, b"x-date: now\r\n", b"", DATE).count(DATE) == 1


def test_a_bad_block_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(BadResponse):
            response_bytes(200, b"content-length: 1\r\n", b"", DATE)
        with pytest.raises(BadResponse):
            response_head(200, b"x\r\n", b"", DATE)


def test_the_cache_of_valid_blocks_is_bounded() -> None:
    for number in range(3 * http1.MAX_KNOWN_BLOCKS):
        response_bytes(200, b"x: %d\r\n" % number, b"", DATE)
        assert len(http1.known_blocks) <= http1.MAX_KNOWN_BLOCKS
    response_bytes(200, b"x: " + b"y" * 5000 + b"\r\n", b"", DATE)
    assert max(map(len, http1.known_blocks)) <= http1.MAX_KNOWN_BLOCK


@pytest.mark.parametrize("code", list(ErrorCode))
@pytest.mark.parametrize("accept", [b"text/html,*/*", b"application/json", b"*/*", b""])
def test_every_failure_has_a_page_that_may_be_sent(code: ErrorCode, accept: bytes) -> None:
    page = error_page(Failure(code, "<b>Ünsafe</b>\r\nx: y", stack="at secret.js"), accept, Detail.MESSAGES)
    response_bytes(page.status, page.block, page.body, DATE)
    assert page.status == ERRORS[code].status
    assert b"x-atoll-error: %d\r\n" % ERRORS[code].page in page.block
    assert (b"retry-after: 1\r\n" in page.block) is (page.status in (429, 503))
    assert b"secret.js" not in page.body
    if accept.startswith(b"text/html"):
        assert b"<b>" not in page.body
    if b"json" in accept:
        assert json.loads(page.body)["error"]["name"] == code.name


def test_stacks_and_internal_errors_are_shown_in_development_only() -> None:
    failure = Failure(ErrorCode.INTERNAL, "the secret reason", stack="at secret.js")
    assert b"secret" not in error_page(failure, b"", Detail.MESSAGES).body
    shown = error_page(failure, b"", Detail.STACKS).body
    assert b"the secret reason" in shown and b"at secret.js" in shown


def test_an_exception_is_shown_with_its_name() -> None:
    failure = Failure(ErrorCode.EXCEPTION, "x is not defined", name="ReferenceError")
    page = error_page(failure, b"", Detail.MESSAGES)
    assert page.body == b"error 1101: The worker threw an exception\nReferenceError: x is not defined\n"


def test_clients_see_exceeded_limits_but_not_exceptions() -> None:
    thrown = Failure(ErrorCode.EXCEPTION, "no user alice in table users", name="DatabaseError")
    assert b"alice" not in error_page(thrown, b"", Detail.PUBLIC).body
    limit = Failure(ErrorCode.CPU, "used 51 ms of CPU, limit 50 ms")
    assert b"limit 50 ms" in error_page(limit, b"", Detail.PUBLIC).body


def test_a_refusal_closes_the_connection() -> None:
    answer = refusal_bytes(400, "no", DATE)
    assert b"connection: close\r\n" in answer
    assert answer.endswith(b"400 Bad Request: no\n")
