"""An operator's view of a whole node: its settings, its audit log, and rollback after a deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.running import Answer, Atoll

HELLO = 'export default { fetch() { return new Response("hi"); } }'


def audit(atoll: Atoll, count: int) -> list[tuple[str, str, str]]:
    """The newest lines of the audit log, oldest first."""
    lines: list[dict[str, Any]] = atoll.control("GET", f"/api/audit?limit={count}").json["audit"]
    return [(line["action"], line["target"], line["detail"]) for line in reversed(lines)]


def send(atoll: Atoll, method: str, path: str, body: str, kind: str) -> Answer:
    return atoll.request(method, f"localhost:{atoll.port}", path, body, {"Content-Type": kind})


def test_changes_of_binding_data_are_in_the_audit_log(atoll: Atoll) -> None:
    atoll.deploy("keeper", """export default { async fetch(request) {
      await caches.default.put("http://k.example/", new Response("x", { headers: { "cache-control": "max-age=60" } }));
      return new Response();
    }, scheduled() {} }""")  # fmt: skip
    assert atoll.get("keeper").status == 200
    steps: list[tuple[str, str, Any]] = [
        ("POST", "/api/kv", {"name": "audited"}),
        ("POST", "/api/kv/audited/bulk", [{"key": "a", "value": "hidden-value"}, {"key": "b", "value": "2"}]),
        ("POST", "/api/kv/audited/bulk/delete", ["a"]),
        ("DELETE", "/api/kv/audited/values/b", None),
        ("DELETE", "/api/kv/audited", None),
        ("POST", "/api/queues", {"name": "audited"}),
        ("POST", "/api/queues/audited/messages", {"messages": [{"body": "hidden-value"}]}),
        ("POST", "/api/queues/audited/pause", None),
        ("POST", "/api/queues/audited/resume", None),
        ("POST", "/api/queues/audited/purge", None),
        ("DELETE", "/api/queues/audited", None),
        ("DELETE", "/api/caches/default", None),
        ("POST", "/api/workers/keeper/crons/run", {"cron": "0 0 * * *"}),
    ]
    for method, path, body in steps:
        if path == "/api/kv/audited/bulk/delete":
            assert send(atoll, "PUT", "/api/kv/audited/values/c", "hidden-value", "text/plain").status == 204
        answer = atoll.control(method, path, body)
        assert answer.status < 300, f"{method} {path}: {answer.text}"
    lines = audit(atoll, len(steps) + 1)
    assert lines == [
        ("kv.create", "audited", ""), ("kv.bulk-put", "audited", "2 keys"), ("kv.put", "audited", "c"),
        ("kv.bulk-delete", "audited", "1 keys"), ("kv.delete", "audited", "b"), ("kv.drop", "audited", ""),
        ("queue.create", "audited", ""), ("queue.send", "audited", "1 messages"), ("queue.pause", "audited", ""),
        ("queue.resume", "audited", ""), ("queue.purge", "audited", ""), ("queue.delete", "audited", ""),
        ("cache.clear", "default", ""), ("cron.run", "keeper", "0 0 * * *"),
    ]  # fmt: skip
    assert "hidden-value" not in str(lines)


def test_rollback_to_a_version_with_a_deleted_namespace_needs_force(atoll: Atoll) -> None:
    bindings = [{"type": "kv", "name": "KV", "namespace": "was-here"}]
    atoll.deploy("bound", HELLO, bindings=bindings)
    atoll.deploy("bound", HELLO, bindings=[])
    assert atoll.control("DELETE", "/api/kv/was-here").status == 204
    answer = atoll.control("POST", "/api/workers/bound/rollback", {})
    assert (answer.status, answer.json["error"]["code"]) == (409, 10056) and "KV" in answer.text
    assert atoll.control("POST", "/api/workers/bound/rollback", {"force": True}).status == 200
    assert atoll.control("GET", "/api/kv/was-here").json["keys"] == 0


def test_a_worker_with_only_unknown_handlers_is_refused(atoll: Atoll) -> None:
    body = {"name": "mailer", "script": "export default { trace() {} }"}
    answer = atoll.control("POST", "/api/workers", body)
    assert (answer.status, answer.json["error"]["code"]) == (422, 10069)
    assert atoll.control("POST", "/api/workers", {**body, "script": "export default {}"}).json["error"]["code"] == 10068


def test_a_node_reports_its_settings_and_their_sources(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1, otlp_endpoint="http://user:hunter2@localhost:4318/v1/traces", log_days=3)
    answer = atoll.control("GET", "/api/config")
    found = {setting["name"]: setting for setting in answer.json["settings"]}
    assert found["port"]["value"] == str(atoll.port)
    assert (found["log_days"]["value"], found["log_days"]["origin"]) == ("3.0", "--log-days")
    assert (found["spares"]["value"], found["spares"]["origin"]) == ("4", "default")
    assert found["log_rate"]["env"] == "ATOLL_LOG_RATE" and found["log_rate"]["doc"]
    assert "hunter2" not in answer.text and "REDACTED" in found["otlp_endpoint"]["value"]
