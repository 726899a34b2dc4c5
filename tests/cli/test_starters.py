"""Projects in the shape of Cloudflare's public starters, unchanged from their wrangler config, with npm packages."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from websockets.asyncio.client import connect

from tests.cli.dev_session import Dev
from tests.cli.test_projects import run
from tests.project.conftest import ROOT
from tests.running import Atoll

STARTERS = Path(__file__).resolve().parent / "starters"
Start = Callable[..., Dev]


def copied(name: str, folder: Path) -> Path:
    target = folder / name
    shutil.copytree(STARTERS / name, target)
    (target / "node_modules").symlink_to(ROOT / "node_modules")  # as `npm install` leaves it
    return target


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    sessions: list[Dev] = []

    def dev(name: str, *words: str) -> Dev:
        sessions.append(Dev(copied(name, tmp_path), *words))
        return sessions[-1]

    yield dev
    for session in sessions:
        assert session.stop() == 0
        assert [line for line in session.stderr if "error" in line] == []


def test_a_hono_api_with_jsx_and_packages(start: Start) -> None:
    dev = start("hono-api")
    assert dev.get() == (200, "<html><body><h1>Todos</h1><ul><li>write a worker</li></ul></body></html>")
    assert json.loads(dev.get("api/todos")[1]) == [{"title": "write a worker", "done": True}]
    body = json.dumps({"title": "run it on Atoll"}).encode()
    request = Request(dev.url + "api/todos", body, {"Content-Type": "application/json", "Origin": "http://a.example"})
    with urlopen(request) as answer:
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (201, "*")
    assert dev.get("api/basic/atoll") == (200, "YXRvbGw=")
    assert dev.get("nowhere") == (404, "404 Not Found")


def test_an_environment_of_a_starter(start: Start) -> None:
    assert "Todos (staging)" in start("hono-api", "--env", "staging").get()[1]


def test_a_scheduled_job_that_stores_reports_in_kv(start: Start) -> None:
    dev = start("scheduled-kv")
    assert dev.get() == (200, "[]")
    for i in range(3):
        asked = f"cdn-cgi/handler/scheduled?cron=0+3+*+*+MON&time={1790000000000 + i * 900_000}"
        assert dev.get(asked)[0] == 200
    assert json.loads(dev.get()[1]) == [
        {"name": "report:2026-09-21T14:28:20.000Z", "cron": "0 3 * * MON"},
        {"name": "report:2026-09-21T14:43:20.000Z", "cron": "0 3 * * MON"},
    ]
    assert json.loads(dev.get("2026-09-21T14:43:20.000Z")[1])["cron"] == "0 3 * * MON"


async def test_a_chat_over_websockets_in_typescript(start: Start) -> None:
    dev = start("websocket-chat")
    assert dev.get()[0] == 426
    address = dev.url.replace("http", "ws") + "room/lobby"
    async with connect(address, proxy=None) as ada, connect(address, proxy=None) as bob:
        await ada.send(json.dumps({"name": "Ada", "text": "hi"}))
        for each in (ada, bob):
            assert json.loads(await asyncio.wait_for(each.recv(), 10)) == {"room": "lobby", "name": "Ada", "text": "hi"}
        await bob.send("no JSON")
        assert (await asyncio.wait_for(bob.recv(), 10)) == '{"error":"send JSON"}'


def test_starters_deploy_as_they_run(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    for name in ("hono-api", "scheduled-kv"):
        run(copied(name, tmp_path), "deploy", **node)
    assert "<h1>Todos</h1>" in atoll.get("hono-api").text
    run(tmp_path, "cron", "run", "scheduled-kv", **node)
    assert len(atoll.get("scheduled-kv").json) == 1
    crons = json.loads(run(tmp_path, "cron", "list", "scheduled-kv", "--json", **node).stdout)["crons"]
    assert [each["cron"] for each in crons] == ["*/15 * * * *", "0 3 * * MON"] and all(
        each["next_run"] for each in crons
    )
