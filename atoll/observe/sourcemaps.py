"""From a place in a bundle to the place in the file that somebody wrote.

A source map (https://tc39.es/ecma426/) comes with a deploy, and is read only when a stack of that version is shown.
It is the tenant's word: whatever is wrong with it, the stack stays as it was. Those used lately are kept.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
import threading
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import msgspec

from atoll.errors import Failure
from atoll.observe.records import LogEntry

KEPT_VERSIONS = 16
MAX_SOURCE = 300  # letters of a path
NO_SOURCE = -1

DIGITS = {letter: i for i, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}
# `at name (path:line:column)` or `at path:line:column`, at the end of a line of a stack
FRAME = re.compile(r"(?m)^(\s+at (?:.*\()?)([^\s()]+):(\d{1,9}):(\d{1,9})(\)?)$")


class BadMap(Exception):
    """A text is no source map."""


class Place(NamedTuple):
    """Lines and columns count from 1, as people and V8 do."""

    file: str
    line: int
    column: int


class MapText(msgspec.Struct):
    """What is used of the JSON."""

    version: int
    sources: list[str | None]
    mappings: str
    sourceRoot: str | None = None


class SourceMap:
    """One map, decoded: for each segment where it begins, and where it came from. Flat arrays: there are many."""

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

    def original(self, line: int, column: int) -> Place | None:
        """Where a place of the bundle came from, if the map knows."""
        if not 1 <= line <= len(self._line_starts):
            return None
        low = self._line_starts[line - 1]
        high = self._line_starts[line] if line < len(self._line_starts) else len(self._columns)
        found = bisect_right(self._columns, column - 1, low, high) - 1
        if found < low or not 0 <= self._sources[found] < len(self._files):
            return None
        file = self._files[self._sources[found]]
        place = Place(file, self._lines[found] + 1, self._source_columns[found] + 1)
        return place if file and place.line > 0 and place.column > 0 else None


def vlq(segment: str) -> tuple[int, ...]:
    """The numbers of a segment: six bits a letter, the highest says that more follow, the lowest of all is the sign."""
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
    """The path of a source as its author knows it: beside the bundle, without the way up from it."""
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
    """The maps that can be read."""
    maps = {}
    for path, text in raw.items():
        try:
            maps[path] = SourceMap(text, path)
        except BadMap:
            continue
    return maps


def mapped_stack(stack: str, maps: Maps) -> str:
    """A stack with the places the maps know replaced. Also any text that has one in it."""

    def place(frame: re.Match[str]) -> str:
        source_map = maps.get(frame[2])
        found = source_map.original(int(frame[3]), int(frame[4])) if source_map is not None else None
        return frame[0] if found is None else f"{frame[1]}{found.file}:{found.line}:{found.column}{frame[5]}"

    return FRAME.sub(place, stack)


def mapped_failure(failure: Failure, maps: Maps) -> Failure:
    source_map = maps.get(failure.file)
    found = source_map.original(failure.line, failure.column) if source_map is not None else None
    file, line, column = found or (failure.file, failure.line, failure.column)
    return replace(failure, stack=mapped_stack(failure.stack, maps), file=file, line=line, column=column)


def mapped_entry(entry: LogEntry, maps: Maps) -> None:
    """In place: an entry was made for whoever reads it."""
    for line in entry.logs:
        if "\n    at " in line.message:
            line.message = mapped_stack(line.message, maps)
    thrown = entry.exception
    if thrown is not None:
        source_map = maps.get(thrown.file)
        found = source_map.original(thrown.line, thrown.column) if source_map is not None else None
        if found is not None:
            thrown.file, thrown.line, thrown.column = found
        thrown.stack = mapped_stack(thrown.stack, maps)


class SourceMaps:
    """The maps of the versions that were looked at lately. `load` gives those of a version as they were deployed."""

    def __init__(self, load: Callable[[str], Mapping[str, bytes]]) -> None:
        self._load = load
        self._kept: OrderedDict[str, Maps] = OrderedDict()  # by version id, least recently used first
        self._lock = threading.Lock()

    async def map_entries(self, entries: Iterable[LogEntry]) -> None:
        """Decoding takes a while, so that is done beside the event loop."""
        for entry in entries:
            if entry.exception is None and not entry.logs:
                continue
            maps = self._known(entry.version_id)
            if maps is None:
                raw = self._load(entry.version_id)
                maps = await asyncio.to_thread(decoded, raw) if raw else {}
                self._keep(entry.version_id, maps)
            if maps:
                mapped_entry(entry, maps)

    def failure(self, version_id: str, failure: Failure) -> Failure:
        """For pages of a developer's own node, which may wait for it."""
        maps = self._known(version_id)
        if maps is None:
            maps = decoded(self._load(version_id))
            self._keep(version_id, maps)
        return mapped_failure(failure, maps) if maps else failure

    def _known(self, version_id: str) -> Maps | None:
        with self._lock:
            maps = self._kept.get(version_id)
            if maps is not None:
                self._kept.move_to_end(version_id)
            return maps

    def _keep(self, version_id: str, maps: Maps) -> None:
        with self._lock:
            self._kept[version_id] = maps
            while len(self._kept) > KEPT_VERSIONS:
                self._kept.popitem(last=False)
