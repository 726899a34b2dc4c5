"""HTTP about a file: conditions, ranges, content codings and header lines. Pure.

An answer in a coding has a weak ETag, because its bytes differ from those of the plain file. A range is always a range
of the plain file.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from atoll.assets.table import Answer, AssetFile, AssetTable

CACHE_CONTROL: Final = "public, max-age=0, must-revalidate"
_RANGE: Final = re.compile(rb"bytes\s*+=\s*+(\d{0,18})\s*+-\s*+(\d{0,18})", re.IGNORECASE)
_TAG: Final = re.compile(rb'(?:W/)?"([^"]*)"')
_CODING: Final = re.compile(rb"(?:\A|,)\s*(br|gzip|x-gzip|\*)\s*(?:;\s*q\s*=\s*([0-9.]{1,5})\s*)?(?=,|\Z)")
MOST_REMEMBERED: Final = 256  # bytes of an Accept-Encoding
SUFFIXES: Final = {"br": ".br", "gzip": ".gz", "": ""}


class Wanted(NamedTuple):
    """The headers of a request that change the answer, in lower case; b"" for those it lacks."""

    if_none_match: bytes = b""
    range: bytes = b""
    if_range: bytes = b""
    accept_encoding: bytes = b""
    authorization: bytes = b""


NOTHING_WANTED: Final = Wanted()


class FileAnswer(NamedTuple):
    """An answer with a file's bytes: from `start` to `end` of the copy in `coding`."""

    status: int
    headers: list[tuple[str, str]]
    coding: str = ""
    start: int = 0
    end: int = 0


def answer_with(file: AssetFile, status: int, wanted: Wanted) -> FileAnswer:
    """The answer to a request for a file. Statuses 304 and 416 carry no bytes of it."""
    is_page = status == 404
    coding = "" if wanted.range and not is_page else chosen_coding(file, wanted.accept_encoding)
    headers = headers_of(file, coding, with_cache=not (wanted.authorization or wanted.range))
    if is_page:
        return FileAnswer(404, headers, coding, 0, size_in(file, coding))
    if wanted.if_none_match and names_tag(wanted.if_none_match, file.etag):
        return FileAnswer(304, [each for each in headers if each[0] != "content-encoding"])
    if wanted.range:
        strong = f'"{file.etag}"'.encode()
        if not wanted.if_range or wanted.if_range == strong:
            part = range_of(wanted.range, file.size)
            if part is not None:
                return _partial(file, part, headers)
    return FileAnswer(status, headers, coding, 0, size_in(file, coding))


def _partial(file: AssetFile, part: tuple[int, int], headers: list[tuple[str, str]]) -> FileAnswer:
    start, end = part
    if start >= end:
        return FileAnswer(416, [*headers, ("content-range", f"bytes */{file.size}")])
    return FileAnswer(206, [*headers, ("content-range", f"bytes {start}-{end - 1}/{file.size}")], "", start, end)


def headers_of(file: AssetFile, coding: str, *, with_cache: bool) -> list[tuple[str, str]]:
    found = [("content-type", file.media)] if file.media else []
    found.append(("etag", f'W/"{file.etag}"' if coding else f'"{file.etag}"'))
    if with_cache:
        found.append(("cache-control", CACHE_CONTROL))
    found.append(("accept-ranges", "bytes"))
    found.append(("cf-cache-status", "HIT"))
    if coding:
        found.append(("content-encoding", coding))
    if file.gzip or file.br:
        found.append(("vary", "Accept-Encoding"))
    return found


def size_in(file: AssetFile, coding: str) -> int:
    return file.br if coding == "br" else file.gzip if coding == "gzip" else file.size


def chosen_coding(file: AssetFile, accept: bytes) -> str:
    """The smallest copy that the client accepts; "" for the plain file."""
    if not accept or not (file.br or file.gzip):
        return ""
    takes_br, takes_gzip = accepted(accept) if len(accept) <= MOST_REMEMBERED else accepted.__wrapped__(accept)
    if file.br and takes_br:
        return "br"
    return "gzip" if file.gzip and takes_gzip else ""


@lru_cache(256)  # clients send few different values
def accepted(accept: bytes) -> tuple[bool, bool]:
    """Whether an Accept-Encoding allows br, and gzip."""
    allowed = {name: quality == b"" or quality.strip(b"0.") != b"" for name, quality in _CODING.findall(accept)}
    rest = allowed.get(b"*", False)
    return allowed.get(b"br", rest), allowed.get(b"gzip", rest)


def names_tag(condition: bytes, etag: str) -> bool:
    """Whether If-None-Match names this ETag, in its strong or weak form."""
    if condition.strip() == b"*":
        return True
    return etag.encode() in _TAG.findall(condition[:8192])


def range_of(text: bytes, size: int) -> tuple[int, int] | None:
    """First byte and end of a single range. None: ignore the header. An empty range: it cannot be satisfied."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        return (max(0, size - int(match[2])), size)
    start, end = int(match[1]), size
    if match[2]:
        if int(match[2]) < start:
            return None
        end = min(size, int(match[2]) + 1)
    return (start, end) if start < size else (size, size)


def plain_headers(answer: Answer) -> list[tuple[str, str]]:
    """The headers of an answer without a file."""
    if answer.location:
        return [("location", answer.location)]
    return [("allow", "GET, HEAD")] if answer.status == 405 else []


def block_of(headers: list[tuple[str, str]]) -> bytes:
    return "".join([f"{name}: {value}\r\n" for name, value in headers]).encode("latin-1", "replace")


def block_for(table: AssetTable, host: str, path: str, headers: list[tuple[str, str]]) -> bytes:
    """The header lines of an answer, after _headers."""
    table.with_headers(host, path, headers)
    return block_of(headers)
