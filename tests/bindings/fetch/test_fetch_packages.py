"""Client packages, unchanged from npm: they find the fetch() they expect."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.e2e.test_packages import bundle
from tests.running import Atoll
from tests.upstream import Upstream


@pytest.fixture(scope="module")
def clients(node: Atoll, upstream: Upstream) -> str:
    script = bundle("client_packages", "--platform=browser", "--main-fields=browser,module,main")
    node.deploy("clients", script, env={"UP": upstream.url}, limits={"cpu_ms": 1000})
    return "clients"


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/ky", [{"a": 1}, ["HTTPError", 404]]),
        ("/axios", [{"b": [2]}, 200, "9", ["ERR_BAD_RESPONSE", 503]]),
        ("/liquid", "2,4,"),
    ],
)
def test_clients_of_other_servers(node: Atoll, clients: str, path: str, answer: object) -> None:
    assert node.get(clients, path).json == answer


def test_a_request_signed_by_aws4fetch_arrives(node: Atoll, clients: str, upstream: Upstream) -> None:
    assert node.get(clients, "/aws").json == 200
    seen = upstream.last()
    assert (seen.body, seen.get("x-amz-date")) == (b"content", "20260101T000000Z")
    scope = "AWS4-HMAC-SHA256 Credential=id/20260101/us-east-1/s3/aws4_request, SignedHeaders="
    assert str(seen.get("authorization")).startswith(scope)


def test_trpc_answers(node: Atoll, clients: str) -> None:
    wanted = quote(json.dumps({"json": {"name": "you"}}))
    data = node.get(clients, f"/trpc/hello?input={wanted}").json["result"]["data"]
    assert data["json"] == {"text": "hello you", "at": "1970-01-01T00:00:00.000Z"} and data["meta"]["values"] == {
        "at": ["Date"]
    }
    assert node.get(clients, "/trpc/hello?input=5").status == 400
