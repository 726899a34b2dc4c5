"""Errors of one kind are one group: the fingerprint, the store, the endpoint and the command."""

from __future__ import annotations

import json
import subprocess

import pytest

from atoll.errors import Failure
from atoll.observe.error_groups import shape_of
from atoll.wire.generated import ErrorCode
from tests.running import COMMAND, Atoll

SOURCE = """
function find(id) { throw new TypeError(`no user ${id} in "${Math.random()}"`); }
export default { fetch(request) {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === "/other") throw new RangeError("too far");
  if (pathname === "/find") find(searchParams.get("id"));
  return new Response("fine");
} };
"""


def failure(message: str, stack: str, name: str = "Error") -> Failure:
    return Failure(ErrorCode.EXCEPTION, message, name, stack)


STACK = "Error: x\n    at node:internal/a:1:2\n    at load (main.js:%d:7)\n    at fetch (main.js:9:1)"


@pytest.mark.parametrize(
    "other",
    [
        failure("user 17 is missing", STACK % 3),
        failure("user 4711 is missing", STACK % 12),
    ],
)
def test_numbers_and_lines_do_not_make_a_new_group(other: Failure) -> None:
    digest, message, frame = shape_of(other)
    assert digest == shape_of(failure("user 1 is missing", STACK % 3))[0]
    assert frame.startswith("load (main.js:") and message == f"Error: {other.message}"


@pytest.mark.parametrize(
    "other",
    [
        failure("user 1 is gone", STACK % 3),
        failure("user 1 is missing", STACK % 3, "TypeError"),
        failure("user 1 is missing", STACK.replace("load", "save") % 3),
        failure("user 1 is missing", ""),
    ],
)
def test_another_message_type_or_place_does(other: Failure) -> None:
    assert shape_of(other)[0] != shape_of(failure("user 1 is missing", STACK % 3))[0]


def test_groups_are_counted_paged_and_lead_to_a_record(atoll: Atoll) -> None:
    name = "errors-in-groups"
    atoll.deploy(name, SOURCE)
    for id in (1, 22, 333):
        assert atoll.get(name, f"/find?id={id}").status == 500
    assert atoll.get(name, "/other").status == 500
    assert atoll.get(name).status == 200
    found = atoll.control("GET", f"/api/errors?worker={name}").json["errors"]
    newest, oldest = found
    assert (newest["count"], newest["message"]) == (1, "RangeError: too far")
    assert oldest["count"] == 3 and oldest["worker"] == name
    assert oldest["message"].startswith("TypeError: no user 333 in ")
    assert oldest["frame"].startswith("find (") and oldest["first_seen"] <= oldest["last_seen"]
    [record] = atoll.control("GET", f"/api/workers/{name}/logs?limit=1&cursor={oldest['example']}").json["logs"]
    assert record["url"].endswith("/find?id=333")
    page = atoll.control("GET", f"/api/errors?worker={name}&limit=1").json
    assert page["errors"] == [newest]
    rest = atoll.control("GET", f"/api/errors?worker={name}&limit=1&cursor={page['cursor']}").json
    assert rest["errors"] == [oldest]
    command = [COMMAND[0], "errors", name, "--api", f"http://localhost:{atoll.port}"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "3 x  errors-in-groups  TypeError: no user 333 in" in told and "once" in told
    as_json = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout
    assert json.loads(as_json) == found
    assert atoll.control("DELETE", f"/api/workers/{name}").status in (200, 204)
    assert all(each["worker"] != name for each in atoll.control("GET", "/api/errors").json["errors"])


def test_an_invalid_cursor_and_an_unknown_worker_are_refused(atoll: Atoll) -> None:
    assert atoll.control("GET", "/api/errors?cursor=x").status == 400
    assert atoll.control("GET", "/api/errors?worker=not-there").status == 404
