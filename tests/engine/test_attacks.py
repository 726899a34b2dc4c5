"""Runs every script in attacks/ against one node with one engine. A victim beside it must get all its answers.

The head of a script says what to expect:

    // expect: cpu | memory | exception TEXT | internal | refused TEXT | answer TEXT | length N | broken | leak
                                          or several of them, joined by "or"
    // limits: cpu_ms=50 memory_mb=32     // switches: allow_wasm_compile     // times: 3
    // body: 1000                         size of the request body in bytes
    // outcome: exceededCpu               the outcome in the log, if the answer does not show it
    // truncated: yes                     the log is truncated
    // bindings: kv                       in addition to the echo that all have
    // peak: 300                          the node and its engine may grow by at most this many MB at any time
    // engine: replaced | may be replaced without this line the engine must survive
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from tests.running import Answer, Atoll, FairClock

FOLDER = Path(__file__).parent / "attacks"
SCRIPTS = sorted(FOLDER.glob("*.js"))
HEAD = re.compile(r"// (\w+): (.*)")

REPLACED = "engine 1 is replaced:"
MAY_BE_SECONDS = 1.5  # the watchdog reports a stuck engine after less CPU time

KINDS = {
    "exceededCpu": "cpu",
    "exceededMemory": "memory",
    "exception": "exception",
    "internalError": "internal",
    "canceled": "internal",  # the answer was not valid HTTP
}

VICTIM = """
const shared = [globalThis, Object.prototype, Array.prototype, Response, Promise, JSON, Math, Error];
const clean = () => shared.every((object) => object.leaked === undefined);
let count = 0;
export default { async fetch(request) {
  const began = ++count;
  await new Promise((resolve) => setTimeout(resolve, began % 3));
  return Response.json({ path: new URL(request.url).pathname, clean: clean(), stolen: Response.json.length !== 1 });
} };
"""


class Victim(threading.Thread):
    """Calls a worker over and over and records wrong answers."""

    def __init__(self, atoll: Atoll) -> None:
        super().__init__(daemon=True)
        self._atoll = atoll
        self._over = threading.Event()
        self.wrong: list[str] = []
        self.answers = 0
        self.slowest = 0.0  # seconds, without time that the machine was too busy for

    def run(self) -> None:
        while not self._over.wait(0.01):
            path = f"/{self.answers}"
            clock = FairClock(lambda: [os.getpid(), self._atoll.pid, *self._atoll.engines()])
            try:
                answer = self._atoll.get("victim", path)
                if answer.status != 200 or answer.json != {"path": path, "clean": True, "stolen": False}:
                    self.wrong.append(f"{answer.status} {answer.text[:200]}")
            except Exception as error:
                self.wrong.append(repr(error))
            self.answers += 1
            self.slowest = max(self.slowest, clock.seconds)

    def stop(self) -> None:
        self._over.set()
        self.join()


class Scales(threading.Thread):
    """Measures the memory of the node and its engine continuously."""

    def __init__(self, atoll: Atoll) -> None:
        super().__init__(daemon=True)
        self._atoll = atoll
        self._before = [(pid, atoll.memory_mb(pid)) for pid in (atoll.pid, *atoll.engines())]
        self._over = threading.Event()
        self.most_mb = 0.0  # growth since the start

    def run(self) -> None:
        while not self._over.wait(0.01):
            for pid, before in self._before:
                try:
                    self.most_mb = max(self.most_mb, self._atoll.memory_mb(pid) - before)
                except (OSError, AssertionError):
                    continue  # the engine is replaced

    def stop(self) -> None:
        self._over.set()
        self.join()


class Range:
    """The node under attack."""

    def __init__(self, folder: Path) -> None:
        self.atoll = Atoll(
            folder, engines=1, quarantine_seconds=0
        )  # no quarantine: every attack starts under the same conditions
        self.atoll.start()
        self.atoll.deploy("victim", VICTIM, limits={"cpu_ms": 1000})
        self.atoll.get("victim")
        self.memory = self.atoll.memory_mb()
        self.engine_memory = self.atoll.memory_mb(self.engine)

    @property
    def engine(self) -> int:
        self.atoll.wait_until(lambda: self.atoll.engines(), 5)
        return self.atoll.engines()[-1]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Range]:
    node = Range(tmp_path_factory.mktemp("range"))
    yield node
    assert node.atoll.stop() == 0


def head_of(source: str) -> dict[str, str]:
    return {found[1]: found[2] for line in source.splitlines() if (found := HEAD.fullmatch(line))}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_attack_affects_only_its_own_worker(target: Range, script: Path) -> None:
    source = script.read_text()
    head = head_of(source)
    name = script.stem.replace("_", "-")
    fields: dict[str, Any] = {"switches": dict.fromkeys(head.get("switches", "").split(), True)}
    fields["bindings"] = [{"type": "echo", "name": "ECHO"}]
    if head.get("bindings") == "kv":
        fields["bindings"].append({"type": "kv", "name": "KV", "namespace": name})
    body = b"x" * int(head.get("body", "0"))
    fields["limits"] = {key: int(value) for key, value in (pair.split("=") for pair in head.get("limits", "").split())}
    engine, told = target.engine, len(target.atoll.log())
    victim, scales = Victim(target.atoll), Scales(target.atoll)
    victim.start()
    scales.start()
    try:
        target.atoll.wait_until(lambda: victim.answers)
        deployed = target.atoll.control("POST", "/api/workers", {"name": name, "script": source, **fields})
        results = [judge(target.atoll, name, deployed, body) for _ in range(int(head.get("times", "1")))]
        for result in results if head["expect"] != "leak" else []:
            expected = head["expect"].split(" or ")
            assert any(fits(result, one, fields["limits"]) for one in expected), result
        if head["expect"] == "leak":
            kinds = [result[0] for result in results]
            assert "memory" in kinds and kinds.count("answer") > 5, (
                "the isolate is ended, and the next one starts empty"
            )
        check_log(target.atoll, name, head)
        check_engine(target, engine, head, told)
        check_memory(target)
    finally:
        victim.stop()
        scales.stop()
        target.atoll.control("DELETE", f"/api/workers/{name}")
    assert not victim.wrong, victim.wrong
    assert victim.slowest < 1, "other workers are served within a second"
    assert scales.most_mb < float(head.get("peak", "inf"))


def judge(atoll: Atoll, name: str, deployed: Answer, body: bytes) -> tuple[str, str]:
    """The result of one call: its kind and its text."""
    if deployed.status != 201:
        return "refused", deployed.json["error"]["message"]
    try:
        answer = atoll.request("POST" if body else "GET", atoll.host(name), "/", body, {"Accept": "application/json"})
    except IncompleteRead:
        return "broken", ""
    if answer.status == 200 and "x-atoll-error" not in answer.headers:
        return "answer", answer.text
    code = answer.headers.get("x-atoll-error")
    assert answer.status in (500, 503) and code in ("1101", "1102"), answer.text
    atoll.wait_until(lambda: atoll.logs(name), 5)
    record = atoll.logs(name)[0]
    return KINDS[record["outcome"]], record.get("exception", {}).get("message", "")


def fits(result: tuple[str, str], expected: str, limits: dict[str, int]) -> bool:
    kind, _, text = expected.partition(" ")
    if kind == "length":
        return result[0] == "answer" and len(result[1]) == int(text)
    if kind == "answer" or (
        result[0] == "answer" and kind not in ("cpu", "memory", "exception", "internal", "refused", "broken")
    ):
        return result[0] == "answer" and result[1] == (text if kind == "answer" else expected)
    if result[0] != kind or text not in result[1]:
        return False
    if kind == "cpu":
        limit = limits.get("cpu_ms", 50)
        found = re.fullmatch(rf"used (\d+) ms of CPU, limit {limit} ms", result[1])
        return found is not None and limit < int(found[1]) <= limit * 1.5
    return kind != "memory" or "memory limit" in result[1]


def check_log(atoll: Atoll, name: str, head: dict[str, str]) -> None:
    if "outcome" in head:
        atoll.wait_until(lambda: atoll.logs(name) and atoll.logs(name)[0]["outcome"] == head["outcome"], 5)
    if "truncated" in head:
        atoll.wait_until(lambda: atoll.logs(name) and atoll.logs(name)[0]["truncated"], 5)


def check_engine(target: Range, before: int, head: dict[str, str], told: int) -> None:
    """The engine must survive unless the head says otherwise.

    An attack that got its answer may still end its engine a moment later, when V8 frees its isolate.
    """

    def log() -> str:
        return target.atoll.log()[told:]

    if head.get("engine") == "may be replaced":
        deadline = time.monotonic() + MAY_BE_SECONDS
        while REPLACED not in log() and time.monotonic() < deadline:
            time.sleep(0.05)
    if head.get("engine") == "replaced" or ("engine" in head and REPLACED in log()):
        target.atoll.wait_until(lambda: target.engine != before and len(target.atoll.engines()) == 1, 10)
    elif "engine" not in head and target.engine != before:
        if f"{REPLACED} it has grown to" in log():
            return  # memory that V8 and its libraries keep after the earlier attacks
        offender = re.search(rf"{REPLACED} ([\w-]+):", log())
        assert offender is not None, f"the engine died:\n{log()[-2000:]}"
        assert "engine" in head_of((FOLDER / f"{offender[1].replace('-', '_')}.js").read_text()), log()[-2000:]


def check_memory(target: Range) -> None:
    """The memory of the node and its engine soon returns to about its initial size."""

    def is_back() -> bool:
        grown = target.atoll.memory_mb() - target.memory
        try:
            return grown < 150 and target.atoll.memory_mb(target.engine) - target.engine_memory < 350
        except OSError:
            return False  # the engine is being replaced

    target.atoll.wait_until(is_back, 20)


def test_memory_returns_to_its_initial_size_after_all_attacks(target: Range) -> None:
    """After all attacks, the memory of the node and its engine is about its initial size."""
    atoll = target.atoll
    atoll.wait_until(lambda: atoll.pool()["in_flight"] == 0, 20)
    assert atoll.memory_mb() < target.memory + 150, "Python"
    atoll.wait_until(lambda: len(atoll.engines()) == 1, 20)
    atoll.wait_until(lambda: atoll.memory_mb(target.engine) < target.engine_memory + 250, 20)
    assert atoll.get("victim", "/last").status == 200


def client_half_a_head(atoll: Atoll) -> list[socket.socket]:
    opened = []
    for _ in range(200):
        connection = atoll.connect()
        connection.sendall(b"GET / HTTP/1.1\r\nHost: vic")
        opened.append(connection)
    return opened


def client_unread_answers(atoll: Atoll) -> list[socket.socket]:
    opened = []
    for _ in range(20):
        connection = atoll.connect()
        connection.sendall(b"GET /x HTTP/1.1\r\nHost: victim.localhost\r\n\r\n" * 500)
        opened.append(connection)
    return opened


def client_half_a_body(atoll: Atoll) -> list[socket.socket]:
    opened = []
    for _ in range(100):
        connection = atoll.connect()
        connection.sendall(b"POST / HTTP/1.1\r\nHost: victim.localhost\r\nContent-Length: 1000000\r\n\r\nx")
        opened.append(connection)
    return opened


def client_oversized_heads(atoll: Atoll) -> list[socket.socket]:
    opened = []
    for head in (b"GET /" + b"x" * 1_000_000, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200_000, b"\0" * 100_000):
        connection = atoll.connect()
        try:
            connection.sendall(head)
        except OSError:
            pass  # refused before it was complete
        opened.append(connection)
    return opened


@pytest.mark.parametrize(
    "attack", [client_half_a_head, client_unread_answers, client_half_a_body, client_oversized_heads]
)
def test_a_hostile_client_affects_only_itself(target: Range, attack: Callable[[Atoll], list[socket.socket]]) -> None:
    opened = attack(target.atoll)
    victim = Victim(target.atoll)
    victim.start()
    try:
        time.sleep(0.5)
        target.atoll.wait_until(lambda: victim.answers > 3, 60)
    finally:
        victim.stop()
        for connection in opened:
            connection.close()
    assert not victim.wrong, victim.wrong
