"""Tenants: resources of one tenant do not exist for another, hosts are protected, quotas are enforced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from control_plane import HELLO, Answer, Clock, Node

from atoll.api import audit
from atoll.api.audit import Mark
from atoll.api.callers import LOCAL, Scope
from atoll.api.refusals import ApiCode, Refused
from atoll.db.sqlite import rows

Start = Callable[..., Any]


class Tenant:
    """A tenant with its own admin token."""

    def __init__(self, node: Node, token: str) -> None:
        self.node, self.token = node, token

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        return await self.node.ask(method, path, body, authorization=f"Bearer {self.token}", **headers)

    async def deploy(self, name: str, *routes: str, **fields: object) -> Answer:
        return await self.ask("POST", "/api/workers", {"name": name, "script": HELLO, "routes": routes, **fields})


async def new_tenant(node: Node, name: str, **fields: object) -> Tenant:
    assert (await node.ask("POST", "/api/tenants", {"name": name, **fields})).status == 201
    body = {"name": f"{name}-admin", "scopes": ["admin"]}
    return Tenant(node, (await node.ask("POST", "/api/tokens", body, x_atoll_tenant=name)).json["token"])


@pytest.fixture
async def acme(node: Node) -> AsyncIterator[Tenant]:
    yield await new_tenant(node, "acme")


@pytest.fixture
async def globex(node: Node) -> AsyncIterator[Tenant]:
    yield await new_tenant(node, "globex")


async def test_a_worker_belongs_to_the_tenant_that_deployed_it(start: Start) -> None:
    async with start() as node:
        acme = await new_tenant(node, "acme")
        assert (await acme.deploy("shop")).status == 201
        live = node.live("shop.localhost")
        assert live is not None and live.tenant == "acme"
        assert (await node.ask("GET", "/api/workers")).json == {"workers": []}
        assert (await node.ask("GET", "/api/workers/shop")).code == ApiCode.NO_WORKER
        [shown] = (await node.ask("GET", "/api/workers", x_atoll_tenant="acme")).json["workers"]
        assert shown["name"] == "shop" and shown["version"]["author"] == "acme-admin"
    async with start() as node:
        live = node.live("shop.localhost")
        assert live is not None and live.tenant == "acme"


async def test_a_token_cannot_act_for_another_tenant(node: Node, acme: Tenant, globex: Tenant) -> None:
    await acme.deploy("shop")
    assert (await globex.ask("GET", "/api/workers", x_atoll_tenant="acme")).code == ApiCode.FORBIDDEN
    assert (await globex.ask("GET", "/api/workers", x_atoll_tenant="globex")).status == 200
    assert (await node.ask("GET", "/api/workers", x_atoll_tenant="nobody")).code == ApiCode.NO_TENANT
    assert (await globex.ask("GET", "/api/tenants/acme")).code == ApiCode.NO_TENANT
    assert (await globex.ask("GET", "/api/tenants/globex")).json["name"] == "globex"


async def test_a_name_is_unique_on_the_whole_node(acme: Tenant, globex: Tenant) -> None:
    await acme.deploy("shop")
    answer = await globex.deploy("shop")
    assert (answer.status, answer.code) == (409, ApiCode.NAME_TAKEN)
    assert "PUT" not in answer.json["error"]["hint"] and b"acme" not in answer.content


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        ("shop.example/*", "shop.example/*"),
        ("shop.example", "shop.example/admin/*"),
        ("shop.example/api/*", "shop.example"),
        ("*.shop.example/*", "a.shop.example/x"),
        ("*.shop.example/*", "*.a.shop.example/x"),
        ("a.shop.example/*", "*.shop.example/*"),
        ("*shop.example/*", "shop.example/x"),
        ("shop.example/*", "*shop.example/*"),
        ("*.shop.example/*", "*shop.example/*"),
    ],
)
async def test_no_tenant_can_route_over_another(
    node: Node, acme: Tenant, globex: Tenant, theirs: str, mine: str
) -> None:
    assert (await acme.deploy("theirs", theirs)).status == 201
    answer = await globex.deploy("mine", mine)
    assert (answer.status, answer.code) == (409, ApiCode.ROUTE_TAKEN)
    assert b"acme" not in answer.content and b"theirs" not in answer.content
    within = await acme.deploy("second", mine)  # within one tenant the more specific route wins, unless both are equal
    assert within.status == (409 if theirs == mine else 201)
    assert (await globex.deploy("mine", "other.example/*")).status == 201


async def test_similar_hosts_are_free(acme: Tenant, globex: Tenant) -> None:
    assert (await acme.deploy("one", "shop.example/*", "*.a.example/*")).status == 201
    assert (await globex.deploy("two", "workshop.example/*", "a.example/*", "*.b.example/*")).status == 201


async def test_the_own_host_of_a_tenant_cannot_be_routed_over(acme: Tenant, globex: Tenant) -> None:
    await acme.deploy("shop")
    answer = await globex.deploy("thief", "shop.localhost/admin")
    assert (answer.status, answer.code) == (409, ApiCode.ROUTE_TAKEN)
    assert "`shop`" not in answer.json["error"]["message"]


@pytest.mark.parametrize("wide", ["*/*", "*com/*", "*.com/*", "*.localhost/*", "*localhost/*"])
async def test_only_an_operator_can_route_all_hosts(node: Node, acme: Tenant, wide: str) -> None:
    answer = await acme.deploy("greedy", wide)
    assert (answer.status, answer.code) == (400, ApiCode.BAD_ROUTE)
    assert (await node.post(name="catch-all", script=HELLO, routes=[wide])).status == 201


async def test_an_operator_can_restrict_the_hosts_of_a_tenant(node: Node) -> None:
    acme = await new_tenant(node, "acme", hosts=["acme.example", "*.Acme.example"])
    shown = (await node.ask("GET", "/api/tenants/acme")).json
    assert shown["hosts"] == ["acme.example", "*.acme.example"]
    assert (await acme.deploy("one", "acme.example", "a.b.acme.example/x", "*.b.acme.example/*")).status == 201
    for foreign in ("globex.example/*", "*acme.example/*", "notacme.example/*", "*/*"):
        assert (await acme.deploy("two", foreign)).code == ApiCode.BAD_ROUTE
    await node.ask("PATCH", "/api/tenants/acme", {"hosts": None})
    assert (await acme.deploy("two", "globex.example/*")).status == 201
    assert (await node.ask("PATCH", "/api/tenants/acme", {"hosts": ["a/b"]})).code == ApiCode.BAD_BODY


async def test_routes_are_listed_with_their_kind(node: Node, acme: Tenant) -> None:
    await acme.deploy("shop", "shop.example/api/*", "shop.example")
    assert (await acme.ask("GET", "/api/routes")).json["routes"] == [
        {"pattern": "shop.localhost/*", "worker": "shop", "kind": "name"},
        {"pattern": "shop.example/api/*", "worker": "shop", "kind": "route"},
        {"pattern": "shop.example", "worker": "shop", "kind": "custom_domain"},
    ]
    assert (await node.ask("GET", "/api/routes")).json == {"routes": []}


async def test_quotas_of_workers_and_code_are_enforced(start: Start) -> None:
    async with start() as node:
        acme = await new_tenant(node, "acme", quotas={"workers": 2, "script_bytes": 3 * len(HELLO)})
        assert (await acme.deploy("one")).status == 201
        assert (await acme.deploy("two")).status == 201
        assert (await acme.deploy("three")).code == ApiCode.TOO_MANY_WORKERS
    async with start() as node:
        acme.node = node
        large = await acme.ask("PUT", "/api/workers/one", {"script": HELLO + " " * 2 * len(HELLO)})
        assert (large.status, large.code) == (403, ApiCode.QUOTA)
        assert (await acme.ask("PUT", "/api/workers/one", {"script": HELLO + "//" + "x" * 10})).status == 200
        shown = (await acme.ask("GET", "/api/tenants/acme")).json
        assert shown["usage"] == {
            "workers": 2,
            "script_bytes": 2 * len(HELLO) + 12,
            "ai_tokens_per_day": 0,
            "emails_per_day": 0,
            "kv_keys": 0,
            "kv_bytes": 0,
            "durable_objects": 0,
            "workflow_instances": 0,
            "d1_databases": 0,
            "queue_bytes": 0,
            "r2_buckets": 0,
            "r2_objects": 0,
            "r2_bytes": 0,
            "asset_bytes": 0,
            "asset_count": 0,
        }
        assert shown["quotas"]["workers"] == 2 and shown["quotas"]["requests_per_second"] is None
        await node.ask("PATCH", "/api/tenants/acme", {"quotas": {"workers": None}})
        quotas = (await acme.ask("GET", "/api/tenants/acme")).json["quotas"]
        assert quotas["workers"] is None and quotas["script_bytes"] == 3 * len(HELLO)
        assert (await acme.ask("PATCH", "/api/tenants/acme", {"quotas": {}})).code == ApiCode.FORBIDDEN
    async with start() as node:
        assert (await node.ask("GET", "/api/tenants/acme")).json["quotas"] == quotas


async def test_old_versions_of_a_tenant_stay_within_its_quota(node: Node) -> None:
    acme = await new_tenant(node, "acme", quotas={"script_bytes": 5 * len(HELLO)})
    for name in ("one", "two"):
        assert (await acme.deploy(name)).status == 201
    for number in range(6):
        assert (await acme.ask("PUT", "/api/workers/two", {"env": {"N": number}})).status == 200, (
            "old versions make room"
        )
    kept = {name: (await acme.ask("GET", f"/api/workers/{name}/versions")).json["versions"] for name in ("one", "two")}
    assert [version["number"] for version in kept["one"]] == [1], "the active version is never deleted"
    assert [version["number"] for version in kept["two"]] == [7, 6, 5, 4]
    for number in range(6):
        await acme.ask("PUT", "/api/workers/one/secrets/KEY", {"value": f"{number}"})
    stored = node.database.read(lambda connection: rows(connection, int, "SELECT count(*) FROM secrets"))
    assert stored == [len((await acme.ask("GET", "/api/workers/one/versions")).json["versions"])], (
        "their secrets are deleted too"
    )
    assert (await acme.ask("POST", "/api/workers/two/rollback", {})).status == 200
    large = await acme.ask("PUT", "/api/workers/two", {"script": HELLO + " " * 4 * len(HELLO)})
    assert (large.status, large.code) == (403, ApiCode.QUOTA)


async def test_many_changes_of_one_tenant_do_not_push_out_audit_lines_of_another(
    node: Node, acme: Tenant, globex: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "KEPT", 10)
    monkeypatch.setattr(audit, "TRIM_EVERY", 1)
    await acme.deploy("quiet")
    await globex.deploy("loud")
    for number in range(15):
        await globex.ask("PUT", "/api/workers/loud", {"env": {"N": number}})
    assert len((await globex.ask("GET", "/api/audit")).json["audit"]) == 10
    actions = [line["action"] for line in (await acme.ask("GET", "/api/audit")).json["audit"]]
    assert "worker.create" in actions


async def test_a_tenant_can_be_deleted_once_it_is_empty(node: Node, acme: Tenant) -> None:
    await acme.deploy("shop")
    answer = await node.ask("DELETE", "/api/tenants/acme")
    assert (answer.status, answer.code) == (409, ApiCode.TENANT_IN_USE) and b"worker shop" in answer.content
    await acme.ask("DELETE", "/api/workers/shop")
    assert (await node.ask("DELETE", "/api/tenants/acme")).status == 204
    assert (await acme.ask("GET", "/api/workers")).status == 401
    assert (await node.ask("GET", "/api/tenants/acme")).code == ApiCode.NO_TENANT
    assert (await node.ask("DELETE", "/api/tenants/default")).code == ApiCode.TENANT_IN_USE


async def test_concurrent_changes_of_a_tenant_do_not_undo_each_other(node: Node) -> None:
    made = await asyncio.gather(*(node.ask("POST", "/api/tenants", {"name": "acme"}) for _ in range(4)))
    assert sorted(answer.status for answer in made) == [201, 409, 409, 409]
    quotas = {"workers": 1, "script_bytes": 2, "kv_keys": 3, "kv_bytes": 4}
    changes = [{"quotas": {name: most}} for name, most in quotas.items()]
    await asyncio.gather(*(node.ask("PATCH", "/api/tenants/acme", change) for change in changes))
    kept = (await node.ask("GET", "/api/tenants/acme")).json["quotas"]
    assert {name: most for name, most in kept.items() if most is not None} == quotas
    ends = [node.ask("DELETE", "/api/tenants/acme") for _ in range(4)]
    gone = await asyncio.gather(*ends, node.ask("PATCH", "/api/tenants/acme", {"hosts": None}))
    assert [answer.status for answer in gone] == [204, 404, 404, 404, 404]
    assert (await node.ask("GET", "/api/tenants/acme")).status == 404


async def test_a_tenant_cannot_read_the_audit_lines_of_an_earlier_tenant_of_its_name(
    node: Node, acme: Tenant, clock: Clock
) -> None:
    await acme.deploy("shop")
    await acme.ask("DELETE", "/api/workers/shop")
    assert (await node.ask("DELETE", "/api/tenants/acme")).status == 204
    clock.now += 1
    again = await new_tenant(node, "acme")
    await again.deploy("mine")
    lines = (await again.ask("GET", "/api/audit")).json["audit"]
    assert [line["action"] for line in lines] == ["worker.create", "token.create"]
    everybodys = (await node.ask("GET", "/api/audit")).json["audit"]
    assert any(line["target"] == "shop" for line in everybodys), "an operator reads everything"


async def test_no_token_may_use_the_name_of_the_local_operator(acme: Tenant) -> None:
    answer = await acme.ask("POST", "/api/tokens", {"name": "local", "scopes": ["deploy"]})
    assert (answer.status, answer.code) == (400, ApiCode.BAD_BODY)


async def test_no_token_outlives_its_tenant(node: Node) -> None:
    await node.ask("POST", "/api/tenants", {"name": "acme"})
    token = node.ask("POST", "/api/tokens", {"name": "late", "scopes": ["admin"]}, x_atoll_tenant="acme")
    late, gone = await asyncio.gather(token, node.ask("DELETE", "/api/tenants/acme"))
    assert gone.status == 204
    await node.ask("POST", "/api/tenants", {"name": "acme"})  # possibly for another customer
    assert (await node.ask("GET", "/api/tokens", x_atoll_tenant="acme")).json["tokens"] == []
    if late.status == 201:
        assert (await node.ask("GET", "/api/workers", authorization=f"Bearer {late.json['token']}")).status == 401
    access = node.access
    mark = Mark.of(LOCAL, 0)
    with pytest.raises(Refused, match="does not exist"):
        await access.tokens.make("lost", [Scope.READ], "nobody", None, mark)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "Acme"},
        {"name": "acme", "quotas": {"workers": -1}},
        {"name": "acme", "quotas": {"workers": 1.5}},
        {"name": "acme", "quotas": {"wrokers": 1}},
        {"name": "acme", "hosts": ["a b"]},
        {"name": "acme", "hosts": ["http://a.example"]},
        {},
    ],
)
async def test_an_invalid_tenant_is_refused(node: Node, body: object) -> None:
    answer = await node.ask("POST", "/api/tenants", body)
    assert answer.status == 400
    assert [tenant["name"] for tenant in (await node.ask("GET", "/api/tenants")).json["tenants"]] == ["default"]


async def test_the_audit_log_has_pages_and_shows_a_tenant_only_its_own_lines(
    node: Node, acme: Tenant, globex: Tenant
) -> None:
    for i in range(3):
        await acme.deploy(f"w{i}")
    await globex.deploy("other")
    lines = (await acme.ask("GET", "/api/audit?limit=2")).json
    assert [(line["actor"], line["action"], line["target"]) for line in lines["audit"]] == [
        ("acme-admin", "worker.create", "w2"),
        ("acme-admin", "worker.create", "w1"),
    ]
    rest = (await acme.ask("GET", f"/api/audit?cursor={lines['cursor']}")).json
    assert [line["action"] for line in rest["audit"]] == ["worker.create", "token.create"] and "cursor" not in rest
    everything = (await node.ask("GET", "/api/audit")).json["audit"]
    assert {line["tenant"] for line in everything} == {"default", "acme", "globex"}
    for bad in ("limit=0", "limit=x", "cursor=-1", "limit=1001"):
        assert (await acme.ask("GET", f"/api/audit?{bad}")).code == ApiCode.BAD_BODY


async def test_a_service_of_another_tenant_is_not_found_by_its_name(node: Node, acme: Tenant) -> None:
    assert (await acme.deploy("shop")).status == 201
    found = node.deployer.active_named("acme", "shop")
    assert found is not None and found.worker_name == "shop"
    assert node.deployer.active_named("default", "shop") is None
    assert node.deployer.active_named("acme", "nobody") is None
