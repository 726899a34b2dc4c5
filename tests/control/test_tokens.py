"""Who gets in: tokens and their scopes, the open door of a local node, and that nobody else finds one."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from control_plane import HELLO, Answer, Clock, Node

from atoll.config import Settings
from atoll.control.check import DeployBody
from atoll.control.gate import FAILURES, TOKEN_FILE, WINDOW, is_loopback
from atoll.control.refusals import ApiCode

Start = Callable[..., Any]


async def made(node: Node, *scopes: str, **fields: object) -> Any:
    """A new token, as the API answers it."""
    tenant = str(fields.pop("tenant", "default"))
    answer = await node.ask("POST", "/api/tokens", {"name": "ci", "scopes": scopes, **fields}, x_atoll_tenant=tenant)
    assert answer.status == 201, answer.content
    return answer.json


async def ask(node: Node, token: str, method: str, path: str, body: object = None, **headers: str) -> Answer:
    return await node.ask(method, path, body, authorization=f"Bearer {token}", **headers)


async def test_a_token_is_shown_once_and_stored_as_a_hash(node: Node, tmp_path: Path) -> None:
    answer = await made(node, "deploy", "logs")
    text = answer.pop("token")
    assert text.startswith(f"atoll_{answer['id']}_") and len(text) > 50
    assert answer["scopes"] == ["deploy", "logs"] and answer["tenant"] == "default" and answer["expires_at"] is None
    listed = await node.ask("GET", "/api/tokens")
    assert listed.json == {"tokens": [answer]}
    assert (await ask(node, text, "GET", "/api/workers")).status == 200
    await node.database.write(lambda _: None)
    assert files_with(tmp_path, answer["id"]) and not files_with(tmp_path, text.split("_", 2)[2])


def files_with(folder: Path, text: str) -> list[Path]:
    return [file for file in folder.iterdir() if file.is_file() and text.encode() in file.read_bytes()]


async def test_a_token_survives_a_restart_until_it_is_revoked(start: Start) -> None:
    async with start() as node:
        token = await made(node, "read")
    async with start() as node:
        assert (await ask(node, token["token"], "GET", "/api/workers")).status == 200
        assert (await node.ask("DELETE", f"/api/tokens/{token['id']}")).status == 204
        assert (await ask(node, token["token"], "GET", "/api/workers")).code == ApiCode.UNAUTHENTICATED
        assert (await node.ask("DELETE", f"/api/tokens/{token['id']}")).code == ApiCode.NOT_FOUND
    async with start() as node:
        assert (await ask(node, token["token"], "GET", "/api/workers")).status == 401


async def test_a_token_expires(node: Node, clock: Clock) -> None:
    token = await made(node, "read", expires_in=60)
    assert token["expires_at"] == "2027-01-15T08:01:00.500Z"
    assert (await ask(node, token["token"], "GET", "/api/workers")).status == 200
    clock.now += 60
    assert (await ask(node, token["token"], "GET", "/api/workers")).status == 401


async def test_it_is_known_when_a_token_was_used_last(start: Start, clock: Clock) -> None:
    async with start() as node:
        token = await made(node, "read")
        assert token["used_at"] is None
        clock.now += 90
        await ask(node, token["token"], "GET", "/api/workers")
    async with start() as node:
        [listed] = (await node.ask("GET", "/api/tokens")).json["tokens"]
        assert listed["used_at"] == "2027-01-15T08:01:30.500Z"


@pytest.mark.parametrize(
    ("scope", "statuses"),
    [
        ("read", (200, 403, 403, 403)),
        ("deploy", (200, 201, 403, 403)),
        ("logs", (403, 403, 200, 403)),
        ("admin", (200, 201, 200, 200)),
    ],
)
async def test_a_scope_is_all_that_a_token_may_do(node: Node, scope: str, statuses: tuple[int, ...]) -> None:
    await node.post(name="there", script=HELLO)
    text = (await made(node, scope))["token"]
    answers = [
        await ask(node, text, "GET", "/api/workers/there"),
        await ask(node, text, "POST", "/api/workers", {"name": "new", "script": HELLO}),
        await ask(node, text, "GET", "/api/workers/there/logs"),
        await ask(node, text, "GET", "/api/tokens"),
    ]
    assert tuple(answer.status for answer in answers) == statuses
    assert all(answer.code == ApiCode.FORBIDDEN for answer in answers if answer.status == 403)


async def test_a_token_of_a_tenant_makes_only_tokens_of_that_tenant_that_may_no_more(node: Node) -> None:
    await node.ask("POST", "/api/tenants", {"name": "acme"})
    admin = (await made(node, "admin", tenant="acme"))["token"]
    answer = await ask(node, admin, "POST", "/api/tokens", {"name": "x", "scopes": ["read"]})
    assert answer.status == 201 and answer.json["tenant"] == "acme"
    wide = {"name": "x", "scopes": ["read"], "all_tenants": True}
    assert (await ask(node, admin, "POST", "/api/tokens", wide)).code == ApiCode.FORBIDDEN
    other = await made(node, "read")
    assert (await ask(node, admin, "DELETE", f"/api/tokens/{other['id']}")).code == ApiCode.NOT_FOUND
    listed = (await ask(node, admin, "GET", "/api/tokens")).json["tokens"]
    assert {token["tenant"] for token in listed} == {"acme"} and len(listed) == 2


@pytest.mark.parametrize("tenant", ["acme", ""])
async def test_a_token_makes_none_that_outlives_it(node: Node, clock: Clock, tenant: str) -> None:
    await node.ask("POST", "/api/tenants", {"name": "acme"})
    wide = {} if tenant else {"all_tenants": True}
    mother = await made(node, "admin", tenant=tenant or "default", expires_in=60, **wide)

    async def make(**fields: object) -> Answer:
        return await ask(node, mother["token"], "POST", "/api/tokens", {"name": "x", "scopes": ["admin"], **fields})

    longer = await make(expires_in=61)
    assert longer.code == ApiCode.FORBIDDEN and "outlive" in longer.json["error"]["message"]
    assert (await make(expires_in=60)).json["expires_at"] == mother["expires_at"]
    silent = await make()
    assert silent.json["expires_at"] == mother["expires_at"], "without a word: as long as its maker"
    clock.now += 59
    grandchild = await ask(node, silent.json["token"], "POST", "/api/tokens", {"name": "y", "scopes": ["read"]})
    assert grandchild.json["expires_at"] == mother["expires_at"]
    clock.now += 1
    for text in (silent.json["token"], grandchild.json["token"]):
        assert (await ask(node, text, "GET", "/api/workers")).status == 401


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"name": "", "scopes": ["read"]}, "name"),
        ({"name": "x", "scopes": []}, "scopes"),
        ({"name": "x", "scopes": ["root"]}, "root"),
        ({"name": "x", "scopes": ["public"]}, "public"),
        ({"name": "x", "scopes": ["read"], "expires_in": 0}, "expires_in"),
        ({"name": "x", "scopes": ["read"], "expires_in": 1e300}, "expires_in"),
        ({"name": "x\0", "scopes": ["read"]}, "name"),
        ({"name": "x", "scope": ["read"]}, "scope"),
    ],
)
async def test_a_token_that_makes_no_sense_is_refused(node: Node, body: object, says: str) -> None:
    answer = await node.ask("POST", "/api/tokens", body)
    assert (answer.status, answer.code) == (400, ApiCode.BAD_BODY)
    assert says in answer.json["error"]["message"]


# The open door


@pytest.mark.parametrize(("host", "is_local"), [
    ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("localhost", True),
    ("0.0.0.0", False), ("::", False), ("192.168.0.1", False), ("node.example", False), ("", False),
])  # fmt: skip
def test_only_loopback_addresses_are_this_machine(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local


@pytest.mark.parametrize("change", [{"host": "0.0.0.0"}, {"control_auth": "token"}])
async def test_elsewhere_nothing_works_without_a_token(start: Start, settings: Settings, change: Any) -> None:
    async with start(replace(settings, **change)) as node:
        for route in node.api.routes:
            path = route.path.replace("{", "").replace("}", "")
            answer = await node.ask(route.method, path, {})
            if route.scope == "public":
                assert answer.status == 200
            else:
                assert (answer.status, answer.code) == (401, ApiCode.UNAUTHENTICATED), route
                assert answer.headers["www-authenticate"] == "Bearer"


async def test_through_a_proxy_or_by_another_name_the_door_is_closed(node: Node) -> None:
    assert (await node.ask("GET", "/api/workers")).status == 200
    assert (await node.ask("GET", "/api/workers", host="control.example")).status == 401
    for header in ("x_forwarded_for", "forwarded", "x_real_ip", "via", "x_forwarded_proto", "cf_ray", "true_client_ip"):
        assert (await node.ask("GET", "/api/workers", **{header: "198.51.100.7"})).status == 401
    assert (await node.ask("GET", "/api/workers", http_version="1.0")).status == 401, "as nginx asks by default"
    token = (await made(node, "read"))["token"]
    assert (await ask(node, token, "GET", "/api/workers", host="control.example")).status == 200


async def test_a_wrong_token_is_refused_even_where_none_is_needed(node: Node) -> None:
    for shown in (
        "Bearer nonsense",
        "Bearer ",
        "Basic YTpi",
        "",
        "Bearer atoll_aaaaaaaaaaaa_x",
        "Bearer " + "x" * 5000,
    ):
        answer = await node.ask("GET", "/api/workers", authorization=shown)
        assert (answer.status, answer.code) == (401, ApiCode.UNAUTHENTICATED)


async def test_failed_logins_are_slowed_down_and_good_ones_are_not(node: Node, clock: Clock) -> None:
    token = (await made(node, "read"))["token"]
    answers = [await ask(node, token + "x", "GET", "/api/workers") for _ in range(FAILURES + 2)]
    assert [answer.status for answer in answers] == [401] * FAILURES + [429] * 2
    assert answers[-1].code == ApiCode.TOO_MANY_LOGINS and int(answers[-1].headers["retry-after"]) > 0
    assert (await ask(node, token, "GET", "/api/workers")).status == 200
    clock.now += WINDOW
    assert (await ask(node, "other", "GET", "/api/workers")).status == 401


async def test_the_first_start_leaves_a_token_for_its_owner_alone(
    start: Start, settings: Settings, tmp_path: Path
) -> None:
    assert not (tmp_path / TOKEN_FILE).exists()
    closed = replace(settings, host="0.0.0.0")
    async with start(closed) as node:
        path = await node.access.gate.make_first_token(tmp_path)
        assert path == tmp_path / TOKEN_FILE
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        token = path.read_text().strip()
        assert (await ask(node, token, "GET", "/api/tokens")).status == 200
        assert await node.access.gate.make_first_token(tmp_path) is None
    async with start(closed) as node:
        assert await node.access.gate.make_first_token(tmp_path) is None
        [admin] = (await ask(node, token, "GET", "/api/tokens")).json["tokens"]
        assert (await ask(node, token, "DELETE", f"/api/tokens/{admin['id']}")).status == 204
        path.unlink()
        path.symlink_to("/nowhere/else")  # a trap: it must be replaced, not followed
        assert await node.access.gate.make_first_token(tmp_path) == path
        assert not path.is_symlink()
    async with start() as node:
        assert await node.access.gate.make_first_token(tmp_path) is None


async def test_the_front_page_shows_strangers_nothing(start: Start, settings: Settings) -> None:
    async with start(replace(settings, host="0.0.0.0")) as node:
        await node.deployer.create(DeployBody(name="hidden", script=HELLO))
        answer = await node.ask("GET", "/")
        assert answer.status == 200 and b"hidden" not in answer.content
