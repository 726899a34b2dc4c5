"""Versions without traffic, and deployments that split the traffic between versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from control_plane import HELLO, Answer, Clock, Engines, Node

from atoll.api.refusals import ApiCode
from atoll.control.store.deployment_rows import KEPT_DEPLOYMENTS
from atoll.control.store.workers import KEPT_VERSIONS
from atoll.errors import Failure, LoadFailed
from atoll.wire.generated import ErrorCode
from atoll.workers import Version

Start = Callable[..., Any]


async def uploaded(node: Node, count: int = 1) -> list[str]:
    """A worker with one version in traffic, and `count` without; the ids of all, oldest first."""
    await node.post(name="hello", script=HELLO, env={"N": 1})
    for number in range(count):
        answer = await node.ask("POST", "/api/workers/hello/versions", {"env": {"N": number + 2}})
        assert answer.status == 201, answer.content
    listed = (await node.ask("GET", "/api/workers/hello/versions")).json["versions"]
    return [version["id"] for version in reversed(listed)]


async def deploy(node: Node, *shares: tuple[object, float], **more: object) -> Answer:
    versions = [{"version": version, "percentage": percentage} for version, percentage in shares]
    return await node.ask("POST", "/api/workers/hello/deployments", {"versions": versions, **more})


def live(node: Node) -> list[Version]:
    """The versions that serve requests."""
    found = {node.live("hello.localhost") for _ in range(300)}
    return [version for version in found if version is not None]


def seen(node: Node, host: str = "hello.localhost") -> set[object]:
    found = {node.live(host) for _ in range(300)}
    return {version.env["N"] if version is not None else None for version in found}


async def test_an_uploaded_version_gets_no_traffic_and_builds_on_the_active_one(node: Node, engines: Engines) -> None:
    await node.post(name="hello", script=HELLO, env={"N": 1}, routes=["a.example/*"])
    body = {"env": {"N": 2}, "routes": ["b.example/*"], "message": "next", "tag": "v2"}
    answer = await node.ask("POST", "/api/workers/hello/versions", body)
    assert answer.status == 201
    version = answer.json
    assert (version["number"], version["active"], version["percentage"]) == (2, False, 0)
    assert (version["message"], version["tag"], version["env"]) == ("next", "v2", {"N": 2})
    assert answer.headers["location"].endswith(f"/versions/{version['id']}")
    assert seen(node) == {1} and seen(node, "a.example") == {1} and node.live("b.example") is None
    assert [each.id for each in engines.checked][-1] == version["id"] == engines.retired[-1].id
    worker = (await node.ask("GET", "/api/workers/hello")).json
    assert worker["version"]["number"] == 1 and [share["percentage"] for share in worker["traffic"]] == [100]


async def test_an_upload_needs_a_worker_and_code_that_starts(node: Node, engines: Engines) -> None:
    answer = await node.ask("POST", "/api/workers/hello/versions", {"script": HELLO})
    assert (answer.status, answer.code) == (404, ApiCode.NO_WORKER)
    await node.post(name="hello", script=HELLO)
    engines.failure = LoadFailed(Failure(ErrorCode.STARTUP, "no"))
    answer = await node.ask("POST", "/api/workers/hello/versions", {"script": "throw 1"})
    assert (answer.status, answer.code) == (422, ApiCode.VALIDATION)
    assert (await node.ask("POST", "/api/workers/hello/versions", {})).code == ApiCode.BAD_BODY
    assert len((await node.ask("GET", "/api/workers/hello/versions")).json["versions"]) == 1


async def test_traffic_is_split_and_a_restart_keeps_the_split(start: Start, clock: Clock) -> None:
    async with start() as node:
        ids = await uploaded(node, 2)
        clock.now += 60
        answer = await deploy(node, (ids[2], 30), (2, 20.5), (1, 49.5), message="slowly")
        assert answer.status == 201
        deployment = answer.json
        assert deployment["versions"] == [
            {"id": ids[0], "number": 1, "percentage": 49.5},
            {"id": ids[2], "number": 3, "percentage": 30},
            {"id": ids[1], "number": 2, "percentage": 20.5},
        ]
        assert (deployment["message"], deployment["source"], deployment["active"]) == ("slowly", "versions", True)
        assert seen(node) == {1, 2, 3}
        listed = (await node.ask("GET", "/api/workers/hello/versions")).json["versions"]
        assert [(each["active"], each["percentage"]) for each in listed] == [(True, 30), (True, 20.5), (True, 49.5)]
    async with start() as node:
        assert seen(node) == {1, 2, 3}
        worker = (await node.ask("GET", "/api/workers/hello")).json
        assert worker["version"]["number"] == 1 and len(worker["traffic"]) == 3
        found = node.live("hello.localhost")
        assert found is not None and node.deployer.traffic(found.worker_id)[0].deployment is not None
        history = (await node.ask("GET", "/api/workers/hello/deployments")).json["deployments"]
        assert [each["active"] for each in history] == [True, False]
        assert history[0] == deployment and history[1]["source"] == "deploy"


async def test_the_routes_of_the_version_with_the_largest_share_are_live(node: Node) -> None:
    await node.post(name="hello", script=HELLO, env={"N": 1}, routes=["a.example/*"])
    await node.ask("POST", "/api/workers/hello/versions", {"env": {"N": 2}, "routes": ["b.example/*"]})
    await deploy(node, (1, 60), (2, 40))
    assert seen(node, "a.example") == {1, 2} and node.live("b.example") is None
    await deploy(node, (1, 40), (2, 60))
    assert seen(node, "b.example") == {1, 2} and node.live("a.example") is None


async def test_versions_that_lose_their_traffic_are_unloaded_and_others_stay(node: Node, engines: Engines) -> None:
    ids = await uploaded(node, 2)
    await deploy(node, (1, 50), (2, 50))
    first, second = (
        next(v for v in {node.live("hello.localhost") for _ in range(99)} if v and v.id == i) for i in ids[:2]
    )
    engines.retired.clear()
    await deploy(node, (2, 50), (3, 50))
    assert engines.retired == [first]
    await deploy(node, (2, 100))
    assert node.live("hello.localhost") is second
    assert [version.id for version in engines.retired] == [ids[0], ids[2]]


@pytest.mark.parametrize(
    ("versions", "says"),
    [
        ([], "`versions` is empty"),
        ([{"version": 1, "percentage": 99}], "sum to 99, not 100"),
        ([{"version": 1, "percentage": 60}, {"version": 2, "percentage": 60}], "sum to 120, not 100"),
        ([{"version": 1, "percentage": -1}, {"version": 2, "percentage": 101}], "is -1"),
        ([{"version": 1, "percentage": 0.001}, {"version": 2, "percentage": 99.999}], "is 0.001"),
        ([{"version": 1, "percentage": 50}, {"version": 1, "percentage": 50}], "named twice"),
        ([{"version": 0, "percentage": 100}], "`version` is 0"),
        ([{"version": "", "percentage": 100}], "`version` is ''"),
        ([{"version": 1, "percentage": "100"}], "expected `float`"),
        ([{"version": 1}], "percentage"),
        ([{"version": 1, "percentage": 100, "x": 1}], "unknown field"),
        ([{"version": 1, "percentage": 20}] * 6, "more than the limit of 5"),
    ],
)
async def test_a_wrong_split_is_refused_and_changes_nothing(node: Node, versions: list[Any], says: str) -> None:
    await uploaded(node)
    answer = await node.ask("POST", "/api/workers/hello/deployments", {"versions": versions})
    assert (answer.status, answer.code) == (400, ApiCode.BAD_BODY)
    assert says in answer.json["error"]["message"]
    assert seen(node) == {1}


async def test_a_version_named_by_id_and_by_number_is_the_same(node: Node) -> None:
    ids = await uploaded(node)
    answer = await deploy(node, (1, 50), (ids[0], 50))
    assert (answer.code, seen(node)) == (ApiCode.BAD_BODY, {1})


async def test_unknown_and_deleted_versions_are_not_found(node: Node) -> None:
    await uploaded(node)
    for nothing in (3, "version_nothing", "9" * 30):
        answer = await deploy(node, (nothing, 50), (1, 50))
        assert (answer.status, answer.code) == (404, ApiCode.NOT_FOUND)
    assert seen(node) == {1}


async def test_a_version_that_does_not_start_leaves_the_old_deployment(node: Node, engines: Engines) -> None:
    await uploaded(node)
    engines.failure = LoadFailed(Failure(ErrorCode.STARTUP, "no"))
    answer = await deploy(node, (1, 50), (2, 50))
    assert (answer.code, seen(node)) == (ApiCode.VALIDATION, {1})
    assert len((await node.ask("GET", "/api/workers/hello/deployments")).json["deployments"]) == 1


async def test_versions_with_traffic_are_never_among_those_that_are_deleted(node: Node) -> None:
    await uploaded(node)
    await deploy(node, (1, 90), (2, 10))
    for i in range(KEPT_VERSIONS + 1):
        assert (await node.ask("POST", "/api/workers/hello/versions", {"env": {"N": i}})).status == 201
    versions = (await node.ask("GET", "/api/workers/hello/versions?limit=1000")).json["versions"]
    assert [each["number"] for each in versions][-2:] == [2, 1] and len(versions) == KEPT_VERSIONS + 2
    assert seen(node) == {1, 2}
    assert (await node.put("hello", env={"N": "last"})).status == 200
    numbers = [each["number"] for each in (await node.ask("GET", "/api/workers/hello/versions")).json["versions"]]
    assert 1 not in numbers and 2 not in numbers


async def test_a_rollback_out_of_a_split_goes_to_the_version_that_last_had_all_traffic(node: Node) -> None:
    await uploaded(node, 1)
    await deploy(node, (2, 90), (1, 10))
    answer = await node.ask("POST", "/api/workers/hello/rollback", {"message": "bad"})
    assert (answer.status, answer.json["version"]["number"], seen(node)) == (200, 1, {1})
    await deploy(node, (2, 10), (1, 90))
    answer = await node.ask("POST", "/api/workers/hello/rollback", {})
    assert (answer.json["version"]["number"], seen(node)) == (1, {1})
    history = (await node.ask("GET", "/api/workers/hello/deployments")).json["deployments"]
    assert [each["source"] for each in history] == ["rollback", "versions", "rollback", "versions", "deploy"]


async def test_a_rollback_skips_versions_that_never_had_all_traffic(node: Node) -> None:
    await uploaded(node, 2)
    await node.put("hello", env={"N": 4})
    answer = await node.ask("POST", "/api/workers/hello/rollback", {})
    assert answer.json["version"]["number"] == 1
    assert (await node.ask("POST", "/api/workers/hello/rollback", {})).code == ApiCode.NOT_FOUND


async def test_a_deploy_takes_all_traffic_and_a_secret_is_refused_during_a_split(node: Node) -> None:
    await uploaded(node)
    await deploy(node, (1, 50), (2, 50))
    answer = await node.ask("PUT", "/api/workers/hello/secrets/KEY", {"value": "x"})
    assert (answer.status, answer.code, seen(node)) == (409, ApiCode.TRAFFIC_SPLIT, {1, 2})
    assert (await node.put("hello", env={"N": 3})).status == 200
    assert seen(node) == {3}


async def test_each_version_keeps_its_own_secrets(start: Start) -> None:
    async with start() as node:
        await node.post(name="hello", script=HELLO, env={"N": 1}, secrets={"KEY": "old"})
        await node.ask("POST", "/api/workers/hello/versions", {"env": {"N": 2}, "secrets": {"KEY": "new"}})
        await deploy(node, (1, 50), (2, 50))
    async with start() as node:
        found = {
            version.env["N"]: version.secrets
            for version in {node.live("hello.localhost") for _ in range(99)}
            if version
        }
        assert found == {1: {"KEY": "old"}, 2: {"KEY": "new"}}
        assert (await deploy(node, (2, 100))).status == 201
        assert (await deploy(node, (1, 100))).code == ApiCode.SECRETS_CHANGED
        assert (await deploy(node, (1, 100), force=True)).status == 201


async def test_the_history_is_paged_and_bounded_and_told_in_the_audit_log(node: Node) -> None:
    ids = await uploaded(node)
    for i in range(KEPT_DEPLOYMENTS + 5):
        await deploy(node, (1, 50 + i % 2), (2, 50 - i % 2))
    page = (await node.ask("GET", "/api/workers/hello/deployments?limit=2")).json
    assert len(page["deployments"]) == 2 and page["cursor"]
    rest = (await node.ask("GET", f"/api/workers/hello/deployments?limit=1000&cursor={page['cursor']}")).json
    assert len(rest["deployments"]) == KEPT_DEPLOYMENTS - 2 and not any(each["active"] for each in rest["deployments"])
    sql = "SELECT action, detail FROM audit WHERE action IN ('version.upload', 'worker.split') ORDER BY id"
    lines = node.database.read(lambda c: list(c.execute(sql)))
    assert lines[0] == ("version.upload", ids[1])
    assert lines[1] == ("worker.split", f"{ids[1]} 50%, {ids[0]} 50%")


async def test_a_deleted_worker_takes_its_split_and_history_along(node: Node, engines: Engines) -> None:
    ids = await uploaded(node)
    await deploy(node, (1, 50), (2, 50))
    engines.retired.clear()
    assert (await node.ask("DELETE", "/api/workers/hello")).status == 204
    assert sorted(version.id for version in engines.retired) == sorted(ids)
    for table in ("traffic", "deployments", "versions"):
        assert node.database.read(lambda c, table=table: list(c.execute(f"SELECT count(*) FROM {table}"))) == [(0,)]
    assert (await node.post(name="hello", script=HELLO, env={"N": 9})).status == 201
    assert seen(node) == {9}
