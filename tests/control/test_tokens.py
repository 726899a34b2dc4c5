"""Access: tokens and their scopes, and the open control API of a local node, which is closed to everyone else."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from control_plane import HELLO, Answer, Clock, Node

from atoll.api.refusals import ApiCode
from atoll.config import Settings
from atoll.control.access.gate import FAILURES, TOKEN_FILE, WINDOW, is_loopback
from atoll.control.checks.body import DeployBody

Start = Callable[..., Any]


async def made(node: Node, *scopes: str, **fields: object) -> Any:
    """A new token, as the API returns it."""
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


async def test_the_last_use_of_a_token_is_recorded(start: Start, clock: Clock) -> None:
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
async def test_a_token_may_do_only_what_its_scope_allows(node: Node, scope: str, statuses: tuple[int, ...]) -> None:
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


async def test_a_token_of_a_tenant_creates_only_tokens_of_that_tenant_and_scope(node: Node) -> None:
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
async def test_a_token_creates_none_that_outlives_it(node: Node, clock: Clock, tenant: str) -> None:
    await node.ask("POST", "/api/tenants", {"name": "acme"})
    wide = {} if tenant else {"all_tenants": True}
    mother = await made(node, "admin", tenant=tenant or "default", expires_in=60, **wide)

    async def make(**fields: object) -> Answer:
        return await ask(node, mother["token"], "POST", "/api/tokens", {"name": "x", "scopes": ["admin"], **fields})

    longer = await make(expires_in=61)
    assert longer.code == ApiCode.FORBIDDEN and "expires after itself" in longer.json["error"]["message"]
    assert (await make(expires_in=60)).json["expires_at"] == mother["expires_at"]
    silent = await make()
    assert silent.json["expires_at"] == mother["expires_at"], "by default, as long as the token that created it"
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
async def test_an_invalid_token_request_is_refused(node: Node, body: object, says: str) -> None:
    answer = await node.ask("POST", "/api/tokens", body)
    assert (answer.status, answer.code) == (400, ApiCode.BAD_BODY)
    assert says in answer.json["error"]["message"]


# The open control API


@pytest.mark.parametrize(("host", "is_local"), [
    ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("localhost", True),
    ("0.0.0.0", False), ("::", False), ("192.168.0.1", False), ("node.example", False), ("", False),
])  # fmt: skip
def test_only_loopback_addresses_count_as_this_machine(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local


@pytest.mark.parametrize("change", [{"host": "0.0.0.0"}, {"control_auth": "token"}, {"trusted_proxies": ("10.0.0.1",)}])
async def test_remote_clients_need_a_token(start: Start, settings: Settings, change: Any) -> None:
    async with start(replace(settings, **change)) as node:
        for route in node.api.routes:
            path = route.path.replace("{", "").replace("}", "")
            answer = await node.ask(route.method, path, {})
            if route.scope == "public":
                assert answer.status not in (401, 500), route  # a login, for one, wants a browser
            else:
                assert (answer.status, answer.code) == (401, ApiCode.UNAUTHENTICATED), route
                assert answer.headers["www-authenticate"] == "Bearer"


async def test_requests_through_a_proxy_or_by_another_name_need_a_token(node: Node) -> None:
    assert (await node.ask("GET", "/api/workers")).status == 200
    assert (await node.ask("GET", "/api/workers", host="control.example")).status == 401
    for header in (
        "forwarded", "via", "x_forwarded_for", "x_forwarded_host", "x_forwarded_proto", "x_forwarded_server",
        "x_forwarded", "x_real_ip", "cf_connecting_ip", "cf_ray", "cf_visitor", "true_client_ip", "x_client_ip",
        "x_cluster_client_ip", "fastly_client_ip", "x_envoy_external_address",
        "x_original_forwarded_for", "cdn_loop", "x_amzn_trace_id",
    ):  # fmt: skip
        for value in ("198.51.100.7", ""):
            assert (await node.ask("GET", "/api/workers", **{header: value})).status == 401, header
    assert (await node.ask("GET", "/api/workers", http_version="1.0")).status == 401, "nginx uses HTTP/1.0 by default"
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


async def test_the_first_start_writes_a_token_that_only_its_owner_can_read(
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
        path.symlink_to("/nowhere/else")  # a trap: the file must be replaced and the link not followed
        assert await node.access.gate.make_first_token(tmp_path) == path
        assert not path.is_symlink()
    async with start() as node:
        assert await node.access.gate.make_first_token(tmp_path) is None


async def test_any_token_can_ask_whose_it_is(start: Start, settings: Settings, tmp_path: Path) -> None:
    async with start(replace(settings, control_auth="token")) as node:
        path = await node.access.gate.make_first_token(tmp_path)
        admin = path.read_text().strip()
        told = (await ask(node, admin, "GET", "/api/whoami")).json
        assert (told["name"], told["all_tenants"], told["expires_at"]) == ("admin", True, None)
        assert told["scopes"] == ["read", "deploy", "logs", "admin"]
        body = {"name": "reader", "scopes": ["logs"], "expires_in": 60}
        text = (await ask(node, admin, "POST", "/api/tokens", body)).json["token"]
        assert (await ask(node, text, "GET", "/api/whoami")).json == {
            "name": "reader",
            "tenant": "default",
            "all_tenants": False,
            "scopes": ["logs"],
            "expires_at": "2027-01-15T08:01:00.500Z",
        }
        for answer in (await node.ask("GET", "/api/whoami"), await ask(node, "wrong", "GET", "/api/whoami")):
            assert answer.status == 401 and answer.content.endswith(b"}\n")


async def test_the_front_page_shows_nothing_without_access(start: Start, settings: Settings) -> None:
    async with start(replace(settings, host="0.0.0.0")) as node:
        await node.deployer.create(DeployBody(name="hidden", script=HELLO))
        answer = await node.ask("GET", "/")
        assert answer.status == 200 and b"hidden" not in answer.content


async def test_the_front_page_of_a_closed_node_says_that_it_needs_a_token(
    start: Start, settings: Settings, tmp_path: Path
) -> None:
    async with start(replace(settings, control_auth="token")) as node:
        page = (await node.ask("GET", "/")).content.decode()
        assert "worker is here" not in page and "requires a token" in page and "admin-token" in page
        assert '-H "Authorization: Bearer $ATOLL_TOKEN" \\\n  -H "Content-Type' in page
        path = await node.access.gate.make_first_token(tmp_path)
        assert path is not None
        page = (await ask(node, path.read_text().strip(), "GET", "/")).content.decode()
        assert "No worker is here" in page and "Bearer $ATOLL_TOKEN" in page
        await node.deployer.create(DeployBody(name="shown", script=HELLO))
        page = (await ask(node, path.read_text().strip(), "GET", "/")).content.decode()
        assert "One worker is here" in page and "shown.localhost" in page
    async with start() as node:
        page = (await node.ask("GET", "/")).content.decode()
        assert "One worker is here" in page and "ATOLL_TOKEN" not in page
