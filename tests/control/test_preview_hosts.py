"""The hosts of previews: whose they are, and that they never take a host from a worker or another tenant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from control_plane import HELLO, Answer, Clock, Node

from atoll.api.refusals import ApiCode
from atoll.config import Settings
from atoll.control.deploy.previews import KEPT, MAX_ALIASES
from atoll.control.ids import random_id
from atoll.control.store.workers import KEPT_VERSIONS

Start = Callable[..., Any]


async def tenants(node: Node, *names: str) -> None:
    for name in names:
        assert (await node.ask("POST", "/api/tenants", {"name": name})).status == 201


async def deploy(node: Node, tenant: str, name: str, **fields: object) -> Answer:
    body = {"name": name, "script": HELLO, "env": {"N": 1}, **fields}
    return await node.ask("POST", "/api/workers", body, x_atoll_tenant=tenant)


async def upload(node: Node, tenant: str, name: str, alias: str = "", n: int = 2) -> Answer:
    query = f"?alias={alias}" if alias else ""
    return await node.ask("POST", f"/api/workers/{name}/versions{query}", {"env": {"N": n}}, x_atoll_tenant=tenant)


def served(node: Node, label: str) -> object:
    found = node.live(f"{label}.localhost:8080")
    return (found.worker_name, found.env["N"]) if found is not None else None


async def preview(node: Node, tenant: str, name: str) -> str:
    """The label of the preview of a new version."""
    answer = await upload(node, tenant, name)
    assert answer.status == 201, answer.content
    return str(answer.json["preview_url"]).removeprefix("http://").partition(".")[0]


async def test_a_worker_that_is_named_like_a_preview_always_wins(node: Node) -> None:
    await tenants(node, "acme", "rival")
    await deploy(node, "acme", "shop")
    label = await preview(node, "acme", "shop")
    assert served(node, label) == ("shop", 2)
    # The worker was there first: it keeps its host, whatever previews come later.
    await deploy(node, "rival", "abcd1234-stall", env={"N": "rival"})
    assert (await deploy(node, "acme", "stall")).status == 201
    node.deployer._new_id = lambda prefix: f"{prefix}_abcd1234ffff"
    shadowed = (await upload(node, "acme", "stall")).json
    node.deployer._new_id = random_id
    assert shadowed["preview_url"] == "http://abcd1234-stall.localhost:8080/"
    assert served(node, "abcd1234-stall") == ("abcd1234-stall", "rival")
    # Of one tenant a worker may also come later.
    await deploy(node, "acme", label, env={"N": "own"})
    assert served(node, label) == (label, "own")
    await node.ask("DELETE", f"/api/workers/{label}", x_atoll_tenant="acme")
    assert served(node, label) == ("shop", 2)


async def test_another_tenant_gets_neither_the_name_nor_a_route_of_a_preview(node: Node) -> None:
    await tenants(node, "acme", "rival")
    await deploy(node, "acme", "shop")
    label = await preview(node, "acme", "shop")
    for taken in (label, "00000000-shop"):  # also one that no version has now: it may have had one
        answer = await deploy(node, "rival", taken)
        assert (answer.status, answer.code) == (409, ApiCode.NAME_TAKEN)
        for route in (f"{taken}.localhost/*", f"x.{taken}.localhost/*", f"{taken}.localhost"):
            answer = await deploy(node, "rival", "other", routes=[route])
            assert (answer.status, answer.code) == (409, ApiCode.ROUTE_TAKEN), route
    assert served(node, label) == ("shop", 2)
    assert (await deploy(node, "rival", "customer-shop")).status == 201, "eight letters are no digits"
    assert (await deploy(node, "rival", "abcdef12-stall")).status == 201, "there is no worker `stall`"


async def test_an_alias_takes_no_host_of_a_worker_or_another_tenant(node: Node) -> None:
    await tenants(node, "acme", "rival")
    await deploy(node, "acme", "shop")
    await deploy(node, "rival", "beta-shop")
    await deploy(node, "rival", "routed", routes=["gamma-shop.localhost/*"])
    await deploy(node, "acme", "own-shop")
    for alias in ("beta", "gamma", "own"):
        answer = await upload(node, "acme", "shop", alias)
        assert (answer.status, answer.code) == (409, ApiCode.ROUTE_TAKEN), alias
    assert served(node, "beta-shop") == ("beta-shop", 1)
    assert len((await node.ask("GET", "/api/workers/shop/versions", x_atoll_tenant="acme")).json["versions"]) == 1
    # And the other way round: the host of an alias belongs to its tenant.
    assert (await upload(node, "acme", "shop", "delta")).status == 201
    assert (await deploy(node, "rival", "delta-shop")).code == ApiCode.NAME_TAKEN
    assert (await deploy(node, "rival", "r", routes=["delta-shop.localhost/*"])).code == ApiCode.ROUTE_TAKEN
    assert served(node, "delta-shop") == ("shop", 2)


async def test_one_host_is_never_the_alias_of_two_workers(node: Node) -> None:
    await tenants(node, "acme", "rival")
    await deploy(node, "acme", "c")
    await deploy(node, "rival", "b-c")
    assert (await upload(node, "acme", "c", "a-b")).status == 201
    answer = await upload(node, "rival", "b-c", "a")
    assert (answer.status, answer.code) == (409, ApiCode.ROUTE_TAKEN)
    assert served(node, "a-b-c") == ("c", 2)


async def test_the_host_of_an_alias_stays_reserved_after_its_end(node: Node, clock: Clock) -> None:
    await tenants(node, "acme", "rival")
    await deploy(node, "acme", "shop")
    for alias in ("one", "two"):
        await upload(node, "acme", "shop", alias)
    answer = await node.ask("DELETE", "/api/workers/shop/aliases/one", x_atoll_tenant="acme")
    assert answer.status == 204 and served(node, "one-shop") is None
    assert (await deploy(node, "rival", "one-shop")).code == ApiCode.HOST_RESERVED
    await node.ask("DELETE", "/api/workers/shop", x_atoll_tenant="acme")
    assert served(node, "two-shop") is None
    assert (await deploy(node, "rival", "two-shop")).code == ApiCode.HOST_RESERVED
    clock.now += 31 * 86_400
    assert (await deploy(node, "rival", "two-shop")).status == 201


async def test_an_alias_ends_with_its_version(start: Start) -> None:
    async with start() as node:
        await deploy(node, "default", "shop")
        await upload(node, "default", "shop", "old", n=7)
        assert served(node, "old-shop") == ("shop", 7)
        for _ in range(KEPT_VERSIONS):
            assert (await upload(node, "default", "shop")).status == 201
        assert served(node, "old-shop") is None and node.router.claims.holders(("*", "old-shop.localhost")) == []
        await upload(node, "default", "shop", "new", n=8)
    async with start() as node:
        assert served(node, "new-shop") == ("shop", 8) and served(node, "old-shop") is None
        assert node.router.claims.holders(("*", "new-shop.localhost")) == ["default"]


@pytest.mark.parametrize(
    "alias", ["A", "1a", "-a", "a-", "a_b", "a.b", "a--b", "ä", "abcd1234", "abcd1234-x", "a" * 60]
)
async def test_a_bad_alias_is_refused_with_what_is_allowed(node: Node, alias: str) -> None:
    await deploy(node, "default", "shop")
    answer = await upload(node, "default", "shop", alias)
    assert (answer.status, answer.code) == (400, ApiCode.BAD_NAME)
    assert answer.json["error"]["hint"]
    assert len((await node.ask("GET", "/api/workers/shop/versions")).json["versions"]) == 1


async def test_aliases_and_versions_in_memory_are_bounded(node: Node) -> None:
    await deploy(node, "default", "shop")
    labels = [await preview(node, "default", "shop") for _ in range(KEPT + 5)]
    assert all(served(node, label) == ("shop", 2) for label in labels)
    assert len(node.deployer.previews._found) == KEPT and not set(labels) & {
        host.decode().partition(".")[0] for host in node.router.remembered
    }
    for number in range(MAX_ALIASES):
        assert (await upload(node, "default", "shop", f"a{number}")).status == 201
    assert (await upload(node, "default", "shop", "a1")).status == 201, "one that exists moves"


async def test_previews_win_over_a_wildcard_of_the_operator_and_lose_to_nothing_below(node: Node) -> None:
    await deploy(node, "default", "shop")
    await deploy(node, "default", "catch", routes=["*.localhost/*"], env={"N": "caught"})
    label = await preview(node, "default", "shop")
    assert served(node, label) == ("shop", 2)
    assert served(node, f"x.{label}") == ("catch", "caught")
    assert served(node, "ffffffff-shop") == ("catch", "caught")


async def test_the_version_of_a_preview_has_the_limits_of_today(start: Start, settings: Settings) -> None:
    async with start() as node:
        await deploy(node, "default", "shop")
        answer = await node.ask("POST", "/api/workers/shop/versions", {"env": {"N": 2}, "limits": {"cpu_ms": 900}})
        label = answer.json["preview_url"].removeprefix("http://").partition(".")[0]
    async with start(dataclasses.replace(settings, cpu_ms=20, max_cpu_ms=100)) as node:
        found = node.live(f"{label}.localhost")
        assert found is not None and found.limits.cpu_ms == 100 and not found.has_code and not found.modules
