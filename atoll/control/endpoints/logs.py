"""The logs of a worker over HTTP: pages of stored records, and a live stream.

The stream uses server-sent events: one way, plain HTTP, known to every proxy. Its events are `invocation` with a
record, `line` with a console line of a running call (on request), and `dropped` with a count when records came faster
than a listener may receive them. A regular comment keeps proxies from closing an idle stream. The stream ends when the
client disconnects, the worker is deleted or the node stops.
"""

from __future__ import annotations

import asyncio
import datetime
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from atoll.api.callers import Caller, Scope
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import HEADERS, Query, Route, caller_of, json_answer
from atoll.control.store.workers import Deployment
from atoll.logs import Invocation, Said
from atoll.observe.live import REST_SECONDS, Listener
from atoll.observe.records import LogEntry, entry_of, row_of, says
from atoll.observe.sourcemaps import SourceMaps
from atoll.observe.store import LogStore
from atoll.observe.table import FOREVER, Question, TablePlace
from atoll.wire.generated import OUTCOME_NAMES, Level, Outcome

T = TypeVar("T")

MAX_LOGS = 1_000
DEFAULT_LOGS = 100
MAX_TEXT = 200
HEAVY_BYTES = 16 << 10  # bytes of records that the event loop encodes; more go to a thread
SILENCE_SECONDS = 15.0
MAX_STREAMS = 32  # live streams of a tenant
BUSY_STREAMS, ALL_BUSY_STREAMS = 2, 8  # live streams of a tenant, and of all tenants, before each has to pause longer
STREAM_HEADERS = HEADERS | {"x-accel-buffering": "no"}  # nginx must not buffer a live stream

OUTCOMES = {name: number for number, name in OUTCOME_NAMES.items()}
LEVELS = {level.name.lower(): int(level) for level in Level}
CURSOR = re.compile(r"(\d{1,15})-(\d{1,18})", re.ASCII)
PARAMETERS = ("limit", "cursor", "since", "until", "outcome", "level", "text", "version")
LIVE_PARAMETERS = ("outcome", "level", "text", "version", "lines")
TEXT: dict[str, Any] = {"type": "string"}
QUERIES: dict[str, tuple[str, dict[str, Any]]] = {  # description and JSON Schema of each parameter
    "limit": ("The most records in a page", {"type": "integer", "minimum": 1, "maximum": MAX_LOGS}),
    "cursor": ("The `cursor` of the previous page", {"type": "string", "pattern": f"^{CURSOR.pattern}$"}),
    "since": ("Started at or after: ISO 8601, or ms since 1970", TEXT),
    "until": ("Started before: ISO 8601, or ms since 1970", TEXT),
    "outcome": ("The outcome of the call", {"enum": list(OUTCOMES)}),
    "level": ("Logged a line of at least this level", {"enum": list(LEVELS)}),
    "text": ("A console line or the error contains this text", TEXT),
    "version": ("The id of the version", TEXT),
    "lines": ("Send each console line too, as soon as it is logged", {"enum": ["true", "false"]}),
}


class LogsAnswer(msgspec.Struct, omit_defaults=True):
    logs: list[LogEntry]
    dropped: int  # records dropped since the node started, because of the setting log_rate
    cursor: str = ""


