"""Gradual deployments on a real node: traffic in two versions at once, clients that stay with one, kill -9 in between."""

from __future__ import annotations

import http.client
import random
import re
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from websockets.sync.client import connect

from tests.running import Atoll

SAYS = """export default { async fetch(request, env) {
  if (request.headers.get("upgrade") === "websocket") {
    const [client, server] = Object.values(new WebSocketPair());
    server.accept();
    server.send(env.N);
    return new Response(null, { status: 101, webSocket: client });
  }
  const path = new URL(request.url).pathname;
  if (path === "/service") return env.SELF.fetch("http://x/");
  return new Response(`${env.N} ${env.META.id} ${await request.text()}`);
} };"""

FAILS_SOMETIMES = """export default { fetch(request) {
  if (new URL(request.url).pathname === "/fails") throw new Error("as planned");
  return new Response("new");
} };"""


def upload(atoll: Atoll, name: str, **fields: object) -> dict[str, Any]:
    answer = atoll.control("POST", f"/api/workers/{name}/versions", fields)
    assert answer.status == 201, answer.text
    found: dict[str, Any] = answer.json
    return found


def deploy(atoll: Atoll, name: str, shares: dict[int, float]) -> None:
    versions = [{"version": number, "percentage": percentage} for number, percentage in shares.items()]
    answer = atoll.control("POST", f"/api/workers/{name}/deployments", {"versions": versions})
    assert answer.status == 201, answer.text


def two_versions(atoll: Atoll, name: str, **fields: object) -> list[str]:
    """A worker with a version in traffic and one without; their ids."""
    bindings = [{"type": "version_metadata", "name": "META"}, {"type": "service", "name": "SELF", "service": name}]
    first = atoll.deploy(name, SAYS, env={"N": "one"}, bindings=bindings[:1], **fields)
    second = upload(atoll, name, env={"N": "two"}, bindings=bindings)
    return [first["version"]["id"], second["id"]]


def serves_all(atoll: Atoll, wanted: set[str], ask: Callable[[], str]) -> None:
    """Wait until every one of these answers was seen, and no other."""
    seen: set[str] = set()

    def is_seen() -> bool:
        seen.add(ask())
        return seen >= wanted

    atoll.wait_until(is_seen)
    assert seen == wanted


def test_both_versions_of_a_split_serve_and_each_client_keeps_its_own(atoll: Atoll) -> None:
    ids = two_versions(atoll, "gradual")
    assert {atoll.get("gradual").text for _ in range(10)} == {f"one {ids[0]} "}
    deploy(atoll, "gradual", {1: 50, 2: 50})
    wanted = {f"one {ids[0]} ", f"two {ids[1]} "}
    serves_all(atoll, wanted, lambda: atoll.get("gradual").text)
    for key in map(str, range(8)):
        headers = {"Cloudflare-Workers-Version-Key": key}
        assert len({atoll.get("gradual", headers=headers).text for _ in range(5)}) == 1
        assert len({atoll.post("gradual", "/", b"x", headers).text for _ in range(3)}) == 1
    for number, word in ((0, "one"), (1, "two")):
        headers = {"Cloudflare-Workers-Version-Overrides": f'gradual="{ids[number]}"'}
        assert {atoll.get("gradual", headers=headers).text for _ in range(10)} == {f"{word} {ids[number]} "}
        assert atoll.post("gradual", "/", b"body", headers).text == f"{word} {ids[number]} body"
    deploy(atoll, "gradual", {2: 100})
    assert {atoll.get("gradual").text for _ in range(10)} == {f"two {ids[1]} "}


