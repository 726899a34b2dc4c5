"""The logs of a worker over HTTP: a page of what is stored, and a stream of what happens now.

The stream is server-sent events: one way, plain HTTP, and every proxy knows it. It tells `invocation` with the record,
`line` with what a call says on its way, to those who ask for that, and `dropped` with a count when they came faster
than a listener is given; a comment now and then keeps proxies from taking silence for death. It ends when the client
goes, the worker is deleted or the node stops.
"""

from __future__ import annotations

import asyncio
import datetime
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from atoll.control.boundary import HEADERS, Query, Route, caller_of, json_answer
from atoll.control.callers import Caller, Scope
from atoll.control.check import bad_body
from atoll.control.refusals import ApiCode, Refused
from atoll.control.workers import Deployment
from atoll.logs import Invocation, Said
from atoll.observe.live import REST_SECONDS, Listener
from atoll.observe.records import LogEntry, entry_of, row_of, says
from atoll.observe.sourcemaps import SourceMaps
from atoll.observe.store import LogStore
from atoll.observe.table import FOREVER, Place, Question
from atoll.wire.generated import OUTCOME_NAMES, Level, Outcome

MAX_LOGS = 1_000
DEFAULT_LOGS = 100
MAX_TEXT = 200
SILENCE_SECONDS = 15.0
MAX_STREAMS = 32  # live ones of a tenant
BUSY_STREAMS, ALL_BUSY_STREAMS = 2, 8  # as many as these of a tenant, and of all, hear of calls without resting longer
STREAM_HEADERS = HEADERS | {"x-accel-buffering": "no"}  # nginx must not gather what is to be seen now

OUTCOMES = {name: number for number, name in OUTCOME_NAMES.items()}
LEVELS = {level.name.lower(): int(level) for level in Level}
CURSOR = re.compile(r"(\d{1,15})-(\d{1,18})", re.ASCII)
PARAMETERS = ("limit", "cursor", "since", "until", "outcome", "level", "text", "version")
LIVE_PARAMETERS = ("outcome", "level", "text", "version", "lines")
TEXT: dict[str, Any] = {"type": "string"}
QUERIES: dict[str, tuple[str, dict[str, Any]]] = {  # what each means, and its JSON Schema
    "limit": ("How many", {"type": "integer", "minimum": 1, "maximum": MAX_LOGS}),
    "cursor": ("Where the answer before ended", {"type": "string", "pattern": f"^{CURSOR.pattern}$"}),
    "since": ("Begun at or after: ISO 8601, or ms since 1970", TEXT),
    "until": ("Begun before: ISO 8601, or ms since 1970", TEXT),
    "outcome": ("How it ended", {"enum": list(OUTCOMES)}),
    "level": ("Said something at least so serious", {"enum": list(LEVELS)}),
    "text": ("Said or failed with these words", TEXT),
    "version": ("Id of the version that ran", TEXT),
    "lines": ("Each console line too, when it is said", {"enum": ["true", "false"]}),
}


class LogsAnswer(msgspec.Struct, omit_defaults=True):
    logs: list[LogEntry]
    dropped: int  # records that were not kept since the node started: more than the setting log_rate
    cursor: str = ""


