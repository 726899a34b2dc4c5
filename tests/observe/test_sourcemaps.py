"""Stacks point to the source files, and an invalid map does no harm."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import Failure
from atoll.observe.mapping import BadMap, SourceMap, SourcePlace, decoded, vlq
from atoll.observe.records import ExceptionAnswer, LineAnswer, LogEntry
from atoll.observe.sourcemaps import MAX_MODULES, MAX_PLACES, SourceMaps, mapped_failure, mapped_stack
from atoll.offload.pool import Offload
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
        (1, 9, None),  # the map has no source for this column
        (2, 1, None),
        (3, 1, None),  # before the first segment of the line
        (3, 5, ("src/b.ts", 11, 1)),
        (3, 500, ("src/b.ts", 11, 1)),
        (4, 1, None),
        (0, 0, None),
    ],
)
def test_positions_are_found(line: int, column: int, place: tuple[str, int, int] | None) -> None:
    found = SourceMap(text(MAPPINGS, "../src/a.ts", "../src/b.ts"), "dist/worker.js").original(line, column)
    assert found == (None if place is None else SourcePlace(*place))


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
def test_sources_have_the_names_of_their_author(path: str, root: str, source: str, file: str) -> None:
    found = SourceMap(text("AAAA", source, sourceRoot=root), path).original(1, 1)
    assert found is not None and found.file == file


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b'{"version": 3}', text("AAAA", "a").replace(b"3", b"2", 1), text("!", "a"), text("g", "a"),
     text(",", "a"), text("ggggggggggggggggggggA", "a"), b'{"version":3,"sections":[]}', b"[" * 10_000],
)  # fmt: skip
def test_an_invalid_map_is_ignored(raw: bytes) -> None:
    with pytest.raises(BadMap):
        SourceMap(raw, "worker.js")
    assert decoded({"worker.js": raw}) == {}


@given(st.text("ABCDEFghij+/,;=\n", max_size=200), st.integers(), st.integers())
def test_no_map_can_crash_its_reader(mappings: str, line: int, column: int) -> None:
    for source_map in decoded({"w.js": text(mappings, "a.ts", None)}).values():
        place = source_map.original(line, column)
        assert place is None or (place.line > 0 and place.column > 0)


def test_a_map_with_its_guard_against_scripts_is_read() -> None:
    assert SourceMap(b")]}'\n" + text("AAAA", "a.ts"), "w.js").original(1, 1) == SourcePlace("a.ts", 1, 1)


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


def test_a_failure_keeps_unmapped_frames() -> None:
    maps = decoded({"worker.js": text(MAPPINGS, "a.ts", "b.ts")})
    failure = Failure(ErrorCode.EXCEPTION, "m", "TypeError", STACK, "worker.js", 3, 7)
    mapped = mapped_failure(failure, maps)
    assert (mapped.file, mapped.line, mapped.column, mapped.message) == ("b.ts", 11, 1, "m")
    assert mapped_failure(failure, {}) == failure


def entry(version: str, stack: str = "") -> LogEntry:
    thrown = ExceptionAnswer(2, "Error", "m", "worker.js", 1, 1, stack) if stack else None
    line = LineAnswer("", "error", "Error: x\n    at worker.js:1:6")
    return LogEntry("", "fetch", version, "ok", 200, "GET", "", {}, 0, 0, [line], False, "", thrown)


class Stored:
    """The deployed maps, and the number of reads."""

    def __init__(self, **maps: bytes) -> None:
        self.maps = maps  # by version
        self.read: list[str] = []

    def mapped_paths(self, version_id: str) -> list[str]:
        return list(self.source_maps(version_id))

    def source_maps(self, version_id: str) -> dict[str, bytes]:
        return {"worker.js": self.maps[version_id]} if version_id in self.maps else {}

    async def source_map(self, version_id: str, path: str) -> bytes:
        self.read.append(version_id)
        return self.source_maps(version_id).get(path, b"")


@pytest.fixture
async def offload() -> AsyncIterator[Offload]:
    offload = Offload(1, 256 << 20)
    yield offload
    await offload.close()


def mapping(store: Stored, offload: Offload) -> SourceMaps:
    maps = SourceMaps(store)
    maps.run = lambda job, data, args, tenant: offload.run(job, data, args, tenant=tenant)
    return maps


async def test_a_job_process_reads_a_map_and_positions_are_cached(offload: Offload) -> None:
    store = Stored(v1=text(MAPPINGS, "a.ts"))
    maps = mapping(store, offload)
    first, second, plain = entry("v1", STACK), entry("v1"), entry("plain", STACK)
    await maps.map_entries([first, second, plain, entry("plain")], "alice")
    assert first.exception is not None and (first.exception.file, first.exception.stack.count("a.ts")) == ("a.ts", 2)
    assert first.logs[0].message == second.logs[0].message == "Error: x\n    at a.ts:1:3"
    assert plain.exception is not None and plain.exception.stack == STACK
    again = entry("v1", STACK)
    await maps.map_entries([again], "alice")
    assert again == first and store.read == ["v1"]
    assert maps.failure("v1", Failure(ErrorCode.EXCEPTION, "m", file="worker.js", line=1, column=1)).file == "a.ts"
    draft = Failure(ErrorCode.EXCEPTION, "m", "TypeError", STACK, "worker.js", 1, 1)
    mapped = await maps.map_draft(draft, {"worker.js": text(MAPPINGS, "a.ts")}, "alice")
    assert (mapped.file, mapped.stack.count("a.ts")) == ("a.ts", 2)


@pytest.mark.parametrize("raw", [b"no map", text(";" * 20_000_000, "a.ts")], ids=["broken", "takes too much memory"])
async def test_an_unreadable_map_leaves_the_stack_unchanged(raw: bytes, offload: Offload) -> None:
    store = Stored(v1=raw)
    maps = mapping(store, offload)
    for _ in range(2):
        shown = entry("v1", STACK)
        await maps.map_entries([shown], "alice")
        assert shown == entry("v1", STACK)
    assert store.read == ["v1"], "the same positions are not tried again"


async def test_cached_and_requested_positions_are_bounded(offload: Offload) -> None:
    store = Stored(**{f"v{i}": text(MAPPINGS, "a.ts") for i in range(MAX_MODULES + 5)})
    maps = mapping(store, offload)
    await maps.map_entries([entry(f"v{i}") for i in range(MAX_MODULES + 5)], "alice")
    assert len(store.read) == MAX_MODULES
    many = entry("v0", "Error\n" + "".join(f"    at worker.js:1:{i}\n" for i in range(1, 20_000)))
    await maps.map_entries([many], "alice")
    assert many.exception is not None
    assert len(maps._places) <= MAX_MODULES + MAX_PLACES + 1
    assert many.exception.stack.endswith("at worker.js:1:19999\n"), "frames beyond the limit stay unchanged"


def test_a_text_of_empty_lines_is_parsed_quickly() -> None:
    maps = decoded({"worker.js": text(MAPPINGS, "a.ts")})
    start = time.process_time()
    for lines in (
        "\n" * 256_000,
        " \n" * 128_000,
        "\n    at " * 30_000,
        "    at " + "(" * 250_000,
        "    at " + "a:1:1 " * 40_000,
    ):
        mapped_stack(lines, maps)
    assert time.process_time() - start < 0.5  # a quadratic search takes 10 s


def test_a_large_map_is_read_quickly() -> None:
    raw = text(",".join(["AAAA", "KAAE"] * 100_000), "a.ts")
    start = time.process_time()
    SourceMap(raw, "worker.js")
    assert time.process_time() - start < 3  # about 0.1 s on the author's machine