class LogsApi:
    def __init__(self, find: Callable[[str, Caller], Deployment], logs: LogStore, maps: SourceMaps) -> None:
        self._find = find
        self._logs = logs
        self.maps = maps
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # by tenant: one search at a time
        self.streams: Counter[str] = Counter()  # open streams, by tenant
        self._heavy = asyncio.Lock()  # held while a thread encodes events of streams

    def routes(self) -> list[Route]:
        path = "/api/workers/{worker}/logs"
        return [
            Route(
                "GET",
                path,
                self.page,
                Scope.LOGS,
                "Stored records, newest first",
                gives=LogsAnswer,
                query=queries(PARAMETERS),
            ),
            Route(
                "GET",
                f"{path}/live",
                self.live,
                Scope.LOGS,
                "A live stream of records, as server-sent events",
                query=queries(LIVE_PARAMETERS),
                media="text/event-stream",
            ),
        ]

    async def page(self, request: Request) -> Response:
        """GET /api/workers/{worker}/logs"""
        worker = self._find(request.path_params["worker"], caller_of(request))
        question = asked(request, worker.id, PARAMETERS)
        async with self._turns[worker.version.tenant]:  # a search may take long: tenants do not wait for each other
            found = await self._logs.find(question)
        await self.maps.map_entries(found.entries, worker.version.tenant)
        cursor = "" if found.rest is None else f"{found.rest.at}-{found.rest.id}"
        answer = LogsAnswer(found.entries, self._logs.dropped(worker.id), cursor)
        return json_answer(answer)

    async def live(self, request: Request) -> Response:
        """GET /api/workers/{worker}/logs/live"""
        worker = self._find(request.path_params["worker"], caller_of(request))
        question = asked(request, worker.id, LIVE_PARAMETERS)
        lines = _word("lines", request.query_params.get("lines", "false"), {"false": 0, "true": 1})
        self.refuse_one_more(worker.version.tenant)
        return StreamingResponse(
            self._events(request, question, lines=bool(lines)), headers=STREAM_HEADERS, media_type="text/event-stream"
        )

    async def _events(self, request: Request, question: Question, *, lines: bool) -> AsyncIterator[bytes]:
        listener = self._logs.listen(question.worker, lines=lines)
        caller = caller_of(request)  # the token was revoked or has expired
        self.streams[caller.tenant] += 1
        watch = asyncio.ensure_future(_close_with_client(request, listener))
        try:
            yield b": listening\n\n"  # the response head is sent with the first piece
            while (came := await listener.next(SILENCE_SECONDS)) is not None and caller.may_still():
                records, dropped = came
                piece = b""
                for some in groups(records):
                    if watch.done():  # the client is gone
                        return
                    weight = sum(map(_weight, some))
                    found = await self.work(weight, _chosen, some, question)
                    await self.maps.map_entries([entry for _, entry in found], caller.tenant)
                    if found and piece:
                        yield piece
                    if found:
                        piece = await self.work(weight, _told, found)
                if dropped:
                    piece += _event("dropped", {"count": dropped})
                yield piece or b": nothing new\n\n"
                await asyncio.sleep(rest_seconds(self.streams[caller.tenant], self.streams.total()))
        finally:
            self.streams[caller.tenant] -= 1
            watch.cancel()
            self._logs.unlisten(question.worker, listener)

    def refuse_one_more(self, tenant: str, asked: int = 0) -> None:
        """`asked` is the number of streams that are not open yet."""
        if self.streams[tenant] + asked >= MAX_STREAMS:
            raise Refused(
                ApiCode.QUOTA,
                f"the tenant has reached the limit of {MAX_STREAMS} open live streams",
                "close one, then try again",
            )

    async def work(self, weight: int, act: Callable[..., T], *args: object) -> T:
        """Encode here, or in a thread if it is much: a call may have logged thousands of lines."""
        if weight <= HEAVY_BYTES:
            return act(*args)
        async with self._heavy:  # one at a time for all streams
            return await asyncio.to_thread(act, *args)


def groups(records: Sequence[Invocation | Said]) -> Iterator[Sequence[Invocation | Said]]:
    """Records in groups that are small enough to be encoded together."""
    group: list[Invocation | Said] = []
    size = 0
    for record in records:
        group.append(record)
        size += _weight(record)
        if size > HEAVY_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _weight(record: Invocation | Said) -> int:
    return len(record.line.text) if isinstance(record, Said) else record.weight()


def _chosen(records: Sequence[Invocation | Said], question: Question) -> list[tuple[Invocation | Said, LogEntry]]:
    """The records that a listener asked for, encoded as events."""
    return [(record, entry) for record in records if (entry := wanted(record, question))]


def _told(found: Sequence[tuple[Invocation | Said, LogEntry]]) -> bytes:
    return b"".join(
        _event("line", _line(entry)) if isinstance(record, Said) else _event("invocation", entry)
        for record, entry in found
    )


