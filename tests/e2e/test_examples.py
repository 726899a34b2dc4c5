"""Every example runs, and does what its README says."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.deploy import read_example
from tests.running import Atoll

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/worker.js"))


def deploy(atoll: Atoll, name: str) -> None:
    body = read_example(EXAMPLES / name)
    assert body.pop("name") == name
    atoll.deploy(name, **body)


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
