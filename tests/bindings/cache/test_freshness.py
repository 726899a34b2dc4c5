# ruff: noqa: E501 (a table reads best with one case on a line)
"""The HTTP rules for caching responses, ranges and conditions."""

from __future__ import annotations

import time

import pytest

from atoll.bindings.cache.freshness import Headers, Span, directives, is_unchanged, keeping, range_of, varying

NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


def head(**fields: str) -> Headers:
    return Headers((name.replace("_", "-"), value) for name, value in fields.items())


@pytest.mark.parametrize(
    ("status", "fields", "seconds"),
    [
        (200, {}, 7200),
        (301, {}, 7200),
        (302, {}, 1200),
        (404, {}, 180),
        (500, {}, None),
        (206, {"cache_control": "max-age=60"}, None),
        (304, {"cache_control": "max-age=60"}, None),
        (500, {"cache_control": "max-age=60"}, 60),
        (200, {"cache_control": "max-age=60"}, 60),
        (200, {"cache_control": "public, MAX-AGE=60, s-maxage=5"}, 5),
        (200, {"cache_control": 'max-age="60"'}, 60),
        (200, {"cache_control": "max-age=60", "age": "50"}, 10),
        (200, {"cache_control": "max-age=60", "age": "60"}, None),
        (200, {"cache_control": "max-age=0"}, None),
        (200, {"cache_control": "max-age=nonsense"}, None),
        (200, {"cache_control": "max-age=99999999999"}, 365 * 86_400),
        (200, {"cache_control": "max-age=" + "9" * 5000}, 365 * 86_400),  # RFC 9111, 1.2.2: the largest supported value
        (200, {"cache_control": "max-age=" + "0" * 20 + "60"}, 60),
        (200, {"cache_control": "no-store, max-age=60"}, None),
        (200, {"cache_control": "private, max-age=60"}, None),
        (200, {"cache_control": "no-cache"}, None),
        (200, {"expires": "Fri, 15 Jan 2027 08:01:00 GMT"}, 60),
        (200, {"expires": "Fri, 15 Jan 2027 08:01:00 GMT", "date": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30),
        (200, {"expires": "0"}, None),
        (200, {"expires": "Fri, 15 Jan 2027 07:00:00 GMT"}, None),
        (200, {"expires": "Fri, 15 Jan 2027 08:01:00 GMT", "cache_control": "max-age=5"}, 5),
        (200, {"vary": "*"}, None),
        (200, {"vary": "accept, *"}, None),
        (200, {"set_cookie": "a=b", "cache_control": "max-age=60"}, None),
        (200, {"set_cookie": "a=b", "cache_control": "max-age=60, private=Set-Cookie"}, 60),
        (200, {"set_cookie": "a=b", "cache_control": 'max-age=60, private="X-A, Set-Cookie"'}, 60),
        (200, {"set_cookie": "a=b", "cache_control": 'max-age=60, no-cache="set-cookie"'}, 60),
    ],
)
def test_a_response_is_cached_as_long_as_its_headers_say(
    status: int, fields: dict[str, str], seconds: int | None
) -> None:
    kept = keeping(status, head(**fields), NOW)
    assert (None if kept is None else kept.seconds) == seconds
    assert kept is None or kept.headers.get("set-cookie") is None


def test_a_fetch_may_set_the_lifetime_but_never_caches_a_cookie() -> None:
    kept = keeping(200, head(cache_control="no-store, private"), NOW, ttl=30)
    assert kept is not None and kept.seconds == 30
    assert keeping(200, head(set_cookie="a=b"), NOW, ttl=30) is None
    assert keeping(200, head(), NOW, ttl=0) is None


def test_directives_are_read_with_quotes_and_oddities() -> None:
    assert directives('a, b=1 ,c="x, y", a=2') == {"a": "", "b": "1", "c": "x, y"}
    assert directives(None) == directives("") == directives(",,") == {}


@pytest.mark.parametrize(
    ("asked", "span"),
    [
        ("bytes=0-3", Span(0, 4)),
        ("bytes=5-", Span(5, 10)),
        ("bytes=-3", Span(7, 10)),
        ("bytes=-30", Span(0, 10)),
        ("bytes=8-100", Span(8, 10)),
        ("BYTES = 0-0", Span(0, 1)),
        ("bytes=10-", Span(10, 10)),
        ("bytes=-0", Span(10, 10)),
        ("bytes=5-2", None),
        ("bytes=0-1,3-4", None),
        ("items=0-1", None),
        ("bytes=-", None),
        ("bytes=a-b", None),
    ],
)
def test_ranges(asked: str, span: Span | None) -> None:
    assert range_of(head(range=asked), head(), 10) == span


def test_a_range_of_another_version_returns_the_complete_response() -> None:
    assert range_of(head(range="bytes=0-1", if_range='"a"'), head(etag='"b"'), 10) is None
    assert range_of(head(range="bytes=0-1", if_range='"a"'), head(etag='"a"'), 10) == Span(0, 2)


@pytest.mark.parametrize(
    ("asked", "kept", "unchanged"),
    [
        ({"if_none_match": '"a"'}, {"etag": '"a"'}, True),
        ({"if_none_match": 'W/"a"'}, {"etag": '"a"'}, True),
        ({"if_none_match": '"b", "a"'}, {"etag": 'W/"a"'}, True),
        ({"if_none_match": '"b"'}, {"etag": '"a"'}, False),
        ({"if_none_match": "*"}, {}, True),
        ({"if_none_match": '"a"'}, {}, False),
        ({"if_modified_since": "Fri, 15 Jan 2027 08:00:00 GMT"}, {"last_modified": "Fri, 15 Jan 2027 08:00:00 GMT"}, True),
        ({"if_modified_since": "Fri, 15 Jan 2027 07:00:00 GMT"}, {"last_modified": "Fri, 15 Jan 2027 08:00:00 GMT"}, False),
        ({"if_modified_since": "nonsense"}, {"last_modified": "Fri, 15 Jan 2027 08:00:00 GMT"}, False),
        ({}, {"etag": '"a"'}, False),
    ],
)  # fmt: skip
def test_conditions(asked: dict[str, str], kept: dict[str, str], unchanged: bool) -> None:
    assert is_unchanged(head(**asked), head(**kept)) is unchanged


def test_what_a_response_varies_by() -> None:
    request = head(accept="text/html", accept_language="de")
    assert varying(request, head(vary="Accept-Language, Accept, X-None")) == [
        ("accept", "text/html"), ("accept-language", "de"), ("x-none", None),
    ]  # fmt: skip


@pytest.mark.parametrize("text", [" " * 200_000 + "x", '"' * 200_000, "a," * 100_000, "=" * 200_000, "W/" * 100_000])
def test_no_header_takes_long_to_read(text: str) -> None:
    began = time.process_time()
    hostile = head(cache_control=text, vary=text, etag=text, if_none_match=text, range=text, expires=text, age=text)
    keeping(200, hostile, NOW)
    is_unchanged(hostile, hostile)
    range_of(hostile, hostile, 10)
    assert time.process_time() - began < 1
