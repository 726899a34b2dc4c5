"""Conditions, ranges and content codings of files."""

from __future__ import annotations

import pytest

from atoll.assets.media import media_of
from atoll.assets.messages import Wanted, answer_with, chosen_coding, range_of
from atoll.assets.table import AssetFile

FILE = AssetFile("ab" * 32, 1_000, "text/css; charset=utf-8", "", gzip=300, br=200)
TAG = "ab" * 16


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"bytes=0-", (0, 1000)), (b"bytes=0-0", (0, 1)), (b"bytes=990-2000", (990, 1000)), (b"bytes=-10", (990, 1000)),
        (b"bytes=-2000", (0, 1000)), (b"bytes=1000-", (1000, 1000)), (b"bytes=-0", (1000, 1000)),
        (b"bytes=5-4", None), (b"bytes=-", None), (b"bytes=0-1,3-4", None), (b"lines=0-1", None), (b"bytes=a-", None),
        (b"bytes=" + b"9" * 30 + b"-", None),
    ],
)  # fmt: skip
def test_single_ranges(text: bytes, found: tuple[int, int] | None) -> None:
    assert range_of(text, 1000) == found


def test_ranges_are_of_the_plain_file() -> None:
    part = answer_with(FILE, 200, Wanted(range=b"bytes=5-9", accept_encoding=b"br"))
    assert (part.status, part.coding, part.start, part.end) == (206, "", 5, 10)
    assert ("content-range", "bytes 5-9/1000") in part.headers
    assert "cache-control" not in dict(part.headers)
    none = answer_with(FILE, 200, Wanted(range=b"bytes=1000-"))
    assert (none.status, none.end - none.start) == (416, 0) and ("content-range", "bytes */1000") in none.headers
    assert answer_with(FILE, 200, Wanted(range=b"bytes=5-9", if_range=b'"other"')).status == 200
    assert answer_with(FILE, 200, Wanted(range=b"bytes=5-9", if_range=f'"{TAG}"'.encode())).status == 206
    assert answer_with(FILE, 404, Wanted(range=b"bytes=5-9")).status == 404


@pytest.mark.parametrize("tag", [f'"{TAG}"', f'W/"{TAG}"', f'"x", W/"{TAG}"', "*"])
def test_a_known_file_is_not_sent_again(tag: str) -> None:
    found = answer_with(FILE, 200, Wanted(if_none_match=tag.encode(), accept_encoding=b"gzip"))
    assert (found.status, found.end - found.start) == (304, 0)
    assert dict(found.headers)["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    ("accept", "coding"),
    [
        (b"gzip, deflate, br", "br"), (b"gzip", "gzip"), (b"br;q=0, gzip", "gzip"), (b"*", "br"), (b"br;q=0.0", ""),
        (b"*;q=0", ""), (b"identity", ""), (b"", ""), (b"gzip;q=0.5,br;q=0.1", "br"), (b"brx, xgzip", ""),
    ],
)  # fmt: skip
def test_the_coding_is_one_the_client_accepts(accept: bytes, coding: str) -> None:
    assert chosen_coding(FILE, accept) == coding


def test_content_types() -> None:
    for path, media in (
        ("/a.html", "text/html; charset=utf-8"), ("/a.js", "text/javascript; charset=utf-8"),
        ("/a.JSON", "application/json"),
        ("/a.wasm", "application/wasm"), ("/a.svg", "image/svg+xml"), ("/a", ""), ("/a.unknown", ""), ("/.env", ""),
        ("/x.y/a", ""), ("/a.woff2", "font/woff2"),
    ):  # fmt: skip
        assert media_of(path) == media, path
