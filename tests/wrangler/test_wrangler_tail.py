"""`wrangler tail`, by the real wrangler, and its WebSocket by a client of our own."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from atoll.engine.process.engine_process import find_files
from tests.running import Atoll
from tests.wrangler.stock import TOOL, Wrangler, check_requests

SCRIPT = """export default {
  fetch(request) {
    const { pathname } = new URL(request.url);
    console.log("said at " + pathname);
    console.error({ more: [1, 2] });
    if (pathname === "/throws") throw new TypeError("thrown at " + pathname);
    return new Response("ok");
  },
};"""


@pytest.fixture(scope="module")
def tailed(strict: Atoll, wrangler: Wrangler) -> str:
    deploy(strict, wrangler, "wr-tail")
    return "wr-tail"


def deploy(strict: Atoll, wrangler: Wrangler, name: str) -> None:
    headers = {
        "Authorization": f"Bearer {wrangler.environment['CLOUDFLARE_API_TOKEN']}", "Content-Type": "application/json",
    }  # fmt: skip
    body = json.dumps({"name": name, "script": SCRIPT})
    assert strict.request("POST", strict.control_host, "/api/workers", body, headers).status == 201


class Tailing:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.output = ""

    def until(self, text: str) -> str:
        """The output up to a text that it must come to."""
        assert self.process.stdout is not None
        while text not in self.output:
            ready, _, _ = select.select([self.process.stdout], [], [], 30)
            assert ready, f"no {text!r} in {self.output!r}"
            piece = os.read(self.process.stdout.fileno(), 1 << 16).decode()
            assert piece, f"it ended: {self.output}"
            self.output += piece
        return self.output


@contextmanager
def tailing(wrangler: Wrangler, folder: Path, *words: str) -> Iterator[Tailing]:
    wrangler.recorder.seen.clear()
    command = [find_files().node, TOOL / "node_modules/wrangler/bin/wrangler.js", "tail", *words]
    process = subprocess.Popen(
        command, cwd=folder, env=wrangler.environment, text=True, bufsize=1,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield Tailing(process)
    finally:
        process.terminate()  # it passes the signal on to the process that holds the socket
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


def listeners(strict: Atoll, token: str) -> int:
    answer = strict.request("GET", strict.control_host, "/metrics", None, {"Authorization": f"Bearer {token}"})
    found = re.search(r"^atoll_log_listeners (\d+)", answer.text, re.MULTILINE)
    assert found is not None, answer.text
    return int(found[1])


def test_pretty_records_of_calls_arrive(wrangler: Wrangler, strict: Atoll, tailed: str, tmp_path: Path) -> None:
    with tailing(wrangler, tmp_path, tailed, "--format", "pretty") as tail:
        tail.until("waiting for logs")
        strict.get(tailed, "/quiet")
        strict.get(tailed, "/throws")
        said = tail.until("TypeError: thrown at /throws")
        tail.process.terminate()
        tail.process.wait(30)
    assert "(log) said at /quiet" in said and "/quiet - Ok" in said
    assert "/throws - Exception Thrown" in said
    check_requests("tail", wrangler.asked(tailed))


def test_json_records_pass_the_filters_and_end_with_the_worker(
    wrangler: Wrangler, strict: Atoll, tmp_path: Path
) -> None:
    name = "wr-tail-json"
    deploy(strict, wrangler, name)
    token = wrangler.environment["CLOUDFLARE_API_TOKEN"]
    strict.wait_until(lambda: listeners(strict, token) == 0, 30)  # those of other tests have ended
    filters = ("--status", "error", "--method", "GET", "--search", "thrown", "--header", "x-mine: yes")
    with tailing(wrangler, tmp_path, name, "--format", "json", *filters) as tail:
        strict.wait_until(lambda: listeners(strict, token) == 1, 30)
        for path, headers in (("/quiet", {"x-mine": "yes"}), ("/throws", {}), ("/throws", {"x-mine": "yes"})):
            strict.get(name, path, headers)
        tail.until("\n}")
        item = json.loads(tail.output)
        assert item["event"]["request"]["headers"]["x-mine"] == "yes" and item["outcome"] == "exception"
        assert next(line["message"][0] for line in item["logs"]) == "said at /throws"
        wrangler.ask("DELETE", f"/accounts/{wrangler.account}/workers/scripts/{name}")
        assert tail.process.wait(30) == 0


@contextmanager
def socket_of(wrangler: Wrangler, name: str, body: object = None) -> Iterator[ClientConnection]:
    made = wrangler.ask("POST", f"/accounts/{wrangler.account}/workers/scripts/{name}/tails", body)["result"]
    with connect(made["url"], subprotocols=[Subprotocol("trace-v1")]) as socket:
        assert socket.subprotocol == "trace-v1"
        yield socket


def received(socket: ClientConnection) -> dict[str, Any]:
    item: dict[str, Any] = json.loads(socket.recv(30))
    return item


def test_a_url_works_once_and_forged_ones_do_not(wrangler: Wrangler, strict: Atoll, tailed: str) -> None:
    tails = f"/accounts/{wrangler.account}/workers/scripts/{tailed}/tails"
    made = wrangler.ask("POST", tails, {"filters": []})["result"]
    with connect(made["url"]) as socket:
        assert [each["id"] for each in wrangler.ask("GET", tails)["result"]] == [made["id"]]
        for url in (made["url"], made["url"][:-2] + "xx"):
            with pytest.raises(InvalidStatus) as refused:
                connect(url)
            assert refused.value.response.status_code == 404
            assert json.loads(refused.value.response.body or b"")["success"] is False
        assert wrangler.ask("DELETE", f"{tails}/{made['id']}")["success"]
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(30)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1000
    assert wrangler.ask("DELETE", f"{tails}/{made['id']}")["success"] is False


def test_a_page_of_another_site_cannot_open_a_tail(wrangler: Wrangler, tailed: str) -> None:
    made = wrangler.ask("POST", f"/accounts/{wrangler.account}/workers/scripts/{tailed}/tails")["result"]
    with pytest.raises(InvalidStatus) as refused:
        connect(made["url"], origin="https://evil.example")  # type: ignore[arg-type]
    assert refused.value.response.status_code == 403


def test_credentials_are_redacted_and_filters_cannot_find_them_out(
    wrangler: Wrangler, strict: Atoll, tailed: str
) -> None:
    filters = {"filters": [{"header": {"key": "Authorization", "query": "hush"}}]}
    with socket_of(wrangler, tailed) as socket, socket_of(wrangler, tailed, filters) as blind:
        strict.get(tailed, "/", {"Authorization": "Bearer hush"})
        item = received(socket)
        assert item["event"]["request"]["headers"]["authorization"] == "REDACTED" and "hush" not in json.dumps(item)
        with pytest.raises(TimeoutError):
            blind.recv(1)


@pytest.mark.parametrize(
    "filters",
    [
        [{"sampling_rate": 2}], [{"client_ip": ["not an address"]}], [{"method": "GET"}], [{"header": "x"}], [{}] * 30,
        [{"outcome": ["ok"] * 60}], {"a": 1},
    ],
)  # fmt: skip
def test_bad_filters_are_refused(wrangler: Wrangler, tailed: str, filters: object) -> None:
    path = f"/accounts/{wrangler.account}/workers/scripts/{tailed}/tails"
    assert wrangler.ask("POST", path, {"filters": filters})["success"] is False


def test_tails_without_a_socket_are_bounded(wrangler: Wrangler, strict: Atoll) -> None:
    deploy(strict, wrangler, "wr-tail-many")
    path = f"/accounts/{wrangler.account}/workers/scripts/wr-tail-many/tails"
    made = []
    for _ in range(40):
        told = wrangler.ask("POST", path)
        if not told["success"]:
            break
        made.append(told["result"]["id"])
    assert 1 <= len(made) <= 32 and "live streams" in told["errors"][0]["message"]
    for each in made:
        assert wrangler.ask("DELETE", f"{path}/{each}")["success"]
