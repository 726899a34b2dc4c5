"""The API from a client's view: shapes, codes, statuses, and access."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from control_plane import HELLO, Clock, Engines, Node

from atoll.api.refusals import API_ERRORS, ApiCode
from atoll.clock import iso_time
from atoll.config import Settings
from atoll.engine.pool import PoolStats
from atoll.errors import EngineError, Failure, LoadFailed
from atoll.wire.generated import ErrorCode
from atoll.workers import Grant


async def test_a_deploy_returns_the_complete_worker(node: Node) -> None:
    answer = await node.post(name="hello", script=HELLO, env={"GREETING": "hi"}, routes=["Shop.Example/*"])
    assert answer.status == 201
    worker = answer.json
    assert re.fullmatch("worker_[a-z0-9]{12}", worker.pop("id"))
    assert re.fullmatch("version_[a-z0-9]{12}", version_id := worker["version"].pop("id"))
    assert worker == {
        "name": "hello",
        "url": "http://hello.localhost:8080/",
        "routes": ["shop.example/*"],
        "env": {"GREETING": "hi"},
        "bindings": [],
        "limits": {
            "cpu_ms": 50,
            "wall_ms": 30000,
            "memory_mb": 128,
            "subrequests": 50,
            "internal_subrequests": 1000,
            "timer_ms": 30000,
        },
        "isolation": "pool",
        "switches": {
            "allow_eval": False,
            "allow_wasm_compile": False,
            "allow_shared_memory": False,
            "allow_live_clock": False,
        },
        "egress": {"allow": [], "deny": []},
        "compatibility_date": "2027-01-15",
        "compatibility_flags": [],
        "migrations": [],
        "crons": [],
        "queue_consumers": [],
        "tail_consumers": [],
        "workflows": [],
        "handlers": ["fetch"],
        "secrets": [],
        "preview_urls": True,
        "traffic": [{"id": version_id, "number": 1, "percentage": 100}],
        "assets": None,
        "version": {
            "number": 1,
            "created_at": "2027-01-15T08:00:00.500Z",
            "startup_time_ms": 1.5,
            "author": "local",
            "message": "",
            "tag": "",
        },
        "created_at": "2027-01-15T08:00:00.500Z",
        "updated_at": "2027-01-15T08:00:00.500Z",
    }
    assert answer.headers["location"].startswith("/api/workers/worker_")


async def test_a_worker_is_found_by_id_and_by_name(node: Node) -> None:
    created = (await node.post(name="hello", script=HELLO)).json
    assert (await node.ask("GET", "/api/workers/hello")).json == created
    assert (await node.ask("GET", f"/api/workers/{created['id']}")).json == created
    assert (await node.ask("GET", "/api/workers")).json == {"workers": [created]}


async def test_put_creates_a_new_version_and_keeps_absent_fields(node: Node, clock: Clock) -> None:
    created = (await node.post(name="hello", script=HELLO, env={"A": "1"}, routes=["a.example/*"])).json
    clock.now += 60
    answer = await node.put("hello", script=HELLO + "//2", limits={"cpu_ms": 70})
    assert answer.status == 200
    assert answer.json["id"] == created["id"]
    assert answer.json["version"]["number"] == 2
    assert answer.json["env"] == {"A": "1"} and answer.json["routes"] == ["a.example/*"]
    assert answer.json["limits"] == {
        "cpu_ms": 70, "wall_ms": 30000, "memory_mb": 128, "subrequests": 50,
        "internal_subrequests": 1000, "timer_ms": 30000,
    }  # fmt: skip
    assert answer.json["created_at"] == created["created_at"]
    assert answer.json["updated_at"] == "2027-01-15T08:01:00.500Z"
    live = node.live("hello.localhost")
    assert live is not None and live.modules[0].source.endswith(b"//2")


async def test_put_can_change_fields_without_the_script(node: Node) -> None:
    await node.post(name="hello", script=HELLO, env={"A": "1"}, routes=["a.example/*"])
    answer = await node.put("hello", env={"B": {"deep": [1, None]}}, routes=[])
    assert answer.json["env"] == {"B": {"deep": [1, None]}} and answer.json["routes"] == []
    assert node.live("a.example") is None


async def test_a_deleted_worker_is_removed_everywhere(node: Node, engines: Engines) -> None:
    worker_id = (await node.post(name="hello", script=HELLO)).json["id"]
    version = node.live("hello.localhost")
    answer = await node.ask("DELETE", "/api/workers/hello")
    assert (answer.status, answer.content) == (204, b"")
    assert (await node.ask("GET", f"/api/workers/{worker_id}")).code == ApiCode.NO_WORKER
    assert node.live("hello.localhost") is None
    assert engines.retired == [version]
    assert node.store.load_all() == []
    assert (await node.post(name="hello", script=HELLO)).status == 201


async def test_modules_may_be_text_or_base64(node: Node) -> None:
    modules = {
        "main.js": 'import "./lib/a.mjs"',
        "lib/a.mjs": "",
        "page.html": "<p>",
        "data.bin": {"base64": base64.b64encode(b"\0\xff").decode()},
    }
    assert (await node.post(name="many", modules=modules, main="main.js")).status == 201
    version = node.live("many.localhost")
    assert version is not None and version.main == "main.js"
    assert [(m.path, m.kind, m.source) for m in version.modules][2:] == [
        ("page.html", "text", b"<p>"),
        ("data.bin", "data", b"\0\xff"),
    ]


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ({"script": HELLO}, ApiCode.BAD_BODY, "`name` is missing"),
        ({"name": "Hello", "script": HELLO}, ApiCode.BAD_NAME, "Hello"),
        ({"name": "a" * 64, "script": HELLO}, ApiCode.BAD_NAME, "aaa"),
        ({"name": "-a", "script": HELLO}, ApiCode.BAD_NAME, "-a"),
        ({"name": "a\n", "script": HELLO}, ApiCode.BAD_NAME, r"a\n"),
        ({"name": "a"}, ApiCode.BAD_BODY, "neither"),
        ({"name": "a", "script": HELLO, "modules": {"a.js": ""}}, ApiCode.BAD_BODY, "both"),
        ({"name": "a", "modules": {"a.js": ""}}, ApiCode.BAD_BODY, "`main` is missing"),
        ({"name": "a", "modules": {"a.js": ""}, "main": "b.js"}, ApiCode.BAD_BODY, "not one of"),
        ({"name": "a", "modules": {"a.txt": ""}, "main": "a.txt"}, ApiCode.BAD_BODY, "not JavaScript"),
        ({"name": "a", "modules": {"../a.js": ""}, "main": "../a.js"}, ApiCode.BAD_BODY, "relative"),
        ({"name": "a", "modules": {"a.exe": ""}, "main": "a.exe"}, ApiCode.BAD_BODY, "extension"),
        ({"name": "a", "modules": {"a.wasm": "x"}, "main": "a.wasm"}, ApiCode.BAD_BODY, "binary"),
        ({"name": "a", "modules": {"a.js": {"base64": "%"}}, "main": "a.js"}, ApiCode.BAD_BODY, "not base64"),
        ({"name": "a", "modules": {"a.js": {"base64": "/w=="}}, "main": "a.js"}, ApiCode.BAD_BODY, "not UTF-8"),
        ({"name": "a", "script": HELLO, "env": {"1x": ""}}, ApiCode.BAD_BODY, "1x"),
        ({"name": "a", "script": HELLO, "env": {"X": "y" * 5121}}, ApiCode.VAR_TOO_BIG, "env.X"),
        ({"name": "a", "script": HELLO, "env": {f"X{i}": "" for i in range(129)}}, ApiCode.TOO_MANY_VARS, "129"),
        ({"name": "a", "script": HELLO, "routes": ["a.*.example/"]}, ApiCode.BAD_ROUTE, "host"),
        ({"name": "a", "script": HELLO, "routes": ["control.example/*"]}, ApiCode.BAD_ROUTE, "control host"),
        ({"name": "a", "script": HELLO, "routes": ["a.example"] * 101}, ApiCode.BAD_ROUTE, "101"),
        ({"name": "a", "script": HELLO, "limits": {"cpu_ms": 0}}, ApiCode.BAD_LIMIT, "from 1 to 30000"),
        ({"name": "a", "script": HELLO, "limits": {"wall_ms": 900_001}}, ApiCode.BAD_LIMIT, "900000"),
        ({"name": "a", "script": HELLO, "limits": {"memory_mb": 1024}}, ApiCode.BAD_LIMIT, "512"),
        ({"name": "a", "script": HELLO, "limits": {"cpu_ms": 1.5}}, ApiCode.BAD_BODY, "limits.cpu_ms"),
        ({"name": "a", "script": HELLO, "switches": {"allow_evil": True}}, ApiCode.BAD_BODY, "allow_evil"),
        ({"name": "a", "script": HELLO, "switches": {"allow_eval": 1}}, ApiCode.BAD_BODY, "must be true or false"),
        (
            {"name": "a", "script": HELLO, "switches": {"allow_live_clock": True}},
            ApiCode.BAD_BODY,
            "measure other tenants",
        ),
        ({"name": "a", "script": HELLO, "isolation": "none"}, ApiCode.BAD_BODY, "`isolation` is 'none'"),
        ({"name": "a", "script": HELLO, "compatibility_date": "2027-01-16"}, ApiCode.BAD_BODY, "future"),
        ({"name": "a", "script": HELLO, "compatibility_date": "20270101"}, ApiCode.BAD_BODY, "not a date"),
        ({"name": "a", "script": HELLO, "compatibility_date": "2026-02-30"}, ApiCode.BAD_BODY, "not a date"),
        ({"name": "a", "script": 5}, ApiCode.BAD_BODY, "script"),
        ({"name": "a", "script": "x" * (10 * 1024 * 1024 + 1)}, ApiCode.TOO_LARGE, "bytes"),
        ([], ApiCode.BAD_BODY, "not a JSON object"),
    ],
)
async def test_a_bad_deploy_is_refused_with_its_reason(
    node: Node, engines: Engines, body: object, code: ApiCode, says: str
) -> None:
    answer = await node.ask("POST", "/api/workers", body)
    assert (answer.code, answer.status) == (code, API_ERRORS[code].status)
    assert says in answer.json["error"]["message"]
    assert engines.checked == [] and node.deployer.all() == []


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b'{"name": "\\ud800"}', b"[" * 100_000, b"nul"])
async def test_invalid_json_is_refused(node: Node, raw: bytes) -> None:
    answer = await node.ask("POST", "/api/workers", raw=raw)
    assert (answer.status, answer.code) == (400, ApiCode.BAD_BODY)


async def test_an_unknown_field_gets_a_suggestion(node: Node) -> None:
    error = (await node.post(name="a", scirpt=HELLO)).json["error"]
    assert error["message"] == "unknown field `scirpt`"
    assert "did you mean `script`?" in error["hint"] and "compatibility_date" in error["hint"]
    error = (await node.post(name="a", script=HELLO, limits={"disk": 1})).json["error"]
    assert error["message"] == "unknown field `limits.disk`" and "memory_mb" in error["hint"]
    error = (await node.post(name="a", modules={"a.js": {"base46": ""}}, main="a.js")).json["error"]
    assert "base46" in error["message"]


@pytest.mark.parametrize(
    ("failure", "code", "status"),
    [
        (ErrorCode.COMPILE, ApiCode.PARSE, 422),
        (ErrorCode.STARTUP, ApiCode.VALIDATION, 422),
        (ErrorCode.CPU, ApiCode.VALIDATION, 422),
        (ErrorCode.NO_DEFAULT, ApiCode.NO_HANDLERS, 422),
        (ErrorCode.NO_FETCH, ApiCode.NO_HANDLERS, 422),
        (ErrorCode.FETCH_NOT_FUNCTION, ApiCode.NO_HANDLERS, 422),
        (ErrorCode.SHUTTING_DOWN, ApiCode.UNAVAILABLE, 503),
    ],
)
async def test_an_error_of_the_engine_is_reported_with_its_position(
    node: Node, engines: Engines, failure: ErrorCode, code: ApiCode, status: int
) -> None:
    engines.failure = LoadFailed(Failure(failure, "bad thing", "SyntaxError", "at worker.js", "worker.js", 3, 7))
    answer = await node.post(name="a", script="export default {")
    assert (answer.code, answer.status) == (code, status)
    error = answer.json["error"]
    assert error["message"] == "SyntaxError: bad thing"
    assert (error["file"], error["line"], error["column"], error["stack"]) == ("worker.js", 3, 7, "at worker.js")
    assert node.deployer.all() == [] and node.store.load_all() == []


async def test_an_engine_that_fails_during_a_check_is_a_server_error(node: Node, engines: Engines) -> None:
    engines.failure = EngineError("it sent nonsense")
    answer = await node.post(name="a", script=HELLO)
    assert (answer.status, answer.code) == (503, ApiCode.UNAVAILABLE)
    assert b"nonsense" not in answer.content


async def test_a_name_is_unique(node: Node) -> None:
    await node.post(name="hello", script=HELLO)
    answer = await node.post(name="hello", script=HELLO)
    assert (answer.status, answer.code) == (409, ApiCode.NAME_TAKEN)
    assert "PUT /api/workers/hello" in answer.json["error"]["hint"]


async def test_a_route_is_unique(node: Node) -> None:
    await node.post(name="one", script=HELLO, routes=["a.example/*"])
    answer = await node.post(name="two", script=HELLO, routes=["https://A.example/*"])
    assert (answer.status, answer.code) == (409, ApiCode.ROUTE_TAKEN)
    assert "`one`" in answer.json["error"]["message"]
    answer = await node.post(name="two", script=HELLO, routes=["one.localhost/*"])
    assert (answer.status, answer.code) == (409, ApiCode.ROUTE_TAKEN)


async def test_a_worker_cannot_be_renamed_or_changed_by_an_empty_body(node: Node) -> None:
    await node.post(name="hello", script=HELLO)
    assert (await node.put("hello", name="other", script=HELLO)).code == ApiCode.BAD_NAME
    assert (await node.put("hello", name="hello")).code == ApiCode.BAD_BODY
    assert (await node.put("missing", script=HELLO)).code == ApiCode.NO_WORKER


@pytest.mark.parametrize("name", ["control", "x"])
async def test_a_worker_cannot_take_the_name_of_a_control_host(
    start: Callable[..., Any], settings: Settings, name: str
) -> None:
    async with start(replace(settings, base_domain="example")) as node:
        answer = await node.post(name=name, script=HELLO)
        assert answer.status == (400 if name == "control" else 201)


async def test_a_live_clock_needs_the_consent_of_the_operator(start: Callable[..., Any], settings: Settings) -> None:
    async with start(replace(settings, worker_clock="live")) as node:
        answer = await node.post(name="a", script=HELLO, switches={"allow_live_clock": True})
        assert answer.status == 201 and answer.json["switches"]["allow_live_clock"] is True


# Access


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_a_body_must_be_declared_as_json(node: Node, kind: str) -> None:
    answer = await node.ask("POST", "/api/workers", {"name": "a", "script": HELLO}, content_type=kind)
    assert (answer.status, answer.code) == (415, ApiCode.MEDIA_TYPE)
    good = await node.ask(
        "POST", "/api/workers", {"name": "a", "script": HELLO}, content_type="Application/JSON; charset=utf-8"
    )
    assert good.status == 201


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://localhost:3000", "http://localhost", "null", "http://localhost:8080.evil"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_a_page_of_another_site_is_refused(node: Node, origin: str, method: str) -> None:
    answer = await node.ask(method, "/api/workers/hello" if method == "DELETE" else "/api/workers", origin=origin)
    assert (answer.status, answer.code) == (403, ApiCode.FORBIDDEN_ORIGIN)
    assert not any(name.startswith("access-control") for name in answer.headers)


async def test_a_page_of_the_control_host_itself_is_allowed(node: Node) -> None:
    assert (await node.ask("GET", "/api/workers", origin="http://localhost:8080")).status == 200
    assert (await node.ask("GET", "/health", host="Control.Example", origin="https://control.example")).status == 200


async def test_an_unknown_host_that_resolves_to_the_node_is_refused(node: Node) -> None:
    for host in ("evil.example:8080", "hello.localhost:8080", "localhost.evil.example", ""):
        answer = await node.ask("GET", "/api/workers", host=host, origin=f"http://{host}")
        assert (answer.status, answer.code) == (403, ApiCode.FORBIDDEN_ORIGIN)


async def test_a_preflight_gets_no_permission(node: Node) -> None:
    answer = await node.ask("OPTIONS", "/api/workers", access_control_request_method="POST")
    assert (answer.status, answer.code) == (405, ApiCode.METHOD)
    assert answer.headers["allow"] and "access-control-allow-origin" not in answer.headers


async def test_an_endless_body_is_refused(node: Node) -> None:
    answer = await node.ask("POST", "/api/workers", raw=b" " * (22 * 1024 * 1024))
    assert (answer.status, answer.code) == (413, ApiCode.TOO_LARGE)


async def test_an_unknown_path_is_a_clear_404(node: Node) -> None:
    for path in ("/apis", "/api/workers/", "/api/workers/a/b", "/nothing"):
        answer = await node.ask("GET", path)
        assert (answer.status, answer.code) == (404, ApiCode.NOT_FOUND)


async def test_an_internal_error_is_logged_in_full_and_hidden_from_the_client(
    node: Node, engines: Engines, caplog: pytest.LogCaptureFixture
) -> None:
    engines.failure = ZeroDivisionError("secret detail")
    answer = await node.post(name="a", script=HELLO)
    assert (answer.status, answer.code) == (500, ApiCode.INTERNAL)
    assert b"secret detail" not in answer.content and b"Traceback" not in answer.content
    assert "secret detail" in caplog.text and "Traceback" in caplog.text


# The other endpoints


async def test_health_reports_the_number_of_running_engines(node: Node, engines: Engines) -> None:
    answer = await node.ask("GET", "/health")
    assert answer.status == 200 and answer.json["status"] == "ok" and answer.json["engines"] == 2
    engines.stats.engines = 0
    assert (await node.ask("GET", "/health")).status == 503


async def test_the_pool_endpoint_returns_its_figures(node: Node, engines: Engines) -> None:
    engines.stats = PoolStats(engines=2, loaded=3)
    assert (await node.ask("GET", "/admin/pool")).json == {"cached": 3}


async def test_the_front_page_lists_workers_and_how_to_deploy(node: Node) -> None:
    assert "your first worker" in (await node.ask("GET", "/")).content.decode()
    await node.post(name="hello", script=HELLO)
    answer = await node.ask("GET", "/")
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert 'href="http://hello.localhost:8080/"' in answer.content.decode()
    assert "curl -X POST http://localhost:8080/api/workers" in answer.content.decode()


def test_every_error_code_has_its_facts() -> None:
    assert set(API_ERRORS) == set(ApiCode)
    assert len({facts.type for facts in API_ERRORS.values()}) == len(API_ERRORS)
    assert iso_time(0) == "1970-01-01T00:00:00.000Z"


async def test_a_binding_is_stored_with_its_version_and_granted_to_the_worker(node: Node, engines: Engines) -> None:
    entry = {"type": "echo", "name": "ECHO"}
    answer = await node.post(name="hello", script=HELLO, bindings=[entry])
    assert answer.status == 201 and answer.json["bindings"] == [entry]
    assert engines.checked[-1].grants == {"ECHO": Grant("ECHO", "echo")}
    assert (await node.put("hello", script=HELLO + "//2")).json["bindings"] == [entry]


@pytest.mark.parametrize(
    ("bindings", "text"),
    [
        ([{"type": "echo"}], "no `name`"),
        ([{"type": "echo", "name": "1A"}], "1A"),
        ([{"type": "ecko", "name": "A"}], "ecko"),
        ([{"name": "A"}], "None"),
        ([{"type": "echo", "name": "A", "size": 1}], "size"),
        ([{"type": "echo", "name": "A"}, {"type": "echo", "name": "A"}], "two bindings"),
        ([{"type": "echo", "name": "B"}], "both a variable"),
        ([{"type": "echo", "name": f"A{i}"} for i in range(129)], "128"),
    ],
)
async def test_an_invalid_binding_is_refused(node: Node, bindings: list[object], text: str) -> None:
    answer = await node.post(name="hello", script=HELLO, env={"B": 1}, bindings=bindings)
    assert answer.status == 400 and text in answer.json["error"]["message"]
