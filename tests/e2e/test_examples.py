"""Every example runs and does what its README says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from atoll.project.read import read_project
from tests.running import Atoll

EXAMPLES = Path(__file__).parents[2] / "examples"
NEED_ANOTHER = ("front-desk", "websocket-client")  # they call greeter and chat
NAMES = sorted((path.parent.name for path in EXAMPLES.glob("*/worker.js")), key=lambda name: name in NEED_ANOTHER)


def deploy(atoll: Atoll, name: str) -> dict[str, Any]:
    project = read_project(EXAMPLES / name)
    assert project.name == name and project.main is not None and not project.errors
    deployed = atoll.deploy(script=project.main.read_text(), **project.settings())
    for migration in sorted((EXAMPLES / name).glob("migrations/*.sql")):
        [database] = [binding["database"] for binding in project.bindings if binding["type"] == "d1"]
        made = atoll.control("POST", f"/api/d1/{database}/query", {"sql": migration.read_text()})
        assert made.status == 200 or "already exists" in made.text, made.text
    return deployed


@pytest.mark.parametrize("name", NAMES)
def test_every_example_deploys_and_answers(atoll: Atoll, name: str) -> None:
    deploy(atoll, name)
    answer = atoll.get(name)
    assert answer.status in (200, 404) or "this node has no AI server" in answer.text


def test_hello_world_greets(atoll: Atoll) -> None:
    deploy(atoll, "hello-world")
    assert "Hello" in atoll.get("hello-world").text


def test_json_api_answers_its_path_and_404_elsewhere(atoll: Atoll) -> None:
    deploy(atoll, "json-api")
    reply = atoll.get("json-api", "/api/hello")
    assert reply.status == 200 and isinstance(reply.json, dict)
    assert reply.headers["content-type"].startswith("application/json")
    assert atoll.get("json-api", "/elsewhere").status == 404


def test_service_worker_answers(atoll: Atoll) -> None:
    deploy(atoll, "service-worker")
    assert atoll.get("service-worker").status == 200


def test_streaming_streams(atoll: Atoll) -> None:
    deploy(atoll, "streaming")
    reply = atoll.get("streaming")
    assert reply.status == 200 and reply.headers["transfer-encoding"] == "chunked"
    assert len(reply.text.splitlines()) > 1


def test_kv_counter_counts_and_lists(atoll: Atoll) -> None:
    deploy(atoll, "kv-counter")
    assert [atoll.get("kv-counter", "/shop").text.split()[3] for _ in range(3)] == ["1", "2", "3"]
    [shop] = [row for row in atoll.get("kv-counter", "/top").json if row["path"] == "/shop"]
    assert shop["visits"] == 3 and shop["first"].endswith("Z")


def test_r2_files_are_stored_and_served(atoll: Atoll) -> None:
    deploy(atoll, "r2-files")
    data = bytes(range(256)) * 1000
    host = atoll.host("r2-files")
    stored = atoll.request("PUT", host, "/docs/a%20b.bin", data, {"Content-Type": "x/y"})
    assert stored.status == 201 and stored.text == "stored 256000 bytes\n"
    got = atoll.get("r2-files", "/docs/a%20b.bin")
    assert got.body == data and got.headers["content-type"] == "x/y"
    part = atoll.get("r2-files", "/docs/a%20b.bin", {"Range": "bytes=1-3"})
    assert (part.status, part.body, part.headers["content-range"]) == (206, bytes((1, 2, 3)), "bytes 1-3/256000")
    assert atoll.get("r2-files", "/docs/a%20b.bin", {"If-None-Match": got.headers["etag"]}).status == 304
    assert atoll.get("r2-files", "/").json == {"folders": ["docs/"], "files": []}
    assert atoll.get("r2-files", "/docs/").json["files"] == [{"key": "docs/a b.bin", "size": 256000}]
    assert atoll.request("DELETE", host, "/docs/a%20b.bin").status == 204
    assert atoll.get("r2-files", "/docs/a%20b.bin").status == 404


def test_cache_api_answers_from_the_cache(atoll: Atoll) -> None:
    deploy(atoll, "cache-api")
    first = atoll.get("cache-api", "/report")
    assert "cf-cache-status" not in first.headers
    Atoll.wait_until(
        lambda: "cf-cache-status" in atoll.get("cache-api", "/report").headers
    )  # waitUntil() has stored it
    second = atoll.get("cache-api", "/report", {"Range": "bytes=0-5"})
    assert second.status == 206 and second.text == "report"


def test_rate_limit_refuses_the_sixth_request(atoll: Atoll) -> None:
    worker = deploy(atoll, "rate-limit")
    assert worker["version"]["id"] in atoll.get("rate-limit").text
    statuses = [atoll.get("rate-limit", headers={"X-Client": "ada"}).status for _ in range(12)]
    assert statuses[:5] == [200] * 5 and 429 in statuses


def test_queue_handles_a_word_later(atoll: Atoll) -> None:
    deploy(atoll, "queue")
    assert atoll.post("queue", body=b"hello").text == "accepted\n"
    atoll.wait_until(lambda: any("handled hello (attempt 1)" in str(record["logs"]) for record in atoll.logs("queue")))
    (queue,) = [queue for queue in atoll.control("GET", "/api/queues").json["queues"] if queue["name"] == "jobs"]
    assert queue["consumer"] == "queue"


def test_cron_runs_manually(atoll: Atoll) -> None:
    deploy(atoll, "cron")
    assert atoll.control("GET", "/cdn-cgi/handler/scheduled?worker=cron").text == "ok"
    assert "ticks so far" in atoll.get("cron").text
    answer = atoll.control("GET", "/api/workers/cron/crons").json
    assert [cron["cron"] for cron in answer["crons"]] == ["* * * * *", "0 9 * * 2-6"]
    assert answer["runs"][0]["outcome"] == "ok" and answer["runs"][0]["by_hand"]


def test_front_desk_calls_greeter(atoll: Atoll) -> None:
    deploy(atoll, "greeter")
    deploy(atoll, "front-desk")
    assert atoll.get("front-desk", "/Ada").text == "Hello, Ada! Welcome.\n"
    assert atoll.get("front-desk", "/raw").text == "Hello, desk!\n"
    assert atoll.get("front-desk", "/all?name=Ada&name=Bo").text == "Hello, Ada!\nHello, Bo!\n"
    assert atoll.get("front-desk", "/talk?name=Ada").text == "Hello, Ada!\n" * 3 + "greeted 2 times\n"


async def test_chat_reaches_everyone(atoll: Atoll) -> None:
    deploy(atoll, "chat")
    assert "<title>Chat</title>" in atoll.get("chat").text
    options: dict[str, Any] = {"host": "127.0.0.1", "port": atoll.port, "proxy": None}
    address = f"ws://{atoll.host('chat')}/"
    async with connect(address, **options) as one, connect(address, **options) as two:
        assert (await one.recv(), await two.recv()) == ("welcome, 1 here", "welcome, 2 here")
        await one.send("hello")
        assert (await one.recv(), await two.recv()) == ("hello", "hello")


async def test_chat_hibernation_has_rooms_with_a_history(atoll: Atoll) -> None:
    deploy(atoll, "chat-hibernation")
    assert "<title>Chat</title>" in atoll.get("chat-hibernation", "/lobby").text
    options: dict[str, Any] = {"host": "127.0.0.1", "port": atoll.port, "proxy": None}
    address = f"ws://{atoll.host('chat-hibernation')}/lobby?name="
    async with connect(address + "Ada", **options) as ada:
        assert await ada.recv() == "Ada joined, 1 here"
        await ada.send("hello")
        await ada.send("ping")
        assert (await ada.recv(), await ada.recv()) == ("Ada: hello", "pong")
        async with connect(address + "Bo", **options) as bo:
            assert [await bo.recv(), await bo.recv()] == ["Ada: hello", "Bo joined, 2 here"]
            found = atoll.control("GET", "/api/objects/chat-hibernation/Room").json["objects"]
            assert [each["sockets"] for each in found] == [2]
        assert [await ada.recv(), await ada.recv()] == ["Bo joined, 2 here", "Bo left"]
    assert "atoll_object_sockets" in atoll.control("GET", "/metrics").text


def test_a_worker_joins_the_chat(atoll: Atoll) -> None:
    deploy(atoll, "chat")
    deploy(atoll, "websocket-client")
    assert atoll.get("websocket-client", "/?say=hi").json["heard"][-1] == "hi"


def test_tail_receives_records(atoll: Atoll) -> None:
    deploy(atoll, "tail")
    assert atoll.get("tail", "/fail").status == 500
    atoll.wait_until(lambda: atoll.get("tail").json.get("tail exception") == 1)


def test_signed_links_opens_only_its_own_links(atoll: Atoll) -> None:
    deploy(atoll, "signed-links")
    link = atoll.get("signed-links", "/link").text.strip()
    assert gzip.decompress(atoll.get("signed-links", link).body) == b"one,two,three\n"
    assert atoll.get("signed-links", link[:-1]).status == 403
    assert atoll.get("signed-links", link.replace("expires=", "expires=9")).status == 403


def test_d1_guestbook_is_signed_and_read(atoll: Atoll) -> None:
    deploy(atoll, "d1-guestbook")
    signed = [
        atoll.post("d1-guestbook", "/", json.dumps({"name": n, "message": "It works."})).json for n in ("Ada", "Bob")
    ]
    assert [each["entries"] for each in signed] == [1, 2]
    assert [entry["name"] for entry in atoll.get("d1-guestbook").json] == ["Bob", "Ada"]
    assert [entry["message"] for entry in atoll.get("d1-guestbook", "/Ada").json] == ["It works."]
    assert atoll.post("d1-guestbook", "/", "{}").status == 400


def test_counters_are_objects_with_their_own_storage(atoll: Atoll) -> None:
    deploy(atoll, "counter-object")
    assert [atoll.get("counter-object", f"/{name}").text for name in ("ada", "ada", "grace")] == [
        "ada is 1\n",
        "ada is 2\n",
        "grace is 1\n",
    ]


def test_an_object_for_each_client_counts_exactly(atoll: Atoll) -> None:
    deploy(atoll, "object-limiter")
    statuses = [atoll.get("object-limiter", headers={"X-Client": "ada"}).status for _ in range(6)]
    assert statuses == [200] * 5 + [429]
    assert atoll.get("object-limiter", headers={"X-Client": "grace"}).status == 200
