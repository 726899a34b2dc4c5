"""The first steps of a new user, exactly as in the README."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

from tests.running import Atoll

HELLO = 'export default { fetch() { return new Response("Hello!"); } }'


def test_a_worker_deployed_with_one_call_answers_at_its_own_host(atoll: Atoll) -> None:
    answer = atoll.control("POST", "/api/workers", {"name": "hello", "script": HELLO})
    assert answer.status == 201
    worker = answer.json
    assert re.fullmatch(r"worker_[a-z0-9]{12}", worker["id"])
    assert worker["name"] == "hello"
    assert worker["url"] == f"http://hello.localhost:{atoll.port}/"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", worker["created_at"])
    reply = atoll.get("hello")
    assert (reply.status, reply.text) == (200, "Hello!")
    assert reply.headers["content-type"] == "text/plain;charset=UTF-8"


def test_a_worker_is_found_by_id_and_by_name_listed_updated_and_deleted(atoll: Atoll) -> None:
    worker = atoll.deploy("crud", HELLO)
    for key in (worker["id"], "crud"):
        assert atoll.control("GET", f"/api/workers/{key}").json["id"] == worker["id"]
    listed = atoll.control("GET", "/api/workers").json
    rows = listed["workers"] if isinstance(listed, dict) else listed
    assert "crud" in [row["name"] for row in rows]
    update = atoll.control("PUT", f"/api/workers/{worker['id']}", {"script": HELLO.replace("Hello!", "Changed")})
    assert update.status == 200
    assert atoll.get("crud").text == "Changed"
    assert atoll.control("DELETE", f"/api/workers/{worker['id']}").status == 204
    assert atoll.get("crud").status == 404
    assert atoll.control("GET", "/api/workers/crud").status == 404


def test_an_unknown_host_gets_a_page_that_helps(atoll: Atoll) -> None:
    reply = atoll.request("GET", "nobody.localhost", headers={"Accept": "text/html"})
    assert reply.status == 404
    assert reply.headers["x-atoll-error"] == "1022"
    assert "nobody.localhost" in reply.text and "/api/workers" in reply.text


def test_the_control_api_is_not_on_worker_hosts(atoll: Atoll) -> None:
    atoll.deploy("owner", "export default { fetch(r) { return new Response(new URL(r.url).pathname); } }")
    assert atoll.get("owner", "/api/workers").text == "/api/workers"


def test_the_front_page_lists_deployed_workers(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)  # its own node: the page lists at most a hundred workers
    node.deploy("shown", HELLO)
    page = node.control("GET", "/")
    assert page.status == 200 and "shown.localhost" in page.text


def test_environment_variables_reach_the_handler(atoll: Atoll) -> None:
    script = "export default { fetch(r, env) { return Response.json(env); } }"
    atoll.deploy("vars", script, env={"GREETING": "hi", "LIST": [1, {"a": None}]})
    assert atoll.get("vars").json == {"GREETING": "hi", "LIST": [1, {"a": None}]}


def test_globals_persist_between_requests(atoll: Atoll) -> None:
    atoll.deploy("counter", "let n = 0; export default { fetch() { return new Response(String(++n)); } }")
    assert [atoll.get("counter").text for _ in range(3)] == ["1", "2", "3"]


def test_routes_lead_to_the_worker(atoll: Atoll) -> None:
    script = "export default { fetch(r) { return new Response(new URL(r.url).host); } }"
    atoll.deploy("routed", script, routes=["shop.example.com/buy/*", "*.wild.example.com/*"])
    assert atoll.request("GET", "shop.example.com", "/buy/x").text == "shop.example.com"
    assert atoll.request("GET", "shop.example.com", "/other").status == 404
    assert atoll.request("GET", "a.b.wild.example.com").text == "a.b.wild.example.com"


def test_a_deploy_that_cannot_work_is_refused_with_position_and_changes_nothing(atoll: Atoll) -> None:
    atoll.deploy("stays", HELLO)
    bad = {
        "export default {\n  fetch() { return }}}": (2, "SyntaxError"),
        "export default {}": (0, "fetch"),
        "export const x = 1": (0, "default export"),
        "export default { fetch: 5 }": (0, "not a function"),
        "const x = 1;": (0, "fetch"),
        'throw new Error("at start"); export default { fetch() {} }': (1, "at start"),
        'import "./missing.js"; export default { fetch() {} }': (0, "missing.js"),
        "await new Promise(() => {}); export default { fetch() {} }": (0, "never"),
        "for (;;); export default { fetch() {} }": (0, "CPU"),
    }
    for script, (line, words) in bad.items():
        answer = atoll.control("PUT", "/api/workers/stays", {"script": script})
        assert answer.status == 422 or answer.status == 400, (script, answer.text)
        error = answer.json["error"]
        assert words.lower() in (error["message"] + error.get("stack", "")).lower(), (script, error)
        if line:
            assert error["line"] == line, (script, error)
        assert atoll.get("stays").text == "Hello!"
    assert atoll.control("POST", "/api/workers", {"name": "never", "script": "export default {}"}).status in (400, 422)
    assert atoll.get("never").status == 404


def test_unknown_fields_are_refused_by_name(atoll: Atoll) -> None:
    answer = atoll.control("POST", "/api/workers", {"name": "x", "script": HELLO, "scirpt": 1})
    assert answer.status == 400 and "scirpt" in answer.json["error"]["message"]


def test_the_greeting_shows_a_working_deploy_command_for_any_base_domain(
    new_atoll: Callable[..., Atoll],
) -> None:
    node = new_atoll(base_domain="workers.example", engines=1)
    node.wait_until(lambda: "(Ctrl-C stops)" in node.log())
    assert "1 engine, 0 workers" in node.log()
    shown = re.search(r"deploy  (curl .*?)\n  look", node.log(), re.DOTALL)
    assert shown is not None
    ran = subprocess.run(["bash", "-c", f"{shown[1]} --fail -sS"], capture_output=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert node.request("GET", "hello.workers.example").text == "Hello!"
