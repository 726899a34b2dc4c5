"""Every example runs, and does what its README says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from examples.deploy import read_example
from tests.running import Atoll

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/worker.js"))


def deploy(atoll: Atoll, name: str) -> dict[str, Any]:
    body = read_example(EXAMPLES / name)
    assert body.pop("name") == name
    return atoll.deploy(name, **body)


@pytest.mark.parametrize("name", NAMES)
def test_every_example_deploys_and_answers(atoll: Atoll, name: str) -> None:
    deploy(atoll, name)
    assert atoll.get(name).status in (200, 404)


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


def test_cache_api_answers_from_the_cache(atoll: Atoll) -> None:
    deploy(atoll, "cache-api")
    first = atoll.get("cache-api", "/report")
    assert "cf-cache-status" not in first.headers
    Atoll.wait_until(lambda: "cf-cache-status" in atoll.get("cache-api", "/report").headers)  # waitUntil() put it
    second = atoll.get("cache-api", "/report", {"Range": "bytes=0-5"})
    assert second.status == 206 and second.text == "report"


def test_rate_limit_refuses_the_sixth(atoll: Atoll) -> None:
    worker = deploy(atoll, "rate-limit")
    assert worker["version"]["id"] in atoll.get("rate-limit").text
    statuses = [atoll.get("rate-limit", headers={"X-Client": "ada"}).status for _ in range(12)]
    assert statuses[:5] == [200] * 5 and 429 in statuses
