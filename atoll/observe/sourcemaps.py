"""Maps the frames of a stack to source files, with the source maps of a version.

A map comes with a deploy and is read only when a stack of that version is shown. If the map is invalid or no job
process is free, the stack stays as it is. A bounded number of mapped frames is cached: errors tend to be thrown at the
same places.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from atoll.errors import Failure
from atoll.observe.mapping import Maps, SourcePlace, decoded
from atoll.observe.records import LogEntry
from atoll.offload.jobs import Job, JobError, ProcessLost, Result, TooManyJobs

KEPT_VERSIONS = 16  # decoded maps of a developer's own node
KEPT_PLACES = 20_000  # of all tenants: some megabytes
KEPT_PATHS = 2_000  # versions whose modules with maps are known
MAX_STACK = 32 << 10  # characters of one text that are searched for frames
MAX_PLACES = 500  # frames of one module that are mapped at once; more stay as they are
MAX_MODULES = 20  # modules whose maps are read for one response
STEP = 5  # entries between two turns of the event loop

LOCATE = Job("atoll.observe.mapping:located")
# `at name (path:line:column)` or `at path:line:column`, at the end of a line of a stack. Blanks, not \s, which would
# match line ends too: quadratic in a text of empty lines.
FRAME = re.compile(r"(?m)^([ \t]+at (?:.*\()?)([^\s()]+):(\d{1,9}):(\d{1,9})(\)?)$")
PLACES = msgspec.json.Decoder(list[tuple[str, int, int] | None])

Look: TypeAlias = Callable[[str, int, int], SourcePlace | None]  # module, line, column
RunJob: TypeAlias = Callable[[Job, bytes, dict[str, object], str], Awaitable[Result]]


class MapStore(Protocol):
    """The store of maps as they were deployed: WorkerStore."""

    def mapped_paths(self, version_id: str) -> Sequence[str]: ...
    def source_maps(self, version_id: str) -> Mapping[str, bytes]: ...
    async def source_map(self, version_id: str, path: str) -> bytes: ...


class StackFrame(NamedTuple):
    version_id: str
    path: str
    line: int
    column: int


def mapped_stack(stack: str, maps: Maps) -> str:
    """A stack, or any text that contains one, with the places replaced that the maps have."""
    return _replaced(stack, _looker(maps))


def mapped_failure(failure: Failure, maps: Maps) -> Failure:
    return _mapped_failure(failure, _looker(maps))


def _looker(maps: Maps) -> Look:
    def look(path: str, line: int, column: int) -> SourcePlace | None:
        source_map = maps.get(path)
        return None if source_map is None else source_map.original(line, column)

    return look


def _replaced(stack: str, look: Look) -> str:
    def place(frame: re.Match[str]) -> str:
        found = look(frame[2], int(frame[3]), int(frame[4]))
        return frame[0] if found is None else f"{frame[1]}{found.file}:{found.line}:{found.column}{frame[5]}"

    return FRAME.sub(place, stack[:MAX_STACK]) + stack[MAX_STACK:]


def _mapped_failure(failure: Failure, look: Look) -> Failure:
    found = look(failure.file, failure.line, failure.column)
    file, line, column = found or (failure.file, failure.line, failure.column)
    return replace(failure, stack=_replaced(failure.stack, look), file=file, line=line, column=column)


def _mapped_entry(entry: LogEntry, look: Look) -> None:
    """Changes the entry in place: it was made for this response."""
    for line in entry.logs:
        if "\n    at " in line.message:
            line.message = _replaced(line.message, look)
    thrown = entry.exception
    if thrown is not None:
        found = look(thrown.file, thrown.line, thrown.column)
        if found is not None:
            thrown.file, thrown.line, thrown.column = found
        thrown.stack = _replaced(thrown.stack, look)


def _frames(stack: str) -> Iterator[tuple[str, int, int]]:
    for frame in FRAME.finditer(stack[:MAX_STACK]):
        yield frame[2], int(frame[3]), int(frame[4])


def _frames_of(entry: LogEntry) -> Iterator[tuple[str, int, int]]:
    for line in entry.logs:
        if "\n    at " in line.message:
            yield from _frames(line.message)
    if entry.exception is not None:
        yield entry.exception.file, entry.exception.line, entry.exception.column
        yield from _frames(entry.exception.stack)


class SourceMaps:
    """The maps of all versions. Once `run` is set, job processes read them."""

    def __init__(self, store: MapStore) -> None:
        self._store = store
        self.run: RunJob | None = None
        self._places: OrderedDict[StackFrame, SourcePlace | None] = OrderedDict()  # least recently used first
        self._paths: OrderedDict[str, frozenset[str]] = OrderedDict()  # with a map, by version id
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # by tenant: one map in memory each
        self._kept: OrderedDict[str, Maps] = OrderedDict()  # by version id
        self._lock = threading.Lock()

    async def map_entries(self, entries: Iterable[LogEntry], tenant: str) -> None:
        """Replace the places in entries of a tenant's worker."""
        mapped = [entry for entry in entries if (entry.exception or entry.logs) and self._has_map(entry.version_id)]
        wanted: dict[tuple[str, str], set[tuple[int, int]]] = {}  # by version and path
        for number, entry in enumerate(mapped, 1):
            for frame in self._unknown(entry):
                module = frame.version_id, frame.path
                places = wanted.setdefault(module, set()) if len(wanted) < MAX_MODULES else wanted.get(module)
                if places is not None and len(places) < MAX_PLACES:
                    places.add((frame.line, frame.column))
            if number % STEP == 0:
                await asyncio.sleep(0)
        for (version_id, path), places in wanted.items():
            await self._locate(version_id, path, sorted(places), tenant)
        for number, entry in enumerate(mapped, 1):
            _mapped_entry(entry, self._known_in(entry.version_id))
            if number % STEP == 0:
                await asyncio.sleep(0)

    async def map_draft(self, failure: Failure, raw: Mapping[str, bytes], tenant: str) -> Failure:
        """A failure of a version that is not stored yet, mapped with the maps of the deploy."""
        places: dict[tuple[str, int, int], SourcePlace | None] = {}
        frames = dict.fromkeys([(failure.file, failure.line, failure.column), *_frames(failure.stack)])
        for path in {path for path, _, _ in frames} & raw.keys():
            wanted = [(line, column) for name, line, column in frames if name == path][:MAX_PLACES]
            found = await self._asked(path, raw[path], wanted, tenant) or [None] * len(wanted)
            places |= {(path, *place): at for place, at in zip(wanted, found, strict=True)}
        return _mapped_failure(failure, lambda *frame: places.get(frame))

    def failure(self, version_id: str, failure: Failure) -> Failure:
        """For error pages of a developer's own node, which may wait for the decoding."""
        with self._lock:
            maps = self._kept.get(version_id)
        if maps is None:
            maps = decoded(self._store.source_maps(version_id))
            with self._lock:
                self._kept[version_id] = maps
                while len(self._kept) > KEPT_VERSIONS:
                    self._kept.popitem(last=False)
        return mapped_failure(failure, maps) if maps else failure

    def _has_map(self, version_id: str) -> bool:
        paths = self._paths.get(version_id)
        if paths is None:
            paths = self._paths[version_id] = frozenset(self._store.mapped_paths(version_id))
            while len(self._paths) > KEPT_PATHS:
                self._paths.popitem(last=False)
        return bool(paths)

    def _unknown(self, entry: LogEntry) -> Iterator[StackFrame]:
        paths = self._paths[entry.version_id]
        for path, line, column in _frames_of(entry):
            frame = StackFrame(entry.version_id, path, line, column)
            if path in paths and frame not in self._places:
                yield frame

    def _known_in(self, version_id: str) -> Look:
        def look(path: str, line: int, column: int) -> SourcePlace | None:
            frame = StackFrame(version_id, path, line, column)
            found = self._places.get(frame)
            if found is not None:
                self._places.move_to_end(frame)
            return found

        return look

    async def _locate(self, version_id: str, path: str, wanted: list[tuple[int, int]], tenant: str) -> None:
        async with self._turns[tenant]:
            raw = await self._store.source_map(version_id, path)
            found = await self._asked(path, raw, wanted, tenant)
        if found is None:
            return
        for (line, column), place in zip(wanted, found, strict=True):
            self._places[StackFrame(version_id, path, line, column)] = place
        while len(self._places) > KEPT_PLACES:
            self._places.popitem(last=False)

    async def _asked(
        self, path: str, raw: bytes, wanted: list[tuple[int, int]], tenant: str
    ) -> list[SourcePlace | None] | None:
        """The source of each place. None if no job process was free, so that a retry may work."""
        if self.run is None:
            return None
        try:
            with await self.run(LOCATE, raw, {"path": path, "places": wanted}, tenant) as result:
                places = PLACES.decode(await result.read())
        except (TooManyJobs, ProcessLost):
            return None
        except JobError:  # the map needs too much time or memory, and would again
            places = []
        return [None if place is None else SourcePlace(*place) for place in places] or [None] * len(wanted)