def rest_seconds(mine: int, all_there_are: int) -> float:
    """The pause of a listener, which bounds the cost of all streams of a tenant, and of all tenants."""
    return REST_SECONDS * max(1.0, mine / BUSY_STREAMS, all_there_are / ALL_BUSY_STREAMS)


async def _close_with_client(request: Request, listener: Listener) -> None:
    """Notice a disconnected client at once, not with the next record."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    listener.close()


class LineEvent(msgspec.Struct):
    """A console line of a running call."""

    timestamp: str
    level: str
    message: str
    event: str
    version_id: str
    method: str
    url: str


def _line(entry: LogEntry) -> LineEvent:
    said = entry.logs[0]
    return LineEvent(said.timestamp, said.level, said.message, entry.event, entry.version_id, entry.method, entry.url)


def wanted(record: Invocation | Said, question: Question) -> LogEntry | None:
    """A record as it is shown, if the listener asked for it. A console line is a record of a call without an end."""
    if isinstance(record, Said):
        at = record.line.timestamp_ms / 1000
        record = Invocation(record.version, Outcome.OK, 0, 0, 0, at, record.head, (record.line,), event=record.event)
    if question.outcome is not None and record.outcome != question.outcome:
        return None
    if question.version and record.version.id != question.version:
        return None
    row = row_of(record)
    if question.level is not None and row.level < question.level:
        return None
    entry = entry_of(row)
    return entry if not question.text or says(entry, question.text) else None


def _event(kind: str, data: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(data))


# The parameters of a query


def queries(names: Sequence[str]) -> tuple[Query, ...]:
    return tuple(Query(name, *QUERIES[name]) for name in names)


def asked(request: Request, worker_id: str, known: tuple[str, ...]) -> Question:
    """The query of a request as a Question; Refused names the invalid parameter."""
    given = dict(request.query_params)
    for name in given:
        if name not in known:
            raise bad_body(f"there is no parameter `{name[:80]}`", f"the known ones are {', '.join(known)}")
    return Question(
        worker_id,
        limit=_limit(given.get("limit", str(DEFAULT_LOGS))),
        before=_cursor(given["cursor"]) if "cursor" in given else None,
        since=time_of("since", given["since"]) if "since" in given else 0,
        until=time_of("until", given["until"]) if "until" in given else FOREVER,
        outcome=_word("outcome", given["outcome"], OUTCOMES) if "outcome" in given else None,
        level=_word("level", given["level"], LEVELS) if "level" in given else None,
        version=given.get("version", "")[:MAX_TEXT],
        text=given.get("text", "")[:MAX_TEXT],
    )


def _limit(raw: str) -> int:
    if not (raw.isascii() and raw.isdigit() and len(raw) <= 9 and 1 <= int(raw) <= MAX_LOGS):
        raise bad_body(f"`limit` is {raw[:80]!r}", f"use a number from 1 to {MAX_LOGS}")
    return int(raw)


def _cursor(raw: str) -> TablePlace:
    found = CURSOR.fullmatch(raw)
    if found is None:
        raise bad_body(f"`cursor` is {raw[:80]!r}", "use the `cursor` of the previous page, unchanged")
    return TablePlace(int(found[1]), int(found[2]))


def time_of(name: str, raw: str) -> int:
    """A time as ISO 8601, in UTC unless it has an offset, or as milliseconds since 1970."""
    if raw.isascii() and raw.isdigit() and len(raw) <= 15:
        return int(raw)
    try:
        moment = datetime.datetime.fromisoformat(raw.replace(" ", "+"))  # a plus sign in a query is a space
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise bad_body(
            f"`{name}` is {raw[:80]!r}", "use a time such as 2027-01-15T08:00:00Z, or milliseconds since 1970"
        ) from None


def _word(name: str, raw: str, known: dict[str, int]) -> int:
    if raw not in known:
        raise bad_body(f"`{name}` is {raw[:80]!r}", f"use one of {', '.join(known)}")
    return known[raw]
