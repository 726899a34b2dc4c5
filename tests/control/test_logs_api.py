"""The logs endpoints: what they show and refuse, and live streams."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from control_plane import HELLO, Clock, Node

from atoll.api.refusals import ApiCode
from atoll.control.endpoints import logs as logs_api
from atoll.control.endpoints.logs import rest_seconds
from atoll.errors import Failure
from atoll.logs import Invocation, LogLine
from atoll.observe.live import REST_SECONDS
from atoll.observe.table import Found, Question
from atoll.wire.generated import ErrorCode, Level, Outcome
from atoll.workers import Version

HEAD = b"GET http://h/\xe9\nHost: h\r\nCookie: id=1\r\n"


async def deployed(node: Node, name: str = "hello") -> Version:
    worker_id = (await node.post(name=name, script=HELLO)).json["id"]
    return Version("v", worker_id, name, "default", (), "worker.js")


def call(version: Version, number: int, failure: Failure | None = None) -> Invocation:
    outcome = Outcome.EXCEPTION if failure else Outcome.OK
    line = LogLine(1_800_000_000_000.0, Level.WARN, f"line {number}")
    return Invocation(version, outcome, 200, 1500, 2500, 1.8e9 + number / 10, HEAD, [line], failure)


async def test_logs_are_the_newest_records_first(node: Node) -> None:
    version = await deployed(node)
    for i in range(3):
        failure = Failure(ErrorCode.EXCEPTION, "boom", "TypeError", "at x", "worker.js", 1, 2) if i == 2 else None
        node.logs.record(call(version, i, failure))
    answer = await node.ask("GET", "/api/workers/hello/logs?limit=2")
    first, second = answer.json["logs"]
    assert first["outcome"] == "exception"
    assert first["exception"] == {
        "code": ErrorCode.EXCEPTION,
        "type": "TypeError",
        "message": "boom",
        "file": "worker.js",
        "line": 1,
        "column": 2,
        "stack": "at x",
    }
    assert second == {
        "timestamp": "2027-01-15T08:00:00.100Z",
        "event": "fetch",
        "version_id": "v",
        "outcome": "ok",
        "status": 200,
        "method": "GET",
        "url": "http://h/é",
        "headers": {"host": "h", "cookie": "REDACTED"},
        "cpu_ms": 1.5,
        "wall_ms": 2.5,
        "logs": [{"timestamp": "2027-01-15T08:00:00.000Z", "level": "warn", "message": "line 1"}],
        "truncated": False,
    }
    rest = (await node.ask("GET", f"/api/workers/hello/logs?cursor={answer.json['cursor']}")).json
    assert [entry["logs"][0]["message"] for entry in rest["logs"]] == ["line 0"]
    assert "cursor" not in rest and rest["dropped"] == 0


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("since=2027-01-15T08:00:00.1Z", ["line 2", "line 1"]),
        ("since=2027-01-15T09:00:00.1+01:00", ["line 2", "line 1"]),
        ("until=1800000000100", ["line 0"]),
        ("outcome=exception", ["line 2"]),
        ("level=error", ["line 2"]),
        ("level=warn&limit=1", ["line 2"]),
        ("text=LINE%201", ["line 1"]),
        ("version=v", ["line 2", "line 1", "line 0"]),
        ("version=w", []),
    ],
)
async def test_logs_can_be_filtered(node: Node, query: str, lines: list[str]) -> None:
    version = await deployed(node)
    for i in range(3):
        node.logs.record(call(version, i, Failure(ErrorCode.EXCEPTION, "boom") if i == 2 else None))
    answer = await node.ask("GET", f"/api/workers/hello/logs?{query}")
    assert [entry["logs"][0]["message"] for entry in answer.json["logs"]] == lines


@pytest.mark.parametrize(
    "query",
    [*(f"limit={limit}" for limit in ("0", "1001", "-1", "x", "", "9" * 5000, "000000001000000", "%C2%B2")),
     "cursor=x", "cursor=1-2-3", "since=yesterday", "until=99999-01-01", "since=",
     "outcome=OK", "level=loud", "order=asc"],
)  # fmt: skip
async def test_an_invalid_query_is_refused(node: Node, query: str) -> None:
    await node.post(name="hello", script=HELLO)
    answer = await node.ask("GET", f"/api/workers/hello/logs?{query}")
    assert (answer.status, answer.code) == (400, ApiCode.BAD_BODY)
    assert query.partition("=")[0] in answer.json["error"]["message"] and answer.json["error"]["hint"]


async def test_a_worker_that_does_not_exist_has_no_logs(node: Node) -> None:
    assert (await node.ask("GET", "/api/workers/none/logs")).code == ApiCode.NO_WORKER
    assert (await node.ask("GET", "/api/workers/none/logs/live")).code == ApiCode.NO_WORKER
    assert (await node.ask("GET", "/api/workers/none/logs/live?limit=1")).code == ApiCode.NO_WORKER


async def test_the_logs_of_a_worker_are_deleted_with_it(node: Node) -> None:
    version = await deployed(node)
    node.logs.record(call(version, 1))
    await node.ask("DELETE", "/api/workers/hello")
    again = await deployed(node)
    node.logs.record(call(version, 2))  # a call that was still running
    assert (await node.ask("GET", "/api/workers/hello/logs")).json["logs"] == []
    assert again.worker_id != version.worker_id


async def test_a_stream_sends_records_and_ends_with_the_worker(node: Node) -> None:
    version = await deployed(node)
    stream = Stream(node, "/api/workers/hello/logs/live", "level=error")
    assert await stream.next() == b": listening\n\n"
    node.logs.record(call(version, 1))
    node.logs.record(call(version, 2, Failure(ErrorCode.EXCEPTION, "boom")))
    event = (await stream.next()).decode()
    assert event.startswith("event: invocation\ndata: {") and event.endswith("}\n\n")
    assert "line 2" in event and "line 1" not in event
    for number in range(150):
        node.logs.record(call(version, number, Failure(ErrorCode.EXCEPTION, "boom")))
    events = (await stream.next()).decode()
    assert events.count("event: invocation") == 50
    assert events.endswith('event: dropped\ndata: {"count":100}\n\n')
    await node.ask("DELETE", "/api/workers/hello")
    assert await stream.next() == b""
    await stream.task


async def test_a_stream_and_its_listener_end_when_the_client_disconnects(node: Node) -> None:
    await deployed(node)
    stream = Stream(node, "/api/workers/hello/logs/live")
    await stream.next()
    assert node.logs.counts() == (0, 1)
    stream.leave.set()
    await asyncio.wait_for(stream.task, 5)
    assert node.logs.counts() == (0, 0)


class Stream:
    """A request whose answer continues."""

    def __init__(self, node: Node, path: str, query: str = "", token: str = "") -> None:
        self.pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self.leave = asyncio.Event()
        shown = [(b"authorization", f"Bearer {token}".encode())] if token else []
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": "GET",
            "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [(b"host", b"localhost:8080"), *shown], "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8080),
        }  # fmt: skip
        self.task = asyncio.ensure_future(node.api.app(scope, self.receive, self.send))

    async def receive(self) -> dict[str, Any]:
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def send(self, event: Any) -> None:
        if event["type"] == "http.response.body":
            self.pieces.put_nowait(event.get("body", b""))

    async def next(self) -> bytes:
        return await asyncio.wait_for(self.pieces.get(), 5)


@pytest.mark.parametrize("end", ["expired", "revoked"])
async def test_a_stream_ends_with_its_token(node: Node, clock: Clock, end: str) -> None:
    version = await deployed(node)
    token = (await node.ask("POST", "/api/tokens", {"name": "watcher", "scopes": ["logs"], "expires_in": 60})).json
    stream = Stream(node, "/api/workers/hello/logs/live", token=token["token"])
    assert await stream.next() == b": listening\n\n"
    node.logs.record(call(version, 1))
    assert b"line 1" in await stream.next()
    if end == "expired":
        clock.now += 61
    else:
        assert (await node.ask("DELETE", f"/api/tokens/{token['id']}")).status == 204
    node.logs.record(call(version, 2))
    assert await stream.next() == b"", "the stream ends without further events"
    await asyncio.wait_for(stream.task, 5)
    assert node.logs.counts()[1] == 0


async def test_the_streams_of_a_tenant_are_bounded_and_pause_longer_the_more_there_are(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs_api, "MAX_STREAMS", 4)
    version = await deployed(node)
    rests: list[float] = []
    monkeypatch.setattr(logs_api, "rest_seconds", lambda *counts: rests.append(rest_seconds(*counts)) or 0.0)
    path = "/api/workers/hello/logs/live"
    streams = []
    for _ in range(4):
        streams.append(Stream(node, path))
        await streams[-1].next()
    node.logs.record(call(version, 1))
    for stream in streams:
        assert b"line 1" in await stream.next()
    assert rests == [2 * REST_SECONDS] * 4
    assert rest_seconds(1, 1) == rest_seconds(2, 8) == REST_SECONDS and rest_seconds(1, 80) == 10 * REST_SECONDS
    refused = await node.ask("GET", path)
    assert (refused.status, refused.code) == (403, ApiCode.QUOTA)
    streams[0].leave.set()
    await asyncio.wait_for(streams[0].task, 5)
    streams[0] = Stream(node, path)
    assert await streams[0].next() == b": listening\n\n", "one stream ended, so another may start"
    for stream in streams:
        stream.leave.set()
        await asyncio.wait_for(stream.task, 5)


async def test_a_tenant_runs_one_search_at_a_time(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one search runs at a time and may take long: another tenant waits for one of them, not for all."""
    await deployed(node)
    await node.ask("POST", "/api/tenants", {"name": "other"})
    await node.ask("POST", "/api/workers", {"name": "theirs", "script": HELLO}, x_atoll_tenant="other")
    find, order = node.logs.find, []

    async def told(question: Question) -> Found:
        found = await find(question)
        order.append(question.text)
        return found

    monkeypatch.setattr(node.logs, "find", told)
    many = [node.ask("GET", "/api/workers/hello/logs?text=mine") for _ in range(8)]
    theirs = node.ask("GET", "/api/workers/theirs/logs?text=theirs", x_atoll_tenant="other")
    answers = await asyncio.gather(*many, theirs)
    assert {answer.status for answer in answers} == {200}
    assert order.index("theirs") <= 2