def test_websockets_and_service_bindings_follow_the_split(atoll: Atoll) -> None:
    ids = two_versions(atoll, "gradual-sockets")
    deploy(atoll, "gradual-sockets", {1: 50, 2: 50})
    for number, word in ((0, "one"), (1, "two")):
        override = {"Cloudflare-Workers-Version-Overrides": f'gradual-sockets="{ids[number]}"'}
        for _ in range(4):
            raw = atoll.connect()
            with connect(f"ws://{atoll.host('gradual-sockets')}/", sock=raw, additional_headers=override) as socket:
                assert socket.recv(10) == word
    headers = {"Cloudflare-Workers-Version-Overrides": f'gradual-sockets="{ids[1]}"'}
    serves_all(atoll, {"one", "two"}, lambda: atoll.get("gradual-sockets", "/service", headers).text.split()[0])


def test_a_split_survives_a_restart_and_keys_stay(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1)
    two_versions(atoll, "kept", routes=["kept.example.com/*"])
    deploy(atoll, "kept", {1: 70, 2: 30})
    keys = [{"Cloudflare-Workers-Version-Key": f"user {number}"} for number in range(20)]
    before = [atoll.get("kept", headers=key).text for key in keys]
    assert len(set(before)) == 2
    atoll.stop(signal.SIGKILL)
    atoll.start()
    assert [atoll.get("kept", headers=key).text for key in keys] == before
    answer = atoll.control("GET", "/api/workers/kept/deployments").json["deployments"][0]
    assert answer["active"] and [share["percentage"] for share in answer["versions"]] == [70, 30]


def change_until_killed(atoll: Atoll, choice: random.Random) -> None:
    while True:
        share = choice.choice([0, 10, 50, 90, 100])
        shares = {number: part for number, part in {1: 100 - share, 2: share}.items() if part}
        try:
            deploy(atoll, "shop", shares)
        except (OSError, http.client.HTTPException):
            return


def test_kill_nine_leaves_the_old_deployment_or_the_new_one(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1)
    two_versions(atoll, "shop")
    choice = random.Random(7)
    for _ in range(4):
        thread = threading.Thread(target=change_until_killed, args=(atoll, choice))
        thread.start()
        time.sleep(choice.uniform(0.05, 0.4))
        atoll.stop(signal.SIGKILL)
        thread.join()
        atoll.start()
        worker = atoll.control("GET", "/api/workers/shop").json
        newest = atoll.control("GET", "/api/workers/shop/deployments").json["deployments"][0]
        assert sorted(share["id"] for share in newest["versions"]) == sorted(share["id"] for share in worker["traffic"])
        assert sum(share["percentage"] for share in worker["traffic"]) == 100
        shown = {share["number"]: share["percentage"] for share in worker["traffic"]}
        assert {share["number"]: share["percentage"] for share in newest["versions"]} == shown
        assert atoll.get("shop").status == 200


def test_a_rollback_rule_survives_a_kill_and_returns_to_the_version_before(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1)
    atoll.deploy("fragile", 'export default { fetch() { return new Response("fine"); } }')
    rule = {"above": 20, "window_seconds": 5, "min_requests": 5}
    answer = atoll.control("PUT", "/api/workers/fragile", {"script": FAILS_SOMETIMES, "rollback": rule})
    assert answer.status == 200, answer.text
    atoll.stop(signal.SIGKILL)
    atoll.start()
    for _ in range(5):
        assert atoll.get("fragile").text == "new"
    atoll.wait_until(lambda: atoll.get("fragile", "/fails").text == "fine")
    newest, failed, _ = atoll.control("GET", "/api/workers/fragile/deployments").json["deployments"]
    assert re.fullmatch(
        r"rolled back automatically: \d+ of \d+ requests to version 2 failed \([\d.]+ %, rule 20 %\)", newest["message"]
    )
    assert failed["rollback"]["state"] == "rolled_back" and newest["source"] == "rollback"
    assert f"fragile is back on version 1: {newest['message']}" in atoll.log()
    metrics = atoll.control("GET", "/metrics").text
    assert re.search(r'atoll_automatic_rollbacks_total\{tenant="default",worker="fragile"\} 1\n', metrics)
