"""The history of a worker: every deploy is an immutable version, and a rollback returns to one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from control_plane import HELLO, Clock, Engines, Node

from atoll.api.refusals import ApiCode
from atoll.control.store.workers import KEPT_VERSIONS
from atoll.errors import Failure, LoadFailed
from atoll.wire.generated import ErrorCode

Start = Callable[..., Any]


async def three_versions(node: Node, clock: Clock) -> list[str]:
    """Deploys a worker with three versions; returns their ids, oldest first."""
    await node.post(name="hello", script=HELLO, env={"N": 1}, routes=["one.example/*"], message="first", tag="v1")
    clock.now += 60
    await node.put("hello", script=HELLO + "//2", env={"N": 2}, routes=["two.example/*"], message="second")
    clock.now += 60
    await node.put("hello", script=HELLO + "//3", env={"N": 3}, routes=["one.example/*", "three.example"])
    listed = (await node.ask("GET", "/api/workers/hello/versions")).json["versions"]
    return [version["id"] for version in reversed(listed)]


async def test_versions_are_listed_newest_first_with_the_active_one_marked(node: Node, clock: Clock) -> None:
    await three_versions(node, clock)
    versions = (await node.ask("GET", "/api/workers/hello/versions")).json["versions"]
    assert [version["number"] for version in versions] == [3, 2, 1]
    assert [version["active"] for version in versions] == [True, False, False]
    assert [version["message"] for version in versions] == ["", "second", "first"]
    oldest = versions[-1]
    assert (oldest["tag"], oldest["author"], oldest["startup_time_ms"]) == ("v1", "local", 1.5)
    assert oldest["created_at"] == "2027-01-15T08:00:00.500Z"


async def test_a_version_shows_its_modules_with_their_hashes(node: Node, clock: Clock) -> None:
    ids = await three_versions(node, clock)
    by_number = (await node.ask("GET", "/api/workers/hello/versions/2")).json
    assert by_number == (await node.ask("GET", f"/api/workers/hello/versions/{ids[1]}")).json
    source = (HELLO + "//2").encode()
    assert by_number["modules"] == [
        {
            "path": "worker.js",
            "kind": "esm",
            "bytes": len(source),
            "sha256": hashlib.sha256(source).hexdigest(),
            "has_source_map": False,
        }
    ]
    assert by_number["env"] == {"N": 2} and by_number["routes"] == ["two.example/*"] and not by_number["active"]
    assert (by_number["isolation"], by_number["switches"]["allow_eval"]) == ("pool", False)
    for nothing in ("4", "0", "version_other", "9" * 30, "-1", "٣"):
        answer = await node.ask("GET", f"/api/workers/hello/versions/{nothing}")
        assert (answer.status, answer.code) == (404, ApiCode.NOT_FOUND)


async def test_rollback_restores_code_variables_and_routes(start: Start, clock: Clock) -> None:
    async with start() as node:
        ids = await three_versions(node, clock)
        clock.now += 60
        answer = await node.ask("POST", f"/api/workers/hello/versions/{ids[0]}/activate")
        assert answer.status == 200
        assert answer.json["version"]["id"] == ids[0] and answer.json["version"]["number"] == 1
        assert answer.json["env"] == {"N": 1} and answer.json["routes"] == ["one.example/*"]
        assert answer.json["version"]["created_at"] == "2027-01-15T08:00:00.500Z"
        assert answer.json["updated_at"] == "2027-01-15T08:03:00.500Z"
        live = node.live("one.example")
        assert live is not None and live.id == ids[0] and node.live("three.example") is None
    async with start() as node:
        live = node.live("hello.localhost")
        assert live is not None and live.id == ids[0] and node.live("one.example") is live
        worker = (await node.ask("GET", "/api/workers/hello")).json
        assert worker == answer.json


async def test_a_rollback_goes_to_the_version_before_the_active_one(node: Node, engines: Engines, clock: Clock) -> None:
    ids = await three_versions(node, clock)
    newest = node.live("hello.localhost")
    answer = await node.ask("POST", "/api/workers/hello/rollback", {"message": "it was slow"})
    assert answer.json["version"]["id"] == ids[1]
    assert newest in engines.retired
    assert (await node.ask("POST", "/api/workers/hello/rollback", {})).json["version"]["id"] == ids[0]
    answer = await node.ask("POST", "/api/workers/hello/rollback", {})
    assert (answer.status, answer.code) == (404, ApiCode.NOT_FOUND)
    for reference in (3, "3", ids[2]):
        answer = await node.ask("POST", "/api/workers/hello/rollback", {"version": reference})
        assert answer.json["version"]["id"] == ids[2]
    assert (await node.ask("POST", "/api/workers/hello/rollback", {"version": 0})).code == ApiCode.BAD_BODY
    assert (await node.ask("POST", "/api/workers/hello/rollback", {"vresion": 1})).code == ApiCode.BAD_BODY


async def test_a_deploy_after_a_rollback_has_a_new_number_and_is_based_on_the_active_version(
    node: Node, clock: Clock
) -> None:
    await three_versions(node, clock)
    await node.ask("POST", "/api/workers/hello/rollback", {"version": 1})
    answer = (await node.put("hello", limits={"cpu_ms": 9})).json
    assert answer["version"]["number"] == 4 and answer["env"] == {"N": 1}


async def test_rollback_is_refused_if_another_worker_has_the_route_now(node: Node, clock: Clock) -> None:
    await three_versions(node, clock)
    await node.post(name="other", script=HELLO, routes=["two.example/*"])
    answer = await node.ask("POST", "/api/workers/hello/versions/2/activate")
    assert (answer.status, answer.code) == (409, ApiCode.ROUTE_TAKEN)
    live = node.live("hello.localhost")
    assert live is not None and live.env == {"N": 3}


async def test_rollback_to_a_version_that_fails_to_load_is_refused(node: Node, engines: Engines, clock: Clock) -> None:
    await three_versions(node, clock)
    engines.failure = LoadFailed(Failure(ErrorCode.STARTUP, "no"))
    answer = await node.ask("POST", "/api/workers/hello/rollback", {})
    assert (answer.status, answer.code) == (422, ApiCode.VALIDATION)
    worker = (await node.ask("GET", "/api/workers/hello")).json
    assert worker["version"]["number"] == 3


async def test_the_active_version_is_never_deleted(node: Node) -> None:
    await node.post(name="hello", script=HELLO)
    for i in range(KEPT_VERSIONS - 1):
        await node.put("hello", env={"I": i})
    assert (await node.ask("POST", "/api/workers/hello/versions/1/activate")).status == 200
    answer = await node.put("hello", env={"I": "last"})
    assert answer.status == 200 and answer.json["version"]["number"] == KEPT_VERSIONS + 1
    versions = (await node.ask("GET", "/api/workers/hello/versions")).json["versions"]
    assert [version["number"] for version in versions] == list(range(KEPT_VERSIONS + 1, 1, -1))


async def test_every_change_is_in_the_audit_log(node: Node, clock: Clock) -> None:
    ids = await three_versions(node, clock)
    await node.ask("POST", "/api/workers/hello/rollback", {"message": "it was slow"})
    await node.ask("DELETE", "/api/workers/hello")
    await node.put("hello", script=HELLO)  # refused: changes nothing
    lines = node.database.read(lambda c: list(c.execute("SELECT actor, action, target, detail FROM audit ORDER BY id")))
    assert [line[:3] for line in lines] == [
        ("local", f"worker.{act}", "hello") for act in ("create", "update", "update", "activate", "delete")
    ]
    assert lines[3][3] == f"{ids[1]}: it was slow"