class LogsApi:
    def __init__(self, find: Callable[[str, Caller], Deployment], logs: LogStore, maps: SourceMaps) -> None:
        self._find = find
        self._logs = logs
        self._maps = maps
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # by tenant: one search at a time
        self._streams: Counter[str] = Counter()  # that are open, by tenant

    def routes(self) -> list[Route]:
        path = "/api/workers/{worker}/logs"
        return [
            Route("GET", path, self.page, Scope.LOGS, "What is stored", gives=LogsAnswer, query=queries(PARAMETERS)),
            Route(
                "GET",
                f"{path}/live",
                self.live,
                Scope.LOGS,
                "What happens now, as server-sent events",
                query=queries(LIVE_PARAMETERS),
                media="text/event-stream",
            ),
        ]

    async def page(self, request: Request) -> Response:
        """GET /api/workers/{worker}/logs"""
        worker = self._find(request.path_params["worker"], caller_of(request))
        question = asked(request, worker.id, PARAMETERS)
        async with self._turns[worker.version.tenant]:  # a search may take long: nobody waits for many of another's
            found = await self._logs.find(question)
        await self._maps.map_entries(found.entries)
        cursor = "" if found.rest is None else f"{found.rest.at}-{found.rest.id}"
        answer = LogsAnswer(found.entries, self._logs.dropped(worker.id), cursor)
        return json_answer(answer)

    async def live(self, request: Request) -> Response:
        """GET /api/workers/{worker}/logs/live"""
        worker = self._find(request.path_params["worker"], caller_of(request))
        question = asked(request, worker.id, LIVE_PARAMETERS)
        lines = _word("lines", request.query_params.get("lines", "false"), {"false": 0, "true": 1})
        if self._streams[worker.version.tenant] >= MAX_STREAMS:
            raise Refused(
                ApiCode.QUOTA, f"the tenant has {MAX_STREAMS} live streams open already", "end one, then try again"
            )
        return StreamingResponse(
            self._events(request, question, lines=bool(lines)), headers=STREAM_HEADERS, media_type="text/event-stream"
        )

    async def _events(self, request: Request, question: Question, *, lines: bool) -> AsyncIterator[bytes]:
        listener = self._logs.listen(question.worker, lines=lines)
        caller = caller_of(request)  # a token that was revoked, or has expired, sees no more
        self._streams[caller.tenant] += 1
        watch = asyncio.ensure_future(_close_with_client(request, listener))
        try:
            yield b": listening\n\n"  # the head of the response leaves with the first piece
            while (came := await listener.next(SILENCE_SECONDS)) is not None and caller.may_still():
                records, dropped = came
                found = [(record, entry) for record in records if (entry := wanted(record, question))]
                await self._maps.map_entries([entry for _, entry in found])
                events = [
                    _event("line", _line(entry)) if isinstance(record, Said) else _event("invocation", entry)
                    for record, entry in found
                ]
                if dropped:
                    events.append(_event("dropped", {"count": dropped}))
                yield b"".join(events) or b": nothing new\n\n"
                await asyncio.sleep(rest_seconds(self._streams[caller.tenant], self._streams.total()))
        finally:
            self._streams[caller.tenant] -= 1
            watch.cancel()
            self._logs.unlisten(question.worker, listener)


def rest_seconds(mine: int, all_there_are: int) -> float:
    """How long a listener rests. All streams of a tenant cost no more than a few, nor do those of all tenants."""
    return REST_SECONDS * max(1.0, mine / BUSY_STREAMS, all_there_are / ALL_BUSY_STREAMS)


async def _close_with_client(request: Request, listener: Listener) -> None:
    """A client that leaves is noticed at once, not with the next record."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    listener.close()


class LineEvent(msgspec.Struct):
    """A console line of a call that goes on."""

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
    """A record as it is shown, if it is one that the listener asked for. A line is one of a call without an end."""
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


# What may be asked


def queries(names: Sequence[str]) -> tuple[Query, ...]:
    return tuple(Query(name, *QUERIES[name]) for name in names)


def asked(request: Request, worker_id: str, known: tuple[str, ...]) -> Question:
    """The query of a request as a Question; Refused names the parameter that makes no sense."""
    given = dict(request.query_params)
    for name in given:
        if name not in known:
            raise bad_body(f"there is no parameter `{name[:80]}`", f"the known ones are {', '.join(known)}")
    return Question(
        worker_id,
        limit=_limit(given.get("limit", str(DEFAULT_LOGS))),
        before=_cursor(given["cursor"]) if "cursor" in given else None,
        since=_time("since", given["since"]) if "since" in given else 0,
        until=_time("until", given["until"]) if "until" in given else FOREVER,
        outcome=_word("outcome", given["outcome"], OUTCOMES) if "outcome" in given else None,
        level=_word("level", given["level"], LEVELS) if "level" in given else None,
        version=given.get("version", "")[:MAX_TEXT],
        text=given.get("text", "")[:MAX_TEXT],
    )


def _limit(raw: str) -> int:
    if not (raw.isascii() and raw.isdigit() and len(raw) <= 9 and 1 <= int(raw) <= MAX_LOGS):
        raise bad_body(f"`limit` is {raw[:80]!r}", f"use a number from 1 to {MAX_LOGS}")
    return int(raw)


def _cursor(raw: str) -> Place:
    found = CURSOR.fullmatch(raw)
    if found is None:
        raise bad_body(f"`cursor` is {raw[:80]!r}", "use the cursor of the answer before, as it was")
    return Place(int(found[1]), int(found[2]))


def _time(name: str, raw: str) -> int:
    """ISO 8601, where UTC is meant unless it says otherwise, or milliseconds since 1970."""
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
