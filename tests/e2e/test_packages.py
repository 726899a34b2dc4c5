"""Popular packages, unchanged from npm and bundled by esbuild, in a worker."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.running import Atoll

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent / "packages"


def bundle(name: str, *more: str) -> str:
    """The worker tests/e2e/packages/NAME.js with all its imports, as one module."""
    [esbuild] = (ROOT / "node_modules/@esbuild").glob("*/bin/esbuild")
    flags = [
        "--bundle",
        "--format=esm",
        "--platform=neutral",
        "--main-fields=module,main",
        "--conditions=workerd,worker,browser",
    ]
    command = [esbuild, FOLDER / f"{name}.js", *flags, *more, "--external:node:*", "--log-level=error"]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


@pytest.fixture(scope="module")
def hono(atoll: Atoll) -> str:
    atoll.deploy("hono", bundle("hono"), env={"GREETING": "from env"})
    return "hono"


@pytest.fixture(scope="module")
def small(atoll: Atoll) -> str:
    atoll.deploy("small", bundle("small"), limits={"cpu_ms": 500})
    return "small"


def test_hono_routes_by_method_path_and_pattern(atoll: Atoll, hono: str) -> None:
    home = atoll.get(hono)
    assert (home.text, home.headers["x-after"]) == ("hi true", "yes")
    assert atoll.get(hono, "/users/12?q=a%20b").json == {"id": "12", "q": "a b"}
    assert (atoll.get(hono, "/users/x").status, atoll.get(hono, "/nope").text) == (404, "nothing here")
    assert atoll.get(hono, "/sub").headers["location"] == "/"
    assert atoll.request("PATCH", atoll.host(hono), "/sub/any").text == "PATCH"


def test_hono_middleware(atoll: Atoll, hono: str) -> None:
    secure = atoll.get(hono, "/secure/x").headers
    assert secure["x-content-type-options"] == "nosniff" and secure["x-request-id"] and secure["server-timing"]
    assert (
        atoll.get(hono, "/cors/x", {"Origin": "https://a.example"}).headers["access-control-allow-origin"]
        == "https://a.example"
    )
    assert atoll.get(hono, "/env").text == "from env", "the context survives an await"
    cookies = atoll.get(hono, "/cookies", {"Cookie": "x=y; z=%C3%A9"})
    assert cookies.json == {"x": "y", "z": "é"}
    assert cookies.headers.get_all("set-cookie") == ["a=1; Max-Age=60; Path=/; HttpOnly", "b=2; Path=/"]
    assert any("GET" in line["message"] for line in atoll.logs(hono)[0]["logs"]), "the logger middleware writes a line"


def test_hono_reads_bodies(atoll: Atoll, hono: str) -> None:
    as_json = {"Content-Type": "application/json"}
    assert atoll.post(hono, "/json", '{"n": 4}', as_json).json == {"twice": 8}
    assert atoll.post(hono, "/json", '{"n": "x"}', as_json).status == 400


def test_hono_streams(atoll: Atoll, hono: str) -> None:
    assert atoll.get(hono, "/stream").text == "one two three"
    assert atoll.get(hono, "/bytes").body == b"hi"
    assert atoll.get(hono, "/sse").text == "event: tick\ndata: n0\nid: 0\n\nevent: tick\ndata: n1\nid: 1\n\n"


def test_hono_errors(atoll: Atoll, hono: str) -> None:
    assert (atoll.get(hono, "/throw").status, atoll.get(hono, "/throw").text) == (418, "teapot")
    assert (atoll.get(hono, "/break").status, atoll.get(hono, "/break").text) == (500, "caught broken")


def test_itty_router(atoll: Atoll, small: str) -> None:
    assert atoll.get(small, "/params/1/2?x=3").json == {"params": {"a": "1", "b": "2"}, "query": {"x": "3"}}
    assert atoll.get(small, "/nowhere").status == 404
    assert atoll.get(small, "/fails").json == {"status": 500, "error": "oops"}


def test_cookie_and_mime(atoll: Atoll, small: str) -> None:
    cookie = atoll.get(small, "/cookie").json
    assert cookie == {"parsed": {"a": "1", "b": " x"}, "made": "s=v%20w; Path=/; HttpOnly"}
    assert atoll.get(small, "/mime").json == ["text/html", "png", "application/wasm"]


def test_nanoid_and_uuid(atoll: Atoll, small: str) -> None:
    first, second, different = atoll.get(small, "/nanoid").json
    assert re.fullmatch(r"[\w-]{21}", first) and re.fullmatch("[ab]{5}", second) and different == 500
    assert atoll.get(small, "/uuid").json == [True, True, "9342d47a-1bab-5709-9869-c840b2eac501"]


def test_zod(atoll: Atoll, small: str) -> None:
    good = atoll.post(small, "/zod", '{"name": "Al", "email": "a@b.co", "age": "7"}')
    assert good.json == {"name": "Al", "email": "a@b.co", "age": 7, "tags": []}
    bad = atoll.post(small, "/zod", '{"name": "A", "email": "no"}')
    assert bad.status == 400 and bad.json["issues"] == [["name", "too_small"], ["email", "invalid_format"]]


def test_preact_renders(atoll: Atoll, small: str) -> None:
    page = atoll.get(small, "/preact")
    assert page.text == '<html><h1 class="t">a &lt; b</h1><ul><li>x</li><li>y</li></ul></html>'
    assert "<li>z</li>" in atoll.get(small, "/preact-stream").text
