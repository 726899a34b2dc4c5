"""Secrets that are changed in a new version without traffic."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from control_plane import HELLO, Answer, Clock, Engines, Node

from atoll.api.refusals import ApiCode
from atoll.errors import Failure, LoadFailed
from atoll.wire.generated import ErrorCode


async def change(node: Node, version: object = "latest", **body: Any) -> Answer:
    return await node.ask("POST", f"/api/workers/hello/versions/{version}/secrets", body)


async def names(node: Node, version: object) -> list[str]:
    answer = await node.ask("GET", f"/api/workers/hello/versions/{version}/secrets")
    assert answer.status == 200
    return [each["name"] for each in answer.json["secrets"]]


def live_secrets(node: Node) -> object:
    version = node.live("hello.localhost")
    return version.secrets if version is not None else None


async def test_a_new_version_has_the_secret_and_no_traffic(node: Node, clock: Clock) -> None:
    await node.post(name="hello", script=HELLO, env={"A": 1}, secrets={"OLD": "o"})
    clock.now += 60
    answer = await change(node, secrets={"KEY": "k"}, message="for later", tag="t")
    assert answer.status == 201 and "k" not in answer.json["secrets"]
    made = answer.json
    assert (made["number"], made["percentage"], made["message"], made["tag"]) == (2, 0, "for later", "t")
    assert made["secrets"] == ["KEY", "OLD"] and made["env"] == {"A": 1}
    assert answer.headers["location"].endswith(f"/versions/{made['id']}")
    assert live_secrets(node) == {"OLD": "o"}
    assert await names(node, 1) == ["OLD"] and await names(node, 2) == await names(node, "latest") == ["KEY", "OLD"]
    shares = [{"version": 2, "percentage": 100}]
    assert (await node.ask("POST", "/api/workers/hello/deployments", {"versions": shares})).status == 201
    assert live_secrets(node) == {"OLD": "o", "KEY": "k"}
    lines = [(line.action, line.detail) for line in node.access.audit.page(None, 2**62, 3)]
    assert lines[1] == ("version.upload", f"{made['id']}: secret KEY set")


async def test_changes_build_on_the_newest_version_or_on_a_named_one(node: Node) -> None:
    await node.post(name="hello", script=HELLO, secrets={"A": "1", "B": "1"})
    assert (await change(node, secrets={"C": "2"})).json["secrets"] == ["A", "B", "C"]
    answer = await change(node, secrets={"A": None, "B": "3", "D": "3"})
    assert answer.json["secrets"] == ["B", "C", "D"]
    assert answer.json["message"] == "secrets B, D set; secret A deleted"
    assert (await change(node, 1, secrets={"E": "4"})).json["secrets"] == ["A", "B", "E"]
    assert live_secrets(node) == {"A": "1", "B": "1"}


async def test_secrets_can_change_while_traffic_is_split(node: Node) -> None:
    await node.post(name="hello", script=HELLO)
    await change(node, secrets={"KEY": "1"})
    shares = [{"version": 1, "percentage": 50}, {"version": 2, "percentage": 50}]
    await node.ask("POST", "/api/workers/hello/deployments", {"versions": shares})
    answer = await node.ask("PUT", "/api/workers/hello/secrets/KEY", {"value": "x"})
    assert answer.code == ApiCode.TRAFFIC_SPLIT and "atoll versions secret" in answer.json["error"]["hint"]
    assert (await change(node, secrets={"KEY": "2"})).status == 201


@pytest.mark.parametrize(
    ("version", "body", "status", "says"),
    [
        ("latest", {"secrets": {}}, 400, "`secrets` is empty"),
        ("latest", {}, 400, "secrets"),
        ("latest", {"secrets": {"KEY": 1}}, 400, "expected"),
        ("latest", {"secrets": {"not a name": "x"}}, 400, "not a name"),
        ("latest", {"secrets": {"A": "x"}}, 400, "both a variable and a secret"),
        ("latest", {"secrets": {"GONE": None}}, 404, "version 1 of `hello` has no secret `GONE`"),
        ("latest", {"secrets": {f"S{number}": "" for number in range(128)}}, 400, "129"),
        ("latest", {"secrets": {"KEY": "x"}, "message": "x" * 1001}, 400, "message"),
        ("latest", {"secrets": {"KEY": "x"}, "tag": "x" * 1001}, 400, "tag"),
        ("7", {"secrets": {"KEY": "x"}}, 404, "has no version `7`"),
        ("newest", {"secrets": {"KEY": "x"}}, 404, "has no version `newest`"),
    ],
)
async def test_a_wrong_change_stores_nothing(
    node: Node, version: str, body: dict[str, Any], status: int, says: str
) -> None:
    await node.post(name="hello", script=HELLO, env={"A": 1})
    answer = await change(node, version, **body)
    assert answer.status == status and says in answer.json["error"]["message"], answer.content
    assert len((await node.ask("GET", "/api/workers/hello/versions")).json["versions"]) == 1
    [(count,)] = node.database.read(lambda c: c.execute("SELECT count(*) FROM secrets").fetchall())
    assert count == 0


async def test_a_version_that_does_not_start_and_a_second_change_are_refused(node: Node, engines: Engines) -> None:
    await node.post(name="hello", script=HELLO)
    engines.failure = LoadFailed(Failure(ErrorCode.STARTUP, "no"))
    assert (await change(node, secrets={"KEY": "x"})).code == ApiCode.VALIDATION
    engines.failure, engines.gate = None, asyncio.Event()
    first = asyncio.ensure_future(change(node, secrets={"KEY": "x"}))
    await engines.until_checked(3)
    assert (await change(node, secrets={"OTHER": "x"})).code == ApiCode.CONCURRENT
    engines.gate.set()
    assert (await first).status == 201


async def test_other_tenants_and_readers_change_nothing(node: Node) -> None:
    await node.post(name="hello", script=HELLO, secrets={"KEY": "x"})
    await node.ask("POST", "/api/tenants", {"name": "other"})
    for method, body in (("GET", None), ("POST", {"secrets": {"KEY": "y"}})):
        path = "/api/workers/hello/versions/latest/secrets"
        answer = await node.ask(method, path, body, x_atoll_tenant="other")
        assert answer.code == ApiCode.NO_WORKER
