"""Servers written for Node, unchanged from npm, behind `cloudflare:node`: Express, Koa and Fastify."""

from __future__ import annotations

import pytest

from tests.e2e.test_more_packages import REQUIRE
from tests.e2e.test_packages import bundle
from tests.running import Atoll

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def servers(atoll: Atoll) -> str:
    script = bundle(
        "http_servers",
        "--platform=node",
        "--main-fields=main,module",
        "--external:cloudflare:*",
        f"--banner:js={REQUIRE}",
    )
    atoll.deploy("http-servers", script, limits={"cpu_ms": 2000})
    return "http-servers"


def test_express(atoll: Atoll, servers: str) -> None:
    home = atoll.get(servers, "/express/")
    assert (home.text, home.headers["x-served"], home.headers["content-length"]) == (
        "hello from express",
        "express",
        "18",
    )
    assert atoll.get(servers, "/express/", {"If-None-Match": home.headers["etag"]}).status == 304
    user = atoll.get(servers, "/express/users/7?x=1").json
    assert (user["id"], user["query"], user["ip"]) == ("7", {"x": "1"}, "string")
    assert user["host"].startswith("http-servers.")
    echo = atoll.post(servers, "/express/echo", b'{"name": "ann"}', JSON)
    assert (echo.status, echo.json) == (201, {"name": "ann"})
    assert atoll.post(servers, "/express/echo", b"{no", JSON).status == 500
    moved = atoll.get(servers, "/express/moved")
    assert (moved.status, moved.headers["location"]) == (302, "/express/")
    assert atoll.get(servers, "/express/cookie").headers.get_all("set-cookie") == ["a=1; Path=/", "b=2; Path=/"]
    assert atoll.get(servers, "/express/stream").text == "".join(f"line {i}\n" for i in range(5))
    assert atoll.get(servers, "/express/throws").text == "caught: on purpose"
    assert atoll.get(servers, "/express/none").status == 404


def test_koa(atoll: Atoll, servers: str) -> None:
    found = atoll.get(servers, "/koa/a?b=1")
    assert found.headers["x-served"] == "koa"
    assert found.json == {"path": "/a", "query": {"b": "1"}, "method": "GET", "secure": False}
    assert (atoll.get(servers, "/koa/throws").status, atoll.get(servers, "/koa/throws").text) == (
        418,
        "short and stout",
    )
    assert atoll.get(servers, "/koa/nothing").status == 404


def test_fastify(atoll: Atoll, servers: str) -> None:
    assert atoll.get(servers, "/fastify/").json == {"hello": "fastify"}
    assert atoll.get(servers, "/fastify/users/9").headers["x-served"] == "fastify"
    assert atoll.post(servers, "/fastify/echo", b'{"name": "ann"}', JSON).json == {"name": "ann"}
    refused = atoll.post(servers, "/fastify/echo", b"{}", JSON)
    assert (refused.status, refused.json["code"]) == (400, "FST_ERR_VALIDATION")
    assert atoll.get(servers, "/fastify/none").status == 404
