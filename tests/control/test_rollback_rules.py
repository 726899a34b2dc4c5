"""Rollback rules of deployments: what counts as a failure, when a rule acts, what it returns to, when it ends."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import apsw
import pytest
from control_plane import HELLO, Answer, Clock, Engines, Node

from atoll.api.refusals import ApiCode
from atoll.asset_files.rows import AssetBound, add_manifest, read_manifest, trim_versions, usage_of
from atoll.control.deploy.health import FailureWindow, judged
from atoll.errors import EngineError, Failure, LoadFailed, QuotaExceeded
from atoll.observe.meter import STATUS_CLASSES
from atoll.wire.generated import ErrorCode, Outcome

Start = Callable[..., Any]
RULE = {"above": 5, "window_seconds": 60, "min_requests": 20, "watch_seconds": 600}


async def worker_with(node: Node, versions: int) -> None:
    """Version 1 has all traffic, the others have none."""
    await node.post(name="hello", script=HELLO, env={"N": 1})
    for number in range(2, versions + 1):
        answer = await node.ask("POST", "/api/workers/hello/versions", {"env": {"N": number}})
        assert answer.status == 201, answer.content


async def deploy(node: Node, shares: dict[int, float], **rule: object) -> Answer:
    versions = [{"version": number, "percentage": percentage} for number, percentage in shares.items()]
    body = {"versions": versions, **({"rollback": rule} if rule else {})}
    return await node.ask("POST", "/api/workers/hello/deployments", body)


async def history(node: Node) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await node.ask("GET", "/api/workers/hello/deployments")).json["deployments"]
    return found


def traffic(node: Node) -> dict[int, float]:
    worker = node.deployer.named("hello")
    assert worker is not None
    return {share.deployment.number: share.hundredths / 100 for share in node.deployer.traffic(worker.id)}


def count(node: Node, number: int, calls: int, outcome: Outcome = Outcome.OK, status: int = 200) -> None:
    """Finished calls of a version, as the pool reports them."""
    worker = node.deployer.named("hello")
    assert worker is not None
    [version_id] = [row.id for row in node.store.versions(worker.id) if row.number == number]
    for _ in range(calls):
        node.meter.count(replace(worker.version, id=version_id), outcome, status, 100, 1_000)


async def look(node: Node) -> bool:
    """What the timer does. Waits for a rollback; returns whether the rule is still in force."""
    worker = node.deployer.named("hello")
    assert worker is not None
    watch = node.deployer.health.watch_of(worker.id)
    if watch is None:
        return False
    node.deployer.health.look(watch)
    tasks = list(node.deployer._tasks)
    for task in tasks:
        await task
    return node.deployer.health.watch_of(worker.id) is watch


async def test_a_new_version_that_fails_is_rolled_back_with_its_reason(
    node: Node, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await worker_with(node, 2)
    answer = await deploy(node, {2: 10, 1: 90}, **RULE)
    assert answer.status == 201
    assert answer.json["rollback"] == {
        **RULE, "ends_at": "2027-01-15T08:10:00.500Z", "state": "watching", "watches": [2], "returns_to": 1,
    }  # fmt: skip
    clock.now += 3
    count(node, 2, 28)
    count(node, 2, 12, Outcome.EXCEPTION, 500)
    with caplog.at_level(logging.WARNING):
        assert not await look(node)
    assert traffic(node) == {1: 100}
    newest, failed, *_ = await history(node)
    reason = "rolled back automatically: 12 of 40 requests to version 2 failed (30 %, rule 5 %)"
    assert (newest["source"], newest["author"], newest["message"]) == ("rollback", "rollback rule", reason)
    assert newest["rollback"] is None and failed["rollback"]["state"] == "rolled_back"
    assert reason in caplog.text
    [line] = [each for each in node.access.audit.page(None, 2**62, 10) if each.action == "worker.rollback"]
    assert line.target == "hello" and line.actor == "rollback rule" and reason in line.detail
    [tally] = node.meter.tallies(lambda worker_id: True)
    assert tally.rollbacks == 1


async def test_nothing_happens_below_the_threshold_or_with_few_requests(node: Node, clock: Clock) -> None:
    await worker_with(node, 2)
    await deploy(node, {2: 100}, **RULE)
    count(node, 2, 19, Outcome.EXCEPTION, 500)
    assert await look(node)  # 19 requests are too few
    clock.now += 70
    assert await look(node)
    count(node, 2, 95)
    count(node, 2, 5, Outcome.EXCEPTION, 500)
    assert await look(node)  # the old failures have left the window, and 5 % are not above 5 %
    assert traffic(node) == {2: 100}
    count(node, 2, 1, status=503)
    assert not await look(node)
    assert traffic(node) == {1: 100}


async def test_failures_of_the_old_version_do_not_count(node: Node) -> None:
    await worker_with(node, 2)
    await deploy(node, {2: 50, 1: 50}, **RULE)
    count(node, 1, 100, Outcome.EXCEPTION, 500)
    count(node, 2, 100)
    assert await look(node)


def test_only_calls_that_say_something_about_the_version_are_judged() -> None:
    def key(outcome: Outcome, status: int) -> int:
        return outcome * STATUS_CLASSES + status

    faults = {
        key(Outcome.OK, 5): 1,
        key(Outcome.EXCEPTION, 5): 1,
        key(Outcome.EXCEPTION, 2): 1,  # in waitUntil()
        key(Outcome.EXCEPTION, 0): 1,  # of a cron
        key(Outcome.EXCEEDED_CPU, 5): 1,
        key(Outcome.EXCEEDED_MEMORY, 5): 1,
        key(Outcome.EXCEEDED_WALL_TIME, 5): 1,
        key(Outcome.RESPONSE_STREAM_DISCONNECTED, 2): 1,
        key(Outcome.KILL_SWITCH, 5): 1,
    }
    fine = {key(Outcome.OK, status): 1 for status in (0, 1, 2, 3, 4)}
    silent = {
        key(Outcome.CANCELED, 2): 1,
        key(Outcome.CANCELED, 4): 1,
        key(Outcome.INTERNAL_ERROR, 5): 1,
        key(Outcome.LOAD_SHED, 5): 1,
        key(Outcome.EXCEPTION, 4): 1,  # 429: a quota of the tenant
        key(Outcome.EXCEEDED_CPU, 4): 1,
    }
    assert judged(faults) == (9, 9) and judged(fine) == (5, 0) and judged(silent) == (0, 0)
    assert judged(faults | fine | silent) == (14, 9)


def test_a_window_slides_and_is_bounded() -> None:
    window = FailureWindow(10, now=0, calls=100, failed=50)
    assert window.add(1, 110, 51) == (10, 1)
    assert window.add(9, 120, 51) == (20, 1)
    assert window.add(10.5, 120, 51) == (20, 1)  # the sample at 0 is the last one before the window
    assert window.add(11.5, 130, 52) == (20, 1)
    for second in range(12, 1_000):
        window.add(second, 130, 52)
    assert window.add(1_000, 130, 52) == (0, 0) and len(window._samples) <= 13


async def test_a_rule_survives_a_restart(start: Start, clock: Clock) -> None:
    async with start() as node:
        await worker_with(node, 2)
        await deploy(node, {2: 100}, **RULE)
    clock.now += 300
    async with start() as node:
        count(node, 2, 30, Outcome.EXCEEDED_CPU, 503)
        assert not await look(node)
        assert traffic(node) == {1: 100}
    async with start() as node:
        assert traffic(node) == {1: 100}
        assert not await look(node)  # no rule is in force


async def test_a_rule_ends_after_its_time(start: Start, clock: Clock) -> None:
    async with start() as node:
        await worker_with(node, 2)
        await deploy(node, {2: 100}, **RULE)
        count(node, 2, 30)
        clock.now += 599
        assert await look(node)
        clock.now += 1
        assert not await look(node)
        count(node, 2, 100, Outcome.EXCEPTION, 500)
        assert not await look(node) and traffic(node) == {2: 100}
    async with start() as node:
        assert (await history(node))[0]["rollback"]["state"] == "healthy"
        assert not await look(node)


async def test_another_deployment_ends_the_rule(node: Node) -> None:
    await worker_with(node, 3)
    await deploy(node, {2: 10, 1: 90}, **RULE)
    await deploy(node, {3: 100})
    count(node, 2, 100, Outcome.EXCEPTION, 500)
    assert not await look(node) and traffic(node) == {3: 100}
    assert [each["rollback"] and each["rollback"]["state"] for each in await history(node)] == [None, "replaced", None]


async def test_a_step_returns_to_the_deployment_before_the_version(node: Node) -> None:
    await worker_with(node, 3)
    await deploy(node, {1: 50, 2: 50})
    await deploy(node, {3: 10, 1: 45, 2: 45}, **RULE)
    answer = await deploy(node, {3: 50, 1: 25, 2: 25}, **RULE)
    assert (answer.json["rollback"]["watches"], answer.json["rollback"]["returns_to"]) == ([3], 2)
    count(node, 3, 20, status=500)
    assert not await look(node)
    assert traffic(node) == {1: 50, 2: 50}


async def test_two_bad_versions_do_not_take_turns(node: Node) -> None:
    await worker_with(node, 2)
    await deploy(node, {2: 100}, **RULE)
    count(node, 2, 20, status=500)
    assert not await look(node)
    count(node, 1, 20, status=500)
    assert not await look(node) and traffic(node) == {1: 100}
    assert len(await history(node)) == 3
    # A version that was rolled back is no target, neither of a rule nor of a rollback without a version.
    await node.ask("POST", "/api/workers/hello/versions", {"env": {"N": 3}})
    assert (await deploy(node, {3: 100}, **RULE)).json["rollback"]["returns_to"] == 3
    assert (await node.ask("POST", "/api/workers/hello/rollback", {})).json["version"]["number"] == 1


async def test_a_deploy_can_carry_the_rule(node: Node) -> None:
    answer = await node.post(name="hello", script=HELLO, rollback=RULE)
    assert (answer.status, answer.code) == (400, ApiCode.BAD_BODY)
    assert "no earlier deployment" in answer.json["error"]["message"]
    await node.post(name="hello", script=HELLO, env={"N": 1})
    assert (await node.put("hello", env={"N": 2}, rollback={"above": 0})).status == 200
    newest = (await history(node))[0]
    assert newest["rollback"]["watches"] == [2] and newest["rollback"]["min_requests"] == 20
    count(node, 2, 19)
    count(node, 2, 1, Outcome.EXCEPTION, 500)
    assert not await look(node) and traffic(node) == {1: 100}
    answer = await node.ask("POST", "/api/workers/hello/versions", {"env": {"N": 3}, "rollback": RULE})
    assert (answer.status, answer.code) == (400, ApiCode.BAD_BODY)
    assert (await node.put("hello", rollback=RULE)).code == ApiCode.BAD_BODY  # it changes nothing


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({}, "above"),
        ({"above": 100}, "`rollback.above` is 100"),
        ({"above": -1}, "`rollback.above` is -1"),
        ({"above": 5, "window_seconds": 0}, "`rollback.window_seconds` is 0"),
        ({"above": 5, "window_seconds": 4000}, "`rollback.window_seconds` is 4000"),
        ({"above": 5, "min_requests": 0}, "`rollback.min_requests` is 0"),
        ({"above": 5, "watch_seconds": 59}, "`rollback.watch_seconds` is 59"),
        ({"above": 5, "watch_seconds": 10**9}, "`rollback.watch_seconds` is 1000000000"),
        ({"above": 5, "windw": 1}, "windw"),
        ({"above": "5%"}, "expected `float`"),
    ],
)
async def test_a_wrong_rule_is_refused_and_changes_nothing(node: Node, rule: dict[str, Any], says: str) -> None:
    await worker_with(node, 2)
    body = {"versions": [{"version": 2, "percentage": 100}], "rollback": rule}
    for answer in (
        await node.ask("POST", "/api/workers/hello/deployments", body),
        await node.put("hello", env={}, rollback=rule),
    ):
        assert (answer.status, answer.code) == (400, ApiCode.BAD_BODY)
        assert says in answer.json["error"]["message"]
    assert traffic(node) == {1: 100}


async def test_a_rule_needs_a_version_to_watch_and_a_deployment_to_return_to(node: Node) -> None:
    await worker_with(node, 2)
    answer = await deploy(node, {1: 100}, **RULE)
    assert answer.code == ApiCode.BAD_BODY and "nothing to watch" in answer.json["error"]["message"]
    await deploy(node, {2: 10, 1: 90})
    answer = await deploy(node, {1: 100}, **RULE)  # version 1 has been part of every deployment
    assert answer.code == ApiCode.BAD_BODY and "no earlier deployment" in answer.json["error"]["message"]


async def test_a_rollback_that_cannot_be_made_now_is_tried_again(
    node: Node, engines: Engines, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await worker_with(node, 2)
    await deploy(node, {2: 100}, **RULE)
    count(node, 2, 40, Outcome.EXCEPTION, 500)
    engines.failure = EngineError("no engine")
    assert await look(node) and traffic(node) == {2: 100}
    engines.failure = None
    assert not await look(node) and traffic(node) == {1: 100}
    # A version that does not start any more ends the rule, with an error in the log.
    await deploy(node, {2: 100}, **RULE)
    count(node, 2, 40, Outcome.EXCEPTION, 500)
    engines.failure = LoadFailed(Failure(ErrorCode.STARTUP, "no"))
    assert not await look(node)
    assert traffic(node) == {2: 100} and "hello cannot be rolled back" in caplog.text
    await node.database.write(lambda connection: None)  # the state is written before this
    assert (await history(node))[0]["rollback"]["state"] == "failed"


async def test_versions_that_a_rule_may_need_are_kept(node: Node) -> None:
    await worker_with(node, 2)
    worker = node.deployer.named("hello")
    assert worker is not None
    await deploy(node, {2: 100}, **RULE)
    await node.store.trim_history(worker.version.tenant, 1)
    assert len(node.store.versions(worker.id)) == 2
    await deploy(node, {2: 100})
    await node.store.trim_history(worker.version.tenant, 1)
    assert len(node.store.versions(worker.id)) == 1


async def test_a_deleted_worker_is_not_watched_any_more(node: Node) -> None:
    await worker_with(node, 2)
    await deploy(node, {2: 100}, **RULE)
    worker = node.deployer.named("hello")
    assert worker is not None
    await node.ask("DELETE", "/api/workers/hello")
    assert node.deployer.health.watch_of(worker.id) is None


async def test_versions_in_use_are_kept_when_assets_exceed_their_quota(node: Node) -> None:
    await worker_with(node, 4)
    worker = node.deployer.named("hello")
    assert worker is not None
    await deploy(node, {2: 50, 1: 50})
    await deploy(node, {3: 50, 2: 50}, **RULE)  # may return to 2 and 1
    await node.database.write(lambda connection: connection.execute("UPDATE versions SET assets = '{}'") and None)
    dropped = await node.database.write(lambda connection: trim_versions(connection, worker.version.tenant, -1))
    assert dropped == 1
    assert [row.number for row in node.store.versions(worker.id)] == [3, 2, 1]


async def test_the_quota_of_assets_counts_every_version_of_a_split(node: Node) -> None:
    await worker_with(node, 2)
    worker = node.deployer.named("hello")
    assert worker is not None
    tenant = worker.version.tenant

    def name_files(connection: apsw.Connection) -> None:
        for number in (1, 2):
            lines = f"{number:064x} 100 /only-in-{number}\n{9:064x} 7 /in-both\n"
            manifest = read_manifest(lines.encode())
            add_manifest(connection, tenant=tenant, manifest=manifest, bound=AssetBound(), now=0)
            assets = json.dumps({"manifest": manifest.id})
            connection.execute("UPDATE versions SET assets = ? WHERE number = ?", (assets, number))
        connection.execute("UPDATE asset_files SET stored = 1")  # as an upload does

    await node.database.write(name_files)
    await deploy(node, {2: 100})
    assert await node.database.search(lambda connection: usage_of(connection, tenant)) == (2, 107)
    answer = await deploy(node, {2: 99, 1: 1})
    assert answer.status == 201, answer.content
    assert await node.database.search(lambda connection: usage_of(connection, tenant)) == (4, 207)
    over = read_manifest(f"{5:064x} 100 /new\n".encode())
    with pytest.raises(QuotaExceeded, match="would have 307 bytes"):
        await node.database.write(
            lambda connection: add_manifest(connection, tenant=tenant, manifest=over, bound=AssetBound(300), now=0)
        )
