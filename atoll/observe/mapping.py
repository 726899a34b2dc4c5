"""Source maps (https://tc39.es/ecma426/): from a place in a bundle to its place in the source file.

A map comes from a tenant and may be made to be slow: megabytes of `mappings` become a gigabyte of objects. On a shared
node a job process reads it (`located`), never the event loop.
"""

from __future__ import annotations

import posixpath
from array import array
from bisect import bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from atoll.offload.jobs import Buffer

MAX_SOURCE = 300  # characters of a path
NO_SOURCE = -1

DIGITS = {letter: i for i, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}


class BadMap(Exception):
    """The text is not a source map."""


class SourcePlace(NamedTuple):
    """Lines and columns count from 1, as in editors and V8."""

    file: str
    line: int
    column: int


class MapText(msgspec.Struct):
    """The fields of the JSON that are used."""

    version: int
    sources: list[str | None]
    mappings: str
    sourceRoot: str | None = None


class SourceMap:
    """One decoded map: the start and the source of each segment. Flat arrays, because there are many segments."""

    def __init__(self, raw: bytes, path: str) -> None:
        try:
            text = msgspec.json.decode(raw.removeprefix(b")]}'\n"), type=MapText)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadMap(str(error)) from None
        if text.version != 3:
            raise BadMap(f"version {text.version}")
        root = text.sourceRoot or ""
        self._files = [_resolved(path, root, source or "") for source in text.sources]
        self._line_starts = array("q")  # index of the first segment of each line
        self._columns = array("q")
        self._sources = array("q")
        self._lines = array("q")
        self._source_columns = array("q")
        try:
            self._decode(text.mappings)
        except (KeyError, OverflowError, IndexError) as error:
            raise BadMap(f"mappings: {error}") from None

    def _decode(self, mappings: str) -> None:
        source = line = source_column = 0
        known: dict[str, tuple[int, ...]] = {}  # most segments are one of a few
        for text in mappings.split(";"):
            self._line_starts.append(len(self._columns))
            column = 0
            for segment in text.split(",") if text else ():
                steps = known.get(segment)
                if steps is None:
                    steps = known[segment] = vlq(segment)
                column += steps[0]
                self._columns.append(column)
                if len(steps) >= 4:
                    source += steps[1]
                    line += steps[2]
                    source_column += steps[3]
                self._sources.append(source if len(steps) >= 4 else NO_SOURCE)
                self._lines.append(line)
                self._source_columns.append(source_column)

    def original(self, line: int, column: int) -> SourcePlace | None:
        """The source of a place in the bundle, if the map has it."""
        if not 1 <= line <= len(self._line_starts):
            return None
        low = self._line_starts[line - 1]
        high = self._line_starts[line] if line < len(self._line_starts) else len(self._columns)
        found = bisect_right(self._columns, column - 1, low, high) - 1
        if found < low or not 0 <= self._sources[found] < len(self._files):
            return None
        file = self._files[self._sources[found]]
        place = SourcePlace(file, self._lines[found] + 1, self._source_columns[found] + 1)
        return place if file and place.line > 0 and place.column > 0 else None


def vlq(segment: str) -> tuple[int, ...]:
    """The numbers of a segment: six bits per character; the highest means that more follow, the lowest is the sign."""
    numbers, value, shift = [], 0, 0
    for letter in segment:
        digit = DIGITS[letter]
        value |= (digit & 31) << shift
        if digit & 32:
            shift += 5
            if shift > 60:
                raise OverflowError("a number is too long")
        else:
            numbers.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    if shift or not numbers:
        raise IndexError("a segment is cut off")
    return tuple(numbers)


def _resolved(path: str, root: str, source: str) -> str:
    """The path of a source as its author knows it, without leading `../`."""
    if not source:
        return ""
    whole = posixpath.join(root, source) if root else source
    if "://" not in whole:
        whole = posixpath.normpath(posixpath.join(posixpath.dirname(path), whole))
        while whole.startswith("../"):
            whole = whole[3:]
    return whole[:MAX_SOURCE].replace("\n", " ")


Maps = Mapping[str, SourceMap]  # by path of the module


def decoded(raw: Mapping[str, bytes]) -> dict[str, SourceMap]:
    """The valid maps."""
    maps = {}
    for path, text in raw.items():
        try:
            maps[path] = SourceMap(text, path)
        except BadMap:
            continue
    return maps


def located(data: Buffer, args: dict[str, Any]) -> bytes:
    """A job: finds the sources of places (line and column) in the module `path`. Returns a JSON list of that length."""
    try:
        source_map = SourceMap(bytes(data), args["path"])
    except BadMap:
        return b"[]"
    return msgspec.json.encode([source_map.original(line, column) for line, column in args["places"]])
