"""Logins of the dashboard: what a session is good for, when it ends, and the attacks that a cookie invites."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from control_plane import HELLO, Answer, Clock, Node

from atoll.api.audit import Mark
from atoll.api.callers import LOCAL, Scope
from atoll.api.refusals import ApiCode
from atoll.config import Settings
from atoll.control.access.gate import FAILURES
from atoll.control.access.sessions import COOKIE, IDLE, LIFETIME, MAX_SESSIONS

Start = Callable[..., Any]
HOST = "localhost"
ORIGIN = {"origin": f"http://{HOST}", "host": HOST}


@pytest.fixture
def settings() -> Settings:
    return Settings(control_hosts=("control.example",), control_auth="token")


async def token(node: Node, *scopes: str, tenant: str | None = None) -> str:
    """The text of a new token, made as the node makes its first one."""
    made = await node.access.tokens.make("ci", [Scope(each) for each in scopes], tenant, None, Mark.of(LOCAL, 1))
    return made[1]


async def login(node: Node, text: str, **headers: str) -> Answer:
    return await node.ask("POST", "/api/session", {"token": text}, **(ORIGIN | headers))


def cookie_of(answer: Answer) -> str:
    return answer.headers["set-cookie"].partition(";")[0]


async def logged_in(node: Node, *scopes: str, tenant: str | None = None) -> tuple[str, str]:
    """Cookie and CSRF value of a new session."""
    answer = await login(node, await token(node, *scopes, tenant=tenant))
    assert answer.status == 201, answer.content
    return cookie_of(answer), answer.json["csrf"]


async def test_a_token_is_exchanged_for_a_cookie_that_scripts_cannot_read(node: Node, tmp_path: Path) -> None:
    text = await token(node, "read")
    answer = await login(node, text)
    parts = answer.headers["set-cookie"].split("; ")
    assert parts[0].startswith(f"{COOKIE}=") and {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} <= set(parts)
    assert text not in answer.headers["set-cookie"] and answer.json["scopes"] == ["read"]
    seen = await node.ask("GET", "/api/session", host=HOST, cookie=cookie_of(answer))
    assert seen.json["name"] == "ci" and seen.json["csrf"] == answer.json["csrf"]
    await node.database.write(lambda _: None)
    value = cookie_of(answer).partition("=")[2].encode()
    assert not files_with(tmp_path, value)


def files_with(folder: Path, value: bytes) -> list[Path]:
    return [file for file in folder.iterdir() if file.is_file() and value in file.read_bytes()]


async def test_a_session_may_do_what_its_token_may(node: Node) -> None:
    cookie, csrf = await logged_in(node, "read")
    assert (await node.ask("GET", "/api/workers", host=HOST, cookie=cookie)).status == 200
    change = {**ORIGIN, "cookie": cookie, "x-atoll-csrf": csrf}
    answer = await node.ask("POST", "/api/workers", {"name": "a", "script": HELLO}, **change)
    assert answer.code == ApiCode.FORBIDDEN


async def test_a_revoked_token_ends_its_sessions(node: Node) -> None:
    text = await token(node, "read")
    cookie = cookie_of(await login(node, text))
    found = node.access.tokens.check(text)
    assert found is not None
    await node.access.tokens.revoke(found, Mark.of(LOCAL, 2))
    assert (await node.ask("GET", "/api/workers", host=HOST, cookie=cookie)).status == 401


async def test_a_session_ends_after_its_time_and_when_it_is_not_used(node: Node, clock: Clock) -> None:
    cookie, _ = await logged_in(node, "read")
    for _ in range(LIFETIME // (IDLE // 2) - 1):
        clock.now += IDLE / 2000
        assert (await node.ask("GET", "/api/session", host=HOST, cookie=cookie)).status == 200
    clock.now += IDLE / 2000 + 1
    assert (await node.ask("GET", "/api/session", host=HOST, cookie=cookie)).status == 401
    idle, _ = await logged_in(node, "read")
    clock.now += IDLE / 1000 + 1
    assert (await node.ask("GET", "/api/session", host=HOST, cookie=idle)).status == 401


async def test_a_session_survives_a_restart_and_a_logout_ends_it(start: Start) -> None:
    async with start() as node:
        cookie, csrf = await logged_in(node, "read")
    async with start() as node:
        assert (await node.ask("GET", "/api/session", host=HOST, cookie=cookie)).status == 200
        change = {**ORIGIN, "cookie": cookie, "x-atoll-csrf": csrf}
        ended = await node.ask("DELETE", "/api/session", **change)
        assert ended.status == 204 and "Max-Age=0" in ended.headers["set-cookie"]
        assert (await node.ask("GET", "/api/session", host=HOST, cookie=cookie)).status == 401
    async with start() as node:
        assert (await node.ask("GET", "/api/session", host=HOST, cookie=cookie)).status == 401


async def test_a_token_has_few_sessions_and_the_oldest_ends(node: Node) -> None:
    text = await token(node, "read")
    cookies = [cookie_of(await login(node, text)) for _ in range(MAX_SESSIONS + 1)]
    statuses = [(await node.ask("GET", "/api/session", host=HOST, cookie=each)).status for each in cookies]
    assert statuses == [401] + [200] * MAX_SESSIONS


async def test_a_code_works_once_and_for_a_minute(node: Node, clock: Clock) -> None:
    text = await token(node, "read")

    async def code() -> str:
        made = await node.ask("POST", "/api/session/codes", host=HOST, authorization=f"Bearer {text}")
        assert made.json["path"].startswith("/dashboard/#code=")
        return str(made.json["path"].partition("=")[2])

    async def use(each: str) -> Answer:
        return await node.ask("POST", "/api/session", {"code": each}, **ORIGIN)

    first = await code()
    assert (await use(first)).status == 201
    assert (await use(first)).code == ApiCode.UNAUTHENTICATED
    late = await code()
    clock.now += 61
    assert (await use(late)).code == ApiCode.UNAUTHENTICATED


async def test_a_session_makes_no_codes_that_outlive_it(node: Node) -> None:
    cookie, csrf = await logged_in(node, "admin")
    change = {**ORIGIN, "cookie": cookie, "x-atoll-csrf": csrf}
    assert (await node.ask("POST", "/api/session/codes", **change)).code == ApiCode.FORBIDDEN


# Attacks


async def test_csrf_a_change_with_the_cookie_alone_is_refused(node: Node) -> None:
    cookie, csrf = await logged_in(node, "deploy")
    body = {"name": "a", "script": HELLO}
    for headers in (
        {},
        {"x-atoll-csrf": "0" * 64},
        {"x-atoll-csrf": csrf, "origin": "http://evil.example"},
        {"x-atoll-csrf": csrf, "origin": "null"},
        {"x-atoll-csrf": csrf, "sec-fetch-site": "cross-site"},
        {"x-atoll-csrf": "ü"},
    ):
        answer = await node.ask("POST", "/api/workers", body, **{**ORIGIN, "cookie": cookie, **headers})
        assert answer.code == ApiCode.FORBIDDEN_ORIGIN, headers
    without_origin = {"host": HOST, "cookie": cookie, "x-atoll-csrf": csrf}
    assert (await node.ask("POST", "/api/workers", body, **without_origin)).code == ApiCode.FORBIDDEN_ORIGIN
    right = {**ORIGIN, "cookie": cookie, "x-atoll-csrf": csrf}
    assert (await node.ask("POST", "/api/workers", body, **right)).status == 201


async def test_csrf_the_value_of_another_session_is_refused(node: Node) -> None:
    cookie, _ = await logged_in(node, "deploy")
    _, other = await logged_in(node, "deploy")
    headers = {**ORIGIN, "cookie": cookie, "x-atoll-csrf": other}
    answer = await node.ask("POST", "/api/workers", {"name": "a", "script": HELLO}, **headers)
    assert answer.code == ApiCode.FORBIDDEN_ORIGIN


async def test_login_csrf_a_page_of_another_site_cannot_log_a_browser_in(node: Node) -> None:
    text = await token(node, "read")
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert (await login(node, text, **headers)).code == ApiCode.FORBIDDEN_ORIGIN
    assert (await node.ask("POST", "/api/session", {"token": text}, host=HOST)).code == ApiCode.FORBIDDEN_ORIGIN


async def test_session_fixation_a_login_never_continues_the_session_of_the_browser(node: Node) -> None:
    planted, _ = await logged_in(node, "read")
    answer = await login(node, await token(node, "admin"), cookie=planted)
    assert cookie_of(answer) != planted
    assert (await node.ask("GET", "/api/session", host=HOST, cookie=planted)).status == 401
    made_up = f"{COOKIE}=chosen-by-an-attacker"
    assert (await node.ask("GET", "/api/session", host=HOST, cookie=made_up)).status == 401


async def test_dns_rebinding_a_foreign_name_gets_neither_page_nor_session(node: Node) -> None:
    text = await token(node, "read")
    for path in ("/dashboard/", "/dashboard/workers/a", "/api/session"):
        assert (await node.ask("GET", path, host="evil.example")).code == ApiCode.FORBIDDEN_ORIGIN
    answer = await node.ask("POST", "/api/session", {"token": text}, host="evil.example", origin="http://evil.example")
    assert answer.code == ApiCode.FORBIDDEN_ORIGIN


async def test_clickjacking_the_page_refuses_to_be_framed(node: Node) -> None:
    answer = await node.ask("GET", "/dashboard/", host=HOST)
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-frame-options"] == "DENY"


async def test_a_login_over_plain_http_is_refused_except_on_this_machine(node: Node) -> None:
    text = await token(node, "read")
    plain = await login(node, text, host="control.example", origin="http://control.example")
    assert plain.code == ApiCode.FORBIDDEN_ORIGIN and "HTTPS" in plain.json["error"]["hint"]
    assert (await login(node, text, host="control.example", origin="https://control.example")).status == 201


async def test_another_tenants_ids_are_not_found_with_a_session(node: Node) -> None:
    admin = {"host": HOST, "authorization": f"Bearer {await token(node, 'admin')}"}
    for name in ("acme", "globex"):
        assert (await node.ask("POST", "/api/tenants", {"name": name}, **admin)).status == 201
    made = await node.ask("POST", "/api/workers", {"name": "theirs", "script": HELLO}, x_atoll_tenant="acme", **admin)
    cookie, _ = await logged_in(node, "read", tenant="globex")
    for name in ("theirs", made.json["id"]):
        for path in ("", "/series", "/versions", "/deployments"):
            answer = await node.ask("GET", f"/api/workers/{name}{path}", host=HOST, cookie=cookie)
            assert answer.status == 404, path
    assert (await node.ask("GET", "/api/overview", host=HOST, cookie=cookie)).json["workers"] == []
    found = await node.ask("GET", "/api/routes/match?url=http://theirs.localhost/", host=HOST, cookie=cookie)
    assert found.json["worker"] is None and "theirs" not in found.content.decode()
    for path in ("/api/node/series", "/admin/pool"):
        assert (await node.ask("GET", path, host=HOST, cookie=cookie)).status == 403
    stranger = {"host": HOST, "cookie": cookie, "x_atoll_tenant": "acme"}
    assert (await node.ask("GET", "/api/workers", **stranger)).code == ApiCode.FORBIDDEN


async def test_guessing_codes_and_tokens_is_slowed_down(node: Node) -> None:
    for body in ({"code": "a" * 43}, {"token": "atoll_a_b"}, {"code": "x" * 5_000}, {"token": "y" * 5_000}):
        assert (await node.ask("POST", "/api/session", body, **ORIGIN)).code == ApiCode.UNAUTHENTICATED
    for _ in range(FAILURES - 4):
        await login(node, "atoll_a_b")
    assert (await login(node, "atoll_a_b")).status == 429
    assert (await login(node, await token(node, "read"))).status == 201


async def test_a_login_says_what_is_wrong_with_it(node: Node) -> None:
    for body in ({}, {"token": "a", "code": "b"}):
        answer = await node.ask("POST", "/api/session", body, **ORIGIN)
        assert answer.code == ApiCode.BAD_BODY and "either" in answer.json["error"]["hint"]


async def test_the_page_holds_nothing_but_the_session_and_that_cannot_end_the_script(node: Node) -> None:
    name = "</script><img src=x onerror=alert(1)>"
    _, text = await node.access.tokens.make(name, [Scope.READ], None, None, Mark.of(LOCAL, 1))
    answer = await node.ask("GET", "/dashboard/", host=HOST, cookie=cookie_of(await login(node, text)))
    assert b"<img" not in answer.content and b"\\u003cimg src=x onerror" in answer.content
    nobody = await node.ask("GET", "/dashboard/", host=HOST)
    assert b">null</script>" in nobody.content
