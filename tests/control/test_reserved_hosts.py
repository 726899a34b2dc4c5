"""A tenant wants the host of another: below a name, above it, before it, at the same time, and after its deletion."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from control_plane import HELLO, Answer, Clock, Engines, Node

from atoll.api.refusals import ApiCode
from atoll.config import Settings
from atoll.control.access import reserved

Start = Callable[..., Any]
DAY = 86_400


class Tenant:
    def __init__(self, node: Node, token: str) -> None:
        self.node, self.token = node, token

    async def ask(self, method: str, path: str, body: object = None) -> Answer:
        return await self.node.ask(method, path, body, authorization=f"Bearer {self.token}")

    async def deploy(self, name: str, *routes: str) -> Answer:
        return await self.ask("POST", "/api/workers", {"name": name, "script": HELLO, "routes": routes})

    async def delete(self, name: str) -> None:
        assert (await self.ask("DELETE", f"/api/workers/{name}")).status == 204


async def tenant_of(node: Node, name: str) -> Tenant:
    await node.ask("POST", "/api/tenants", {"name": name})
    made = await node.ask("POST", "/api/tokens", {"name": f"{name}-admin", "scopes": ["admin"]}, x_atoll_tenant=name)
    return Tenant(node, made.json["token"])


@pytest.fixture
async def acme(node: Node) -> AsyncIterator[Tenant]:
    yield await tenant_of(node, "acme")


@pytest.fixture
async def globex(node: Node) -> AsyncIterator[Tenant]:
    yield await tenant_of(node, "globex")


def is_refused(answer: Answer) -> bool:
    """Refused by a rule about hosts, without naming the owner."""
    text = answer.content
    return answer.code in (ApiCode.ROUTE_TAKEN, ApiCode.NAME_TAKEN) and b"acme" not in text


OVER_SHOP = [
    "shop.localhost/*",
    "shop.localhost/secret/*",
    "shop.localhost",
    "x.shop.localhost/*",
    "x.shop.localhost",
    "a.b.c.shop.localhost/x",
    "*shop.localhost/*",
    "*.shop.localhost/*",
    "*x.shop.localhost/x",
    "*.x.shop.localhost/*",
    "X.SHOP.LocalHost./*",
    "https://x.shop.localhost/*",
    "xn--mnchen-3ya.shop.localhost/*",
    "_dmarc.shop.localhost/*",
]


@pytest.mark.parametrize("route", OVER_SHOP)
async def test_no_tenant_can_take_a_host_below_or_above_the_name_of_another(
    acme: Tenant, globex: Tenant, route: str
) -> None:
    assert (await acme.deploy("shop")).status == 201
    assert is_refused(await globex.deploy("thief", route))
    assert (await acme.deploy("second", "x.shop.localhost/*")).status == 201, "the tenant of the name may"


@pytest.mark.parametrize("route", OVER_SHOP)
async def test_a_name_is_refused_while_another_tenant_has_a_host_below_or_above_it(
    acme: Tenant, globex: Tenant, route: str
) -> None:
    assert (await acme.deploy("first", route)).status == 201
    answer = await globex.deploy("shop")
    assert is_refused(answer) and b"secret" not in answer.content, "paths of the other tenant are not shown"
    assert (await acme.deploy("shop")).status == 201 or route.startswith("shop."), "the tenant of the host may"


async def test_similar_names_are_free(acme: Tenant, globex: Tenant) -> None:
    assert (await acme.deploy("shop", "*shop.localhost/*")).status == 201
    assert (await globex.deploy("workshop", "x.workshop.localhost/*", "shop-localhost.example/*")).status == 201
    assert (await globex.deploy("x", "shop.x.localhost/*")).status == 201


async def test_hosts_below_one_name_belong_to_one_tenant_even_without_a_worker(acme: Tenant, globex: Tenant) -> None:
    assert (await acme.deploy("one", "a.shop.localhost/*")).status == 201
    assert is_refused(await globex.deploy("two", "b.shop.localhost/*")), "the two hosts would share cookies"


async def test_of_two_concurrent_tenants_only_one_gets_a_host(
    node: Node, engines: Engines, acme: Tenant, globex: Tenant
) -> None:
    pairs = [("shop", (), "thief", ("x.shop.localhost/*",)), ("one", ("*.a.example/*",), "two", ("b.a.example/*",))]
    for name, mine, other, theirs in pairs:
        engines.gate, before = asyncio.Event(), len(engines.checked)
        asked = asyncio.gather(acme.deploy(name, *mine), globex.deploy(other, *theirs))
        await engines.until_checked(before + 2)  # both have passed the first check, and neither has the host
        engines.gate.set()
        answers = await asked
        assert sorted(answer.status for answer in answers) == [201, 409]
        assert all(answer.status == 201 or is_refused(answer) or b"acme" not in answer.content for answer in answers)


async def test_a_catch_all_of_an_operator_answers_for_unowned_hosts(node: Node, acme: Tenant) -> None:
    assert (await node.post(name="catch-all", script=HELLO, routes=["*.localhost/*"])).status == 201
    assert (await acme.deploy("shop")).status == 201
    for host, name in (("shop", "shop"), ("free", "catch-all"), ("a.free", "catch-all")):
        live = node.live(f"{host}.localhost")
        assert live is not None and live.worker_name == name
    assert node.live("x.shop.localhost") is None, "below a name, only its tenant may answer"
    assert (await acme.deploy("deep", "x.shop.localhost/*")).status == 201
    live = node.live("x.shop.localhost")
    assert live is not None and live.worker_name == "deep"


async def test_a_tenant_cannot_have_a_host_below_a_control_host(node: Node, acme: Tenant) -> None:
    for route in ("x.control.example/*", "*control.example/*", "*.control.example/*"):
        answer = await acme.deploy("near", route)
        assert (answer.status, answer.code) == (400, ApiCode.BAD_ROUTE)
    assert (await node.post(name="near", script=HELLO, routes=["x.control.example/*"])).status == 201


# After a deletion


FREED = [
    "shop.localhost/*",
    "x.shop.localhost/*",
    "*shop.localhost/*",
    "shop.example/*",
    "*.shop.example/x",
    "shop.example",
]


@pytest.mark.parametrize("route", FREED)
async def test_the_host_of_a_deleted_worker_is_not_inherited(
    start: Start, clock: Clock, settings: Settings, route: str
) -> None:
    async with start() as node:
        acme, globex = await tenant_of(node, "acme"), await tenant_of(node, "globex")
        assert (await acme.deploy("shop", "shop.example/*", "*.shop.example/*")).status == 201
        await acme.delete("shop")
        answer = await globex.deploy("thief", route)
        assert (answer.status, answer.code) == (409, ApiCode.HOST_RESERVED)
        assert "30 days" in answer.json["error"]["message"] and "release" in answer.json["error"]["hint"]
        assert b"acme" not in answer.content
        assert (await globex.deploy("shop")).code == ApiCode.HOST_RESERVED
    clock.now += 30 * DAY - 60
    async with start() as node:  # a restart does not forget it
        globex.node = acme.node = node
        assert (await globex.deploy("thief", route)).code == ApiCode.HOST_RESERVED
        assert (
            await acme.deploy("shop", route) if "shop.localhost" not in route else await acme.deploy("shop")
        ).status == 201
        await acme.delete("shop")
    clock.now += 61  # the first reservation has expired, the second has just started
    async with start() as node:
        globex.node = acme.node = node
        if "shop.localhost" in route:
            assert (await globex.deploy("thief", route)).code == ApiCode.HOST_RESERVED
        clock.now += 30 * DAY
        assert (await globex.deploy("thief", route)).status == 201


async def test_a_removed_route_is_not_inherited(node: Node, acme: Tenant, globex: Tenant) -> None:
    await acme.deploy("shop", "shop.example/*")
    assert (await acme.ask("PUT", "/api/workers/shop", {"routes": []})).status == 200
    assert (await globex.deploy("thief", "*shop.example/*")).code == ApiCode.HOST_RESERVED
    assert (
        await acme.ask("POST", "/api/workers/shop/rollback", {})
    ).status == 200  # back to the version with the route
    live = node.live("shop.example")
    assert live is not None and live.tenant == "acme"


async def test_a_rollback_cannot_take_a_host_that_another_tenant_has_now(
    node: Node, clock: Clock, acme: Tenant, globex: Tenant
) -> None:
    await acme.deploy("shop", "shop.example/*")
    await acme.ask("PUT", "/api/workers/shop", {"routes": []})
    clock.now += 31 * DAY
    assert (await globex.deploy("heir", "shop.example/*")).status == 201
    answer = await acme.ask("POST", "/api/workers/shop/rollback", {})
    assert (answer.status, answer.code) == (409, ApiCode.ROUTE_TAKEN)


async def test_a_tenant_of_the_same_name_inherits_no_host(start: Start) -> None:
    async with start() as node:
        acme = await tenant_of(node, "acme")
        await acme.deploy("shop", "shop.example/*")
        await acme.delete("shop")
        assert (await node.ask("DELETE", "/api/tenants/acme")).status == 204
        again = await tenant_of(node, "acme")
        assert (await again.deploy("shop")).code == ApiCode.HOST_RESERVED
    async with start() as node:
        again.node = node
        assert (await again.deploy("other", "shop.example/*")).code == ApiCode.HOST_RESERVED
        assert (await again.ask("GET", "/api/reserved-hosts")).json == {"hosts": []}
        shown = (await node.ask("GET", "/api/reserved-hosts")).json["hosts"]
        assert [(each["host"], each["tenant"]) for each in shown] == [("*shop.localhost", None), ("shop.example", None)]


async def test_an_operator_or_the_tenant_itself_can_release_a_host(
    start: Start, clock: Clock, settings: Settings
) -> None:
    async with start() as node:
        acme, globex = await tenant_of(node, "acme"), await tenant_of(node, "globex")
        for name in ("shop", "mail"):
            await acme.deploy(name)
            await acme.delete(name)
        [mail, shop] = (await acme.ask("GET", "/api/reserved-hosts")).json["hosts"]
        assert shop == {
            "host": "*shop.localhost",
            "tenant": "acme",
            "freed_at": "2027-01-15T08:00:00.500Z",
            "reserved_until": "2027-02-14T08:00:00.500Z",
        }
        page = (await acme.ask("GET", "/api/reserved-hosts?limit=1")).json
        assert page == {"hosts": [mail], "cursor": "1"}
        assert (await acme.ask("GET", "/api/reserved-hosts?cursor=1")).json == {"hosts": [shop]}
        assert (await globex.ask("GET", "/api/reserved-hosts")).json == {"hosts": []}
        assert (await globex.ask("DELETE", "/api/reserved-hosts/*shop.localhost")).code == ApiCode.NOT_FOUND
        assert (await acme.ask("DELETE", "/api/reserved-hosts/Shop.localhost")).status == 204
        assert (await node.ask("DELETE", "/api/reserved-hosts/*mail.localhost")).status == 204
        assert (await node.ask("DELETE", "/api/reserved-hosts/*mail.localhost")).status == 404
        lines = (await node.ask("GET", "/api/audit")).json["audit"]
        assert [line["target"] for line in lines if line["action"] == "host.release"] == [
            "*mail.localhost",
            "*shop.localhost",
        ]
    async with start() as node:
        globex.node = node
        assert (await globex.deploy("shop")).status == 201
        assert (await globex.deploy("two", "*mail.localhost/*")).status == 201


async def test_a_host_in_use_is_not_listed_as_reserved(acme: Tenant) -> None:
    await acme.deploy("shop")
    await acme.delete("shop")
    await acme.deploy("shop")
    assert (await acme.ask("GET", "/api/reserved-hosts")).json == {"hosts": []}


async def test_a_reserved_name_stays_reserved_under_another_base_domain(start: Start) -> None:
    async with start() as node:
        acme, globex = await tenant_of(node, "acme"), await tenant_of(node, "globex")
        await acme.deploy("shop")
        await acme.delete("shop")
    async with start(Settings(base_domain="workers.example")) as node:
        globex.node = node
        assert (await globex.deploy("thief", "x.shop.workers.example/*")).code == ApiCode.HOST_RESERVED
        assert (await globex.deploy("shop")).code == ApiCode.HOST_RESERVED


async def test_with_zero_days_no_host_is_reserved(start: Start) -> None:
    async with start(Settings(reserved_host_days=0)) as node:
        acme, globex = await tenant_of(node, "acme"), await tenant_of(node, "globex")
        await acme.deploy("shop")
        await acme.delete("shop")
        assert (await globex.deploy("shop")).status == 201


async def test_deleting_workers_does_not_reserve_unlimited_names(
    start: Start, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reserved, "MAX_RESERVED", 3)
    async with start() as node:
        acme, globex = await tenant_of(node, "acme"), await tenant_of(node, "globex")
        for number in range(5):
            clock.now += 1
            await acme.deploy(f"w{number}")
            await acme.delete(f"w{number}")
    async with start() as node:
        globex.node = node
        answers = [await globex.deploy(f"w{number}") for number in range(5)]
        assert [answer.status for answer in answers] == [201, 201, 409, 409, 409]


async def test_hosts_from_older_rules_do_not_answer_for_a_name_of_another_tenant(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    async with start() as node:
        acme, globex = await tenant_of(node, "acme"), await tenant_of(node, "globex")
        await acme.deploy("shop")
        await globex.deploy("thief", "x.other.localhost/*")
        await node.database.write(
            lambda c: c.execute("UPDATE versions SET routes = replace(routes, 'other', 'shop')").fetchall()
        )
        await node.database.write(
            lambda c: c.execute("UPDATE routes SET pattern = replace(pattern, 'other', 'shop')").fetchall()
        )
    async with start() as node:
        assert node.live("x.shop.localhost") is None
        assert "the worker thief has a host of another tenant" in caplog.text
