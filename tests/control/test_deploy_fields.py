"""Fields of a deploy besides its code: they are checked, stored with the version, and read back after a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from control_plane import HELLO, Engines, Node

from atoll.api.refusals import ApiCode
from atoll.bindings.queue.entries import QueueConsumer
from atoll.bindings.tail.entries import TailConsumer

Start = Callable[..., Any]

FIELDS: dict[str, Any] = {
    "compatibility_flags": ["nodejs_compat"],
    "crons": ["*/5 * * * *", "0 9 * * MON-FRI"],
    "queue_consumers": [{"queue": "jobs", "max_batch_size": 5, "dead_letter_queue": "dead"}],
    "tail_consumers": [{"service": "watcher"}],
}


async def test_events_and_flags_belong_to_the_version(start: Start) -> None:
    async with start() as node:
        answer = await node.post(name="hello", script=HELLO, message="first", tag="v1", **FIELDS)
        assert answer.status == 201
        assert answer.json["crons"] == FIELDS["crons"]
        assert answer.json["queue_consumers"][0]["max_batch_size"] == 5
        assert answer.json["tail_consumers"] == [{"service": "watcher"}]
        assert (answer.json["version"]["message"], answer.json["version"]["tag"]) == ("first", "v1")
    async with start() as node:
        version = node.live("hello.localhost")
        assert version is not None
        assert version.compatibility_flags == ("nodejs_compat",)
        assert version.triggers["crons"] == ("*/5 * * * *", "0 9 * * MON-FRI")
        assert version.triggers["queue_consumers"] == (
            QueueConsumer("jobs", max_batch_size=5, dead_letter_queue="dead"),
        )
        assert version.triggers["tail_consumers"] == (TailConsumer("watcher"),)
        assert (version.tag, version.created_at) == ("v1", 1_800_000_000_500)


async def test_a_put_keeps_events_but_not_message_and_tag(node: Node) -> None:
    await node.post(name="hello", script=HELLO, message="first", tag="v1", **FIELDS)
    answer = (await node.put("hello", script=HELLO + "//2")).json
    assert answer["crons"] == FIELDS["crons"] and answer["compatibility_flags"] == ["nodejs_compat"]
    assert (answer["version"]["message"], answer["version"]["tag"]) == ("", "")
    assert (await node.put("hello", message="only words")).code == ApiCode.BAD_BODY
    assert (await node.put("hello", crons=[])).json["crons"] == []


async def test_source_maps_stay_with_their_code(node: Node) -> None:
    await node.post(name="hello", script=HELLO, source_maps={"worker.js": '{"version":3}'})
    assert node.store.source_maps(live_id(node)) == {"worker.js": b'{"version":3}'}
    await node.put("hello", env={"A": 1})
    assert node.store.source_maps(live_id(node)) == {"worker.js": b'{"version":3}'}
    await node.put("hello", script=HELLO)
    assert node.store.source_maps(live_id(node)) == {}


def live_id(node: Node) -> str:
    version = node.live("hello.localhost")
    assert version is not None
    return version.id


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"compatibility_flags": ["NoSuch Flag"]}, "NoSuch"),
        ({"compatibility_flags": ["a"] * 101}, "101"),
        ({"crons": ["* * * *"]}, "* * * *"),
        ({"crons": ["*\n* * * *"]}, "crons"),
        ({"crons": ["* * * * *"] * 101}, "101"),
        ({"queue_consumers": [{"queue": "Jobs"}]}, "Jobs"),
        ({"queue_consumers": [{}]}, "queue"),
        ({"queue_consumers": [{"queue": "a"}, {"queue": "a"}]}, "twice"),
        ({"queue_consumers": [{"queue": "a", "max_batch_size": 101}]}, "from 1 to 100"),
        ({"queue_consumers": [{"queue": "a", "retry_delay": -1}]}, "retry_delay"),
        ({"queue_consumers": [{"queue": "a", "retry_delay": 86_401}]}, "from 0 to 86400"),
        ({"queue_consumers": [{"queue": "a", "dead_letter_queue": "a"}]}, "its own dead-letter queue"),
        ({"queue_consumers": [{"queue": "a", "max_batchsize": 1}]}, "queue_consumers.max_batchsize"),
        ({"tail_consumers": [{"service": "a b"}]}, "a b"),
        ({"source_maps": {"other.js": "{}"}}, "other.js"),
        ({"message": "x" * 1001}, "message"),
        ({"tag": "a\0b"}, "tag"),
    ],
)
async def test_an_invalid_field_is_refused(node: Node, fields: dict[str, Any], says: str) -> None:
    answer = await node.post(name="hello", script=HELLO, **fields)
    assert (answer.status, answer.code) == (400, ApiCode.BAD_BODY)
    assert says in answer.json["error"]["message"]
    assert node.deployer.all() == []


async def test_a_worker_without_supported_handlers_is_refused(node: Node, engines: Engines) -> None:
    engines.handlers = ("trace", "other")
    answer = await node.post(name="mail", script=HELLO)
    assert (answer.status, answer.code) == (422, ApiCode.UNSUPPORTED_HANDLERS)
    assert "trace, other" in answer.json["error"]["message"] and len(engines.retired) == 1
    engines.handlers = ("trace", "scheduled")
    assert (await node.post(name="mail", script=HELLO)).status == 201


async def test_a_request_from_another_sites_page_is_refused_even_without_an_origin(node: Node) -> None:
    for site in ("cross-site", "same-site"):
        answer = await node.ask("POST", "/api/workers", {"name": "a", "script": HELLO}, sec_fetch_site=site)
        assert (answer.status, answer.code) == (403, ApiCode.FORBIDDEN_ORIGIN)
        link = await node.ask("GET", "/", sec_fetch_site=site, sec_fetch_mode="navigate")
        assert link.status == 200
        deed = await node.ask("GET", "/api/tokens", sec_fetch_site=site, sec_fetch_mode="navigate")
        assert deed.code == ApiCode.FORBIDDEN_ORIGIN, "a link may only read"
    assert (await node.ask("GET", "/api/workers", sec_fetch_site="same-origin")).status == 200
