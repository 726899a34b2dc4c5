"""Stacks lead to the file somebody wrote, and a map that makes no sense does no harm."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import Failure
from atoll.observe.records import ExceptionAnswer, LineAnswer, LogEntry
from atoll.observe.sourcemaps import (
    KEPT_VERSIONS,
    BadMap,
    Place,
    SourceMap,
    SourceMaps,
    decoded,
    mapped_failure,
    mapped_stack,
    vlq,
)
from atoll.wire.generated import ErrorCode


def text(mappings: str, *sources: str | None, **fields: object) -> bytes:
    return json.dumps({"version": 3, "sources": sources, "names": [], "mappings": mappings, **fields}).encode()


# line 1: column 0 is a.ts 1:1, column 5 is a.ts 1:3, column 8 has no source; line 2 is empty; line 3: column 4 is b.ts
MAPPINGS = "AAAA,KAAE,G;;ICUF"


@pytest.mark.parametrize(
    ("segment", "numbers"),
    [("AAAA", (0, 0, 0, 0)), ("C", (1,)), ("D", (-1,)), ("gB", (16,)), ("+/////D", (2147483647,))],
)
def test_numbers_are_read(segment: str, numbers: tuple[int, ...]) -> None:
    assert vlq(segment) == numbers


@pytest.mark.parametrize(
    ("line", "column", "place"),
    [
        (1, 1, ("src/a.ts", 1, 1)),
        (1, 5, ("src/a.ts", 1, 1)),
        (1, 6, ("src/a.ts", 1, 3)),
        (1, 9, None),  # the map says that it came from nowhere
        (2, 1, None),
        (3, 1, None),  # before the first segment of the line
        (3, 5, ("src/b.ts", 11, 1)),
        (3, 500, ("src/b.ts", 11, 1)),
        (4, 1, None),
        (0, 0, None),
    ],
)
def test_places_are_found(line: int, column: int, place: tuple[str, int, int] | None) -> None:
    found = SourceMap(text(MAPPINGS, "../src/a.ts", "../src/b.ts"), "dist/worker.js").original(line, column)
    assert found == (None if place is None else Place(*place))


@pytest.mark.parametrize(
    ("path", "root", "source", "file"),
    [
        ("worker.js", "", "../../src/a.ts", "src/a.ts"),
        ("dist/worker.js", "", "a.ts", "dist/a.ts"),
        ("dist/worker.js", "../lib", "a.ts", "lib/a.ts"),
        ("worker.js", "", "webpack://app/./a.ts", "webpack://app/./a.ts"),
        ("worker.js", "", "a\nb.ts", "a b.ts"),
    ],
)
def test_sources_are_named_as_their_author_knows_them(path: str, root: str, source: str, file: str) -> None:
    found = SourceMap(text("AAAA", source, sourceRoot=root), path).original(1, 1)
    assert found is not None and found.file == file


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b'{"version": 3}', text("AAAA", "a").replace(b"3", b"2", 1), text("!", "a"), text("g", "a"),
     text(",", "a"), text("ggggggggggggggggggggA", "a"), b'{"version":3,"sections":[]}', b"[" * 10_000],
)  # fmt: skip
def test_what_is_no_map_is_left_out(raw: bytes) -> None:
    with pytest.raises(BadMap):
        SourceMap(raw, "worker.js")
    assert decoded({"worker.js": raw}) == {}


@given(st.text("ABCDEFghij+/,;=\n", max_size=200), st.integers(), st.integers())
def test_no_map_breaks_the_one_who_reads_it(mappings: str, line: int, column: int) -> None:
    for source_map in decoded({"w.js": text(mappings, "a.ts", None)}).values():
        place = source_map.original(line, column)
        assert place is None or (place.line > 0 and place.column > 0)


def test_a_map_with_its_guard_against_scripts_is_read() -> None:
    assert SourceMap(b")]}'\n" + text("AAAA", "a.ts"), "w.js").original(1, 1) == Place("a.ts", 1, 1)


STACK = """TypeError: at worker.js:1:1 it said
    at f (worker.js:1:6)
    at worker.js:1:1
    at async Object.fetch (other.js:1:1)
    at Array.map (<anonymous>)"""


def test_every_frame_of_a_stack_is_mapped_and_nothing_else() -> None:
    maps = decoded({"worker.js": text(MAPPINGS, "a.ts", "b.ts")})
    assert mapped_stack(STACK, maps) == (
        "TypeError: at worker.js:1:1 it said\n    at f (a.ts:1:3)\n    at a.ts:1:1\n"
        "    at async Object.fetch (other.js:1:1)\n    at Array.map (<anonymous>)"
    )


def test_a_failure_keeps_what_the_map_does_not_know() -> None:
    maps = decoded({"worker.js": text(MAPPINGS, "a.ts", "b.ts")})
    failure = Failure(ErrorCode.EXCEPTION, "m", "TypeError", STACK, "worker.js", 3, 7)
    mapped = mapped_failure(failure, maps)
    assert (mapped.file, mapped.line, mapped.column, mapped.message) == ("b.ts", 11, 1, "m")
    assert mapped_failure(failure, {}) == failure


def entry(version: str, stack: str = "") -> LogEntry:
    thrown = ExceptionAnswer(2, "Error", "m", "worker.js", 1, 1, stack) if stack else None
    line = LineAnswer("", "error", "Error: x\n    at worker.js:1:6")
    return LogEntry("", "fetch", version, "ok", 200, "GET", "", {}, 0, 0, [line], False, "", thrown)


async def test_maps_are_loaded_once_for_the_versions_looked_at_lately() -> None:
    asked: list[str] = []

    def load(version: str) -> Mapping[str, bytes]:
        asked.append(version)
        return {"worker.js": text(MAPPINGS, "a.ts")} if version != "plain" else {}

    maps = SourceMaps(load)
    first, second, plain = entry("v1", STACK), entry("v1"), entry("plain", STACK)
    await maps.map_entries([first, second, plain, entry("plain")])
    assert asked == ["v1", "plain"]
    assert first.exception is not None and (first.exception.file, first.exception.stack.count("a.ts")) == ("a.ts", 2)
    assert first.logs[0].message == second.logs[0].message == "Error: x\n    at a.ts:1:3"
    assert plain.exception is not None and plain.exception.stack == STACK
    assert maps.failure("v1", Failure(ErrorCode.EXCEPTION, "m", file="worker.js", line=1, column=1)).file == "a.ts"
    for number in range(KEPT_VERSIONS):
        await maps.map_entries([entry(f"later{number}")])
    await maps.map_entries([entry("v1")])
    assert asked.count("v1") == 2, "only so many are kept"


def test_a_large_map_is_read_in_a_moment() -> None:
    raw = text(",".join(["AAAA", "KAAE"] * 100_000), "a.ts")
    start = time.process_time()
    SourceMap(raw, "worker.js")
    assert time.process_time() - start < 3  # about 0.1 s on the machine it was written on
