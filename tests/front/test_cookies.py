"""A worker cannot set a cookie that clients would send to other tenants' workers. All other cookies pass unchanged."""

from __future__ import annotations

import time

import pytest

from atoll.front.cookies import REFUSED
from atoll.front.http1 import known_blocks, response_bytes, response_head

BASE = "apps.corp.example"

WIDE = [
    "a=1; Domain=apps.corp.example",
    "a=1; Domain=corp.example",
    "a=1; Domain=example",
    "a=1;domain=apps.corp.example",
    "a=1; DOMAIN=APPS.Corp.Example",
    "a=1; Domain=.apps.corp.example",
    "a=1; Domain=..corp.example",
    "a=1; Domain=apps.corp.example.",
    "a=1; Domain=.corp.example..",
    "a=1; \t Domain \t = \t corp.example \t ; Path=/",
    'a=1; Domain="corp.example"',
    "a=1; Domain=apps.corp.example:8080",
    "a=1; Domain=corp.example:",
    "a=1; Secure; HttpOnly; Path=/; Domain=corp.example; SameSite=None",
    "a=1; Domain=shop.apps.corp.example; Domain=corp.example",
    "a=1; Domain=corp.example; Domain=shop.apps.corp.example",
    "a=1; Domain=corp.example; Domain=",
    'a="1; Domain=corp.example"',
    "; Domain=corp.example",
    "a; Domain=corp.example",
    "=; Domain=corp.example",
    "a=1; Domain=%63orp.example",
    "a=1; Domain=\u00ef\u00bd\u0083orp.example",  # a full-width c in UTF-8
    "a=1; Domain=corp\u00e3\u0080\u0082example",  # an ideographic full stop
    "a=1; Domain=corp.example/",
    "a=1; Domain=corp.example, x",
    "a=1; Domain=corp. example",
    "a=1; Domain=x@corp.example",
    "a=1; Domain=corp.example\u00a0",
    "a=" + "1" * 5000 + "; Domain=corp.example",
    "a=1;" + " " * 5000 + "Domain=corp.example",
    "a=1" + "; Domain=shop.example" * 100 + "; Domain=corp.example",
]
NARROW = [
    "a=1",
    "a=1; Path=/; HttpOnly",
    "a=1; Domain=shop.apps.corp.example",
    "a=1; Domain=.shop.apps.corp.example; Secure",
    "a=1; Domain=shop.example",
    "a=1; Domain=example.org",
    "a=1; Domain=corp-example",
    "a=1; Domain=xcorp.example",
    "a=1; Domain=other.corp.example",
    "a=1; Domain=",
    "a=1; Domain",
    "domain=corp.example; Path=/",
    "a=1; Path=/domain=corp.example",
    "a=1; X-Domain=corp.example",
    "a=1; Domain=127.0.0.1",
    "a=1; Domain=[::1]",
    "a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Domain=shop.example",
]


def block_of(*cookies: str, name: str = "Set-Cookie") -> bytes:
    return "".join(f"{name}: {cookie}\r\n" for cookie in cookies).encode("latin-1")


@pytest.mark.parametrize("cookie", WIDE)
@pytest.mark.parametrize("name", ["Set-Cookie", "set-cookie", "SET-COOKIE"])
def test_a_cookie_for_the_base_domain_or_above_is_refused(cookie: str, name: str) -> None:
    kept, plain = block_of("before=1"), b"x: 1\r\n"
    for block in (block_of(cookie, name=name), kept + block_of(cookie, name=name) + plain):
        for _ in range(2):  # the second time from memory
            sent = response_bytes(200, block, b"", b"", b"", BASE)
            assert b"corp" not in sent.split(b"x-atoll-refused-cookie")[0] and sent.count(REFUSED) == 1
            assert (kept in sent and plain in sent) == block.startswith(kept)
            assert sent == response_head(200, block, b"content-length: 0\r\n", b"", b"", BASE)
        assert block not in known_blocks


@pytest.mark.parametrize("cookie", NARROW)
def test_every_other_cookie_passes_unchanged(cookie: str) -> None:
    block = block_of(cookie, "b=2")
    sent = response_bytes(200, block, b"", b"", b"", BASE)
    assert block in sent and REFUSED not in sent


def test_refused_cookies_depend_on_the_node_and_not_on_earlier_requests() -> None:
    block = block_of("a=1; Domain=other.example")
    assert REFUSED not in response_bytes(200, block, b"", b"", b"", BASE)
    assert REFUSED in response_bytes(200, block, b"", b"", b"", "other.example")
    assert REFUSED not in response_bytes(200, block, b"", b"", b"", BASE)


def test_a_reason_phrase_cannot_hide_a_cookie() -> None:
    sent = response_bytes(200, b" Fine\r\n" + block_of("a=1; Domain=corp.example"), b"", b"", b"", BASE)
    assert sent.startswith(b"HTTP/1.1 200 Fine\r\n" + REFUSED)


@pytest.mark.parametrize(
    "line",
    [
        "a=1" + ";" * 120_000,
        "a=1" + "; domain" * 14_000,
        "a=1" + ";domain=" * 14_000,
        "a=1;domain=" + "." * 120_000,
        "a=1;domain=" + " " * 60_000 + '"' * 60_000,
        "a=1;domain=" + "corp.example." * 9_000,
        "a=1" + (";" + " " * 300) * 390,
    ],
)
def test_checking_a_long_cookie_takes_linear_time(line: str) -> None:
    block = block_of(line)
    took = []
    for _ in range(3):  # the fastest of three: others on the same core make one slower, never faster
        began = time.thread_time()
        response_bytes(200, block, b"", b"", b"", BASE)
        took.append(time.thread_time() - began)
    assert min(took) < 0.03
