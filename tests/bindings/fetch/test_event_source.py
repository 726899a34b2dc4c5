"""EventSource with a server that closes the connection: events, reconnects, and its end with the request."""

from __future__ import annotations

from collections.abc import Callable

from tests.running import Answer, Atoll
from tests.upstream import Upstream

Run = Callable[..., Answer]


def test_events_of_a_server_that_closes_and_is_reconnected(run: Run, upstream: Upstream) -> None:
    upstream.seen.clear()
    answer = run(
        """const source = new EventSource(UP + "/events");
        const heard = [];
        source.onopen = () => heard.push("open");
        source.addEventListener("tick", ({ data, lastEventId, origin }) => heard.push([data, lastEventId, origin === UP]));
        await new Promise((resolve) => {
          source.onerror = () => { if (source.readyState === EventSource.CLOSED) resolve(); else heard.push("again"); };
        });
        return Response.json(heard);"""
    )
    # The third answer, 204, ends the stream.
    assert answer.json == ["open", ["one", "1", True], "again", "open", ["two", "1", True], "again"]
    asked = [seen for seen in upstream.seen if seen.line.startswith("GET /events")]
    assert [seen.get("last-event-id") for seen in asked] == [None, "1", "1"]
    assert {seen.get("accept") for seen in asked} == {"text/event-stream"}


def test_an_event_source_ends_with_the_request_that_opened_it(run: Run, upstream: Upstream) -> None:
    upstream.seen.clear()
    answer = run(
        """const source = new EventSource(UP + "/silent");
        await scheduler.wait(20);
        return new Response(String(source.readyState));"""
    )
    assert answer.text == "0"
    assert run("return new Response('next');").text == "next"


def test_no_event_source_while_a_worker_is_loaded(node: Atoll) -> None:
    script = 'new EventSource("https://example.com/"); export default { fetch() {} };'
    answer = node.control("POST", "/api/workers", {"name": "early-source", "script": script})
    assert answer.status == 422 and "only while a request is handled" in answer.json["error"]["message"]
