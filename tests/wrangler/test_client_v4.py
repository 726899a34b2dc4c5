"""Every route of /client/v4, asked by those who may not, and with bodies that nobody means.

The list of routes is the node's own, so a new route is tested here without a line. Whatever is asked, status and
`success` agree, and nothing of another tenant is shown or changed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from atoll.api.callers import Scope
from atoll.api.cloudflare import account_id
from atoll.api.routes import Route
from atoll.bindings.assets.cloudflare import DONE, UPLOADING
from atoll.bindings.assets.ops import Assets
from atoll.bindings.assets.uploads import digest_of, pieces
from atoll.embed import Atoll

SCRIPT = "export default { fetch() { return new Response('acmething'); }, scheduled() {}, queue() {} }"
NAMES = {
    "script": "acmething", "namespace": "acmething-ns", "key": "acmething-key", "name": "ACMETHING_SECRET",
    "database": "acmething-db", "bucket": "acmething-bucket", "queue": "acmething-queue", "version": "latest",
    "deployment": "x", "zone": "0" * 32, "hash": "0" * 32, "consumer": "x", "tail": "x", "file": "x", "route": "x",
    "domain": "x", "workflow": "acmething", "instance": "x", "type": "x",
}  # fmt: skip
FORM = b'--b\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n%b\r\n--b--\r\n'
BODIES: list[tuple[str, bytes]] = [
    ("application/json", b""),
    ("application/json", b"null"),
    ("application/json", b"[]"),
    ("application/json", b"{}"),
    ("application/json", b'"\xff\xfe"'),
    ("application/json", b"[" * 3000),
    ("application/json", b'{"name": 1, "title": [], "sql": {}, "secrets": [], "versions": {}, "keys": {}, "env": 1}'),
    ("application/json", b'[null, 1, {"cron": 1}, {"pattern": null}, {"key": 1}]'),
    ("multipart/form-data", b"no boundary"),
    ("multipart/form-data; boundary=b", b"not a form"),
    ("multipart/form-data; boundary=b", FORM % b"{"),
    ("multipart/form-data; boundary=b", FORM % b'{"bindings": [{"type": 1}], "main_module": 1}'),
    ("multipart/form-data; boundary=b", FORM % b'{"bindings": [{"type": "kv_namespace", "name": "A"}]}'),
    ("multipart/form-data; boundary=b", FORM % b'{"bindings": [{"type": "inherit", "name": "NOT_THERE"}]}'),
    ("multipart/form-data; boundary=b", (FORM % b"{}")[:-7] + FORM % b"{}"),
]


@dataclass
class Told:
    status: int
    content: bytes

    @property
    def code(self) -> int:
        found = json.loads(self.content)
        assert found["success"] is False and found["result"] is None
        code: int = found["errors"][0]["code"]
        return code


class Plane:
    """A node in this process, with two tenants."""

    def __init__(self, atoll: Atoll) -> None:
        self.atoll = atoll
        self.tokens: dict[str, str] = {}

    @property
    def routes(self) -> list[Route]:
        return self.atoll.node.control.cloudflare.routes

    async def add(self, tenant: str) -> None:
        await self.atoll.api("POST", "/api/tenants", {"name": tenant})
        for scope in ("admin", "read", "logs"):
            made = await self.ask(
                "POST", "/api/tokens", json.dumps({"name": scope, "scopes": [scope]}).encode(), x_atoll_tenant=tenant
            )
            self.tokens[f"{tenant} {scope}"] = json.loads(made.content)["token"]

    async def ask(self, method: str, path: str, body: bytes = b"", kind: str = "application/json", **more: str) -> Told:
        path, _, query = path.partition("?")
        headers = {"host": "localhost", "content-type": kind, "content-length": str(len(body))}
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 50000), "server": ("127.0.0.1", 8080),
        }  # fmt: skip
        parts = [{"type": "http.request", "body": body, "more_body": False}]
        events: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not parts:
                await asyncio.Event().wait()
            return parts.pop(0)

        async def send(event: Any) -> None:
            events.append(event)

        await self.atoll.node.control.app(scope, receive, send)
        return Told(events[0]["status"], b"".join(event.get("body", b"") for event in events[1:]))

    async def as_(
        self, who: str, route: Route, account: str, body: bytes = b"", kind: str = "application/json"
    ) -> Told:
        path = route.path.replace("{account}", account_id(account))
        path = re.sub(r"\{(\w+)(:path)?\}", lambda found: NAMES[found[1]], path)
        return await self.ask(route.method, path, body, kind, authorization=f"Bearer {self.tokens[who]}")


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Plane]:
    async with Atoll(data=tmp_path / "data") as atoll:
        plane = Plane(atoll)
        for tenant in ("acme", "globex"):
            await plane.add(tenant)
        body = {
            "name": "acmething",
            "script": SCRIPT,
            "secrets": {"ACMETHING_SECRET": "acmething"},
            "crons": ["1 1 1 1 *"],
        }
        made = await plane.ask("POST", "/api/workers", json.dumps(body).encode(), x_atoll_tenant="acme")
        assert made.status == 201, made.content
        yield plane


async def state(plane: Plane) -> bytes:
    """Everything that Acme can see."""
    found = [await plane.as_("acme admin", route, "acme") for route in plane.routes if route.method == "GET"]
    return b"\n".join(told.content for told in found)


async def test_a_stranger_finds_no_account_and_changes_nothing(plane: Plane) -> None:
    before = await state(plane)
    assert b"acmething" in before
    for route in plane.routes:
        if route.scope is Scope.PUBLIC:
            continue
        told = await plane.as_("globex admin", route, "acme", b"{}")
        if "{account}" in route.path:
            assert (told.status, told.code) == (404, 7003), route
        assert b"acmething" not in told.content, route
    assert await state(plane) == before


async def test_scopes_are_checked_on_every_route(plane: Plane) -> None:
    for route in plane.routes:
        if route.scope is Scope.PUBLIC:
            continue
        path = re.sub(r"\{\w+(:path)?\}", account_id("acme"), route.path)
        for headers in ({}, {"x_auth_email": "a@b.c"}, {"x_auth_user_service_key": plane.tokens["acme admin"]}):
            told = await plane.ask(route.method, path, **headers)
            assert (told.status, told.code) == (401, 10000), route
        told = await plane.ask(route.method, path, authorization="Bearer wrong")
        assert told.status in (401, 429) and told.code == 10000, route
        if route.scope in (Scope.READ, Scope.DEPLOY):
            told = await plane.as_("acme logs", route, "acme")
            assert (told.status, told.code) == (403, 9109), route
        if route.scope is Scope.DEPLOY:
            told = await plane.as_("acme read", route, "acme", b"{}")
            assert (told.status, told.code) == (403, 9109), route


async def test_a_key_is_as_good_as_a_token(plane: Plane) -> None:
    told = await plane.ask("GET", "/client/v4/user", x_auth_key=plane.tokens["acme read"], x_auth_email="a@b.c")
    assert told.status == 200


async def test_no_body_makes_a_route_fail(plane: Plane) -> None:
    for route in plane.routes:
        if route.scope is Scope.PUBLIC or route.method in ("GET", "DELETE"):
            continue
        for kind, body in BODIES:
            told = await plane.as_("acme admin", route, "acme", body, kind)
            assert told.status < 500, (route, body[:100], told.content)
            assert json.loads(told.content)["success"] == (told.status < 400)


async def test_what_is_not_there_is_said_in_words(plane: Plane) -> None:
    bearer = {"authorization": f"Bearer {plane.tokens['acme admin']}"}
    told = await plane.ask("GET", "/client/v4/no/such/thing", **bearer)
    assert (told.status, told.code) == (404, 7003) and b"not part of Atoll" in told.content
    path = f"/client/v4/accounts/{account_id('acme')}/workers/scripts/acmething/edge-preview"
    told = await plane.ask("POST", path, **bearer)
    assert told.status == 501 and b"wrangler dev" in told.content
    told = await plane.ask("DELETE", "/client/v4/user", **bearer)
    assert (told.status, told.code) == (405, 10405)


async def test_tokens_of_uploads_are_forged_expired_or_of_another(plane: Plane) -> None:
    """Attacks on upload sessions: every one is refused, and the right token still works."""
    content, account = b"hello", f"/client/v4/accounts/{account_id('acme')}"
    [digest, _] = digest_of(pieces(content), "/a.txt")
    bearer = {"authorization": f"Bearer {plane.tokens['acme admin']}"}
    manifest = {"manifest": {"/a.txt": {"hash": digest, "size": len(content)}}}
    path = f"{account}/workers/scripts/acme-site/assets-upload-session"
    begun = await plane.ask("POST", path, json.dumps(manifest).encode(), **bearer)
    token = json.loads(begun.content)["result"]["jwt"]
    assert json.loads(begun.content)["result"]["buckets"] == [[digest]]

    binding = plane.atoll.node.deployer._kinds["assets"]
    assert isinstance(binding, Assets)
    [session] = binding.sessions._sessions
    upload = f"{account}/workers/assets/upload/{digest}"
    head, body, seal = token.split(".")
    others = base64.urlsafe_b64encode(
        b'{"session":"%b","purpose":"assets session","exp":9999999999}' % session.encode()
    )
    for wrong in (
        "", plane.tokens["acme admin"], f"{head}.{body}.{seal[:-2]}AA", f"{head}.{others.decode()}.{seal}",
        f"{head}.{body}.",
        binding.signer.sign(UPLOADING, -1, session=session), binding.signer.sign(DONE, 60, session=session),
        binding.signer.sign(UPLOADING, 60, session="0" * 32), "a" * 10_000,
    ):  # fmt: skip
        told = await plane.ask("POST", upload, content, authorization=f"Bearer {wrong}")
        assert (told.status, told.code) == (401, 10000), wrong
    foreign = upload.replace(account_id("acme"), account_id("globex"))
    assert (await plane.ask("POST", foreign, content, authorization=f"Bearer {token}")).status == 401
    for path, sent in ((upload, b"other"), (upload, b"hello!"), (upload.replace(digest, "0" * 32), content)):
        assert (await plane.ask("POST", path, sent, authorization=f"Bearer {token}")).status == 400
    told = await plane.ask("POST", upload, content, authorization=f"Bearer {token}")
    assert told.status == 201
    done = json.loads(told.content)["result"]["jwt"]

    async def deploy(who: str, script: str, jwt: str) -> Told:
        form = FORM % json.dumps({"assets": {"jwt": jwt}, "compatibility_date": "2026-01-01"}).encode()
        return await plane.ask(
            "PUT", f"/client/v4/accounts/{account_id(who)}/workers/scripts/{script}", form,
            "multipart/form-data; boundary=b", authorization=f"Bearer {plane.tokens[f'{who} admin']}",
        )  # fmt: skip

    claims = {"tenant": "acme", "script": "acme-site", "manifest": "0" * 64}
    wrongs = [
        ("acme", "acme-other", done), ("globex", "acme-site", done), ("acme", "acme-site", token),
        ("acme", "acme-site", done[:-3]),
        ("acme", "acme-site", binding.signer.sign(DONE, -1, **claims)),
    ]  # fmt: skip
    for wrong in wrongs:
        assert (await deploy(*wrong)).status == 400, wrong
    assert (await deploy("acme", "acme-site", done)).status == 200
    found = plane.atoll.node.deployer.named("acme-site")
    assert found is not None and found.version.assets is not None and list(found.version.assets.files) == ["/a.txt"]
