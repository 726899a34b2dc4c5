"""Crons and queues on a whole node: what a deploy may request, what the API shows and does, what a crash costs."""

from __future__ import annotations

import pytest

from tests.running import Atoll

CONSUMER = """export default {
  async fetch(request, env) { await env.JOBS.send(await request.text()); return new Response("sent"); },
  async queue(batch, env) { for (const m of batch.messages) await env.SEEN.put(m.body, "1"); },
};"""
BINDINGS = [
    {"type": "queue", "name": "JOBS", "queue": "crash"},
    {"type": "kv", "name": "SEEN", "namespace": "seen"},
]


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({"crons": ["* * * * 0"]}, 19031, "1 is Sunday"),
        ({"crons": ["* * * * *"]}, 19031, "scheduled"),
        ({"queue_consumers": [{"queue": "x"}]}, 19031, "queue() handler"),
    ],
)
def test_an_invalid_trigger_is_refused(atoll: Atoll, fields: dict[str, object], code: int, text: str) -> None:
    body = {"name": "trig", "script": "export default { fetch() { return new Response(); } }", **fields}
    answer = atoll.control("POST", "/api/workers", body)
    assert answer.json["error"]["code"] == code and text in answer.json["error"]["message"]
    assert atoll.control("GET", "/api/workers/trig").status == 404


def test_a_deploy_creates_the_queues_it_names(atoll: Atoll) -> None:
    consumers = [{"queue": f"made-{i}", "dead_letter_queue": f"made-dead-{i}"} for i in range(5)]
    atoll.deploy("maker", "export default { queue() {} }", queue_consumers=consumers)
    known = {queue["name"] for queue in atoll.control("GET", "/api/queues").json["queues"]}
    assert known >= {name for consumer in consumers for name in consumer.values()}
    assert atoll.control("DELETE", "/api/workers/maker").status == 204


def test_a_queue_has_one_consumer(atoll: Atoll) -> None:
    atoll.deploy("taker", CONSUMER, bindings=BINDINGS, queue_consumers=[{"queue": "only"}])
    body = {"name": "other-taker", "script": CONSUMER, "bindings": BINDINGS, "queue_consumers": [{"queue": "only"}]}
    answer = atoll.control("POST", "/api/workers", body)
    assert answer.status == 409 and "taker" in answer.json["error"]["message"]
    assert atoll.control("DELETE", "/api/queues/only").status == 409
    assert atoll.control("DELETE", "/api/workers/taker").status == 204
    assert atoll.control("DELETE", "/api/queues/only").status == 204


def test_a_queue_can_be_inspected_and_changed_over_http(atoll: Atoll) -> None:
    created = atoll.control("POST", "/api/queues", {"name": "by-hand", "retention_seconds": 60})
    assert created.status == 201 and created.json["waiting"] == 0
    assert atoll.control("POST", "/api/queues", {"name": "by-hand"}).status == 409
    assert atoll.control("POST", "/api/queues", {"name": "Bad Name"}).status == 400
    messages = [{"body": {"a": 1}}, {"body": "aGk=", "content_type": "bytes", "delay_seconds": 9}]
    sent = atoll.control("POST", "/api/queues/by-hand/messages", {"messages": messages})
    assert sent.status == 201 and len(sent.json["ids"]) == 2
    large = atoll.control("POST", "/api/queues/by-hand/messages", {"messages": [{"body": "x" * 90_000}] * 3})
    assert large.status == 400 and "exceeds limit of 256000" in large.text
    shown = atoll.control("GET", "/api/queues/by-hand").json
    assert (shown["waiting"], shown["delayed"], shown["consumer"]) == (1, 1, None)
    looked = atoll.control("GET", "/api/queues/by-hand/messages?limit=1").json
    assert [(seen["body"], seen["attempts"], seen["leased"]) for seen in looked["messages"]] == [({"a": 1}, 0, False)]
    rest = atoll.control("GET", f"/api/queues/by-hand/messages?cursor={looked['cursor']}").json
    assert [(seen["body"], seen["content_type"]) for seen in rest["messages"]] == [
        ("aGk=", "bytes")
    ] and "cursor" not in rest
    changed = atoll.control("PATCH", "/api/queues/by-hand", {"retention_seconds": 120})
    assert changed.json["retention_seconds"] == 120
    assert atoll.control("PATCH", "/api/queues/by-hand", {"retention_seconds": 5}).status == 400
    assert atoll.control("POST", "/api/queues/by-hand/pause").json["paused"] is True
    assert atoll.control("POST", "/api/queues/by-hand/purge").json == {"purged": 2}
    assert atoll.control("POST", "/api/queues/by-hand/messages", {"messages": []}).status == 400
    assert atoll.control("POST", "/api/queues/by-hand/messages", {"massages": []}).status == 400
    assert atoll.control("GET", "/api/queues/nope").status == 404


def test_a_scheduled_handler_can_be_run_manually_and_reports_its_outcome(atoll: Atoll) -> None:
    script = (
        "export default { scheduled(c) { if (c.cron === 'x') throw new Error('bad'); console.log(c.scheduledTime); } }"
    )
    atoll.deploy("by-clock", script)
    assert atoll.control("POST", "/api/workers/by-clock/crons/run", {"scheduled_time": 5}).json["outcome"] == "ok"
    answer = atoll.control("POST", "/api/workers/by-clock/crons/run", {"cron": "x"}).json
    assert answer == {"outcome": "exception", "message": "Error: bad"}
    assert [run["outcome"] for run in atoll.control("GET", "/api/workers/by-clock/crons").json["runs"]] == [
        "exception",
        "ok",
    ]
    assert atoll.control("GET", "/cdn-cgi/handler/scheduled?worker=by-clock&cron=x").status == 500
