"""`atoll top` in a pseudo-terminal and in a pipe, against a real node."""

from __future__ import annotations

import json
import re
import subprocess
import termios
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from atoll.cli.top import Shown, cell, screen, table
from atoll.cli.top_numbers import EngineLine, NodeLine, TopSnapshot, WorkerLine, quantile
from tests.cli.dev_session import ATOLL, SECONDS, environment
from tests.cli.test_terminal import Screen
from tests.running import Atoll

QUIET = NodeLine(0.0, 0.0, 0, 0, 1, 0.0, 0.0, 1e9, 0.4, "0.1.0")
WORKER = """export default { fetch(request) {
  if (request.url.endsWith("/bad")) throw new Error("broken");
  return new Response("ok");
} }"""


def line(
    worker: str, calls: float, *, tenant: str = "default", p99_ms: float | None = 1.0, full: float = 0.0
) -> WorkerLine:
    return WorkerLine(worker, tenant, calls, 0.0, 0.5, p99_ms, calls / 1e4, 0, 0, full, 1, 2e6)


@pytest.fixture
def busy(atoll: Atoll) -> object:
    """Calls while the test runs."""
    atoll.deploy("top-shop", WORKER)
    atoll.deploy("top-bad", WORKER)
    is_over = threading.Event()

    def load() -> None:
        while not is_over.is_set():
            atoll.get("top-shop")
            atoll.get("top-bad", "/bad")

    thread = threading.Thread(target=load)
    thread.start()
    yield None
    is_over.set()
    thread.join()


def test_a_terminal_shows_a_table_that_keys_change(busy: object, atoll: Atoll, tmp_path: Path) -> None:
    words = ("top", "--seconds", "0.3")
    shown = Screen(tmp_path, words, ATOLL_API=f"http://localhost:{atoll.port}", LINES="24", COLUMNS="110")
    row = r"{name} +default +[1-9][\d,.]* +{errors} "
    shown.wait_for(r"Atoll \S+ at http://localhost:\d+: [1-9]")
    shown.wait_for(r"WORKER +TENANT +CALLS/S +ERRORS +P50 MS +P99 MS +CPU +NOW")
    shown.wait_for(row.format(name="top-shop", errors="0%"))
    shown.wait_for(row.format(name="top-bad", errors=r"100\.0%"))
    shown.press("t")
    shown.wait_for(r"tenants, by calls/s")
    shown.wait_for(r"default +\d+ workers? ")
    shown.press("gu")
    shown.wait_for(r"engines, by cpu")
    shown.wait_for(r"engine-1 +all +[\d.]+% +\d+ MB")
    shown.press("\x1b[A")  # an arrow key is not the escape key
    shown.press(" ")
    shown.wait_for(r"by cpu, paused")
    shown.press("q")
    assert shown.process.wait(SECONDS) == 0
    shown.read_rest()
    assert shown.raw.startswith("\x1b[?1049h") and shown.raw.endswith("\x1b[?25h\x1b[?1049l")
    assert termios.tcgetattr(shown.main)[3] == shown.before[3], "the terminal is as before"


def test_a_pipe_gets_one_table_or_json(busy: object, atoll: Atoll, tmp_path: Path) -> None:
    def run(*words: str) -> str:
        here = environment(tmp_path) | {"ATOLL_API": f"http://localhost:{atoll.port}"}
        command = [ATOLL, "top", "--seconds", "0.5", *words]
        return subprocess.run(command, env=here, capture_output=True, text=True, check=True, timeout=60).stdout

    text = run("--sort", "errors")
    assert "\x1b" not in text
    names = re.findall(r"^(top-\w+) ", text, re.MULTILINE)
    assert names[0] == "top-bad" and "top-shop" in names
    found = json.loads(run("--json"))
    shop = next(each for each in found["workers"] if each["worker"] == "top-shop")
    assert (
        shop["calls"] > 0 and shop["errors"] == 0 and shop["p50_ms"] > 0 and shop["cpu"] > 0 and shop["isolates"] >= 1
    )
    assert found["node"]["calls"] >= shop["calls"] and found["node"]["version"]
    assert {each["name"] for each in found["engines"]} >= {"node", "engine-1"}
    assert next(each for each in found["engines"] if each["name"] == "engine-1")["up"] > 0


def test_a_hostile_name_cannot_command_the_terminal() -> None:
    attack = "\x1b]0;t\x07\x1b[2J\n\r" + "x" * 100
    snapshot = TopSnapshot(
        QUIET, [line(attack, 5.0, tenant=attack)], [], [EngineLine(attack, attack, 0, 1, 1, 1, 1, 1, 1)]
    )
    for view in ("workers", "engines"):
        drawn = screen(snapshot, Shown(view, "c"), f"http://{attack}", (300, 20))
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", "".join(drawn))
        assert max(map(len, drawn)) <= 300 and len(drawn) == 20
    assert len(cell(attack, is_name=True)) == 32


def test_lines_are_sorted_by_any_key_both_ways_and_cut_to_the_terminal() -> None:
    lines = [line("b", 5.0, p99_ms=None), line("a", 9.0, p99_ms=3.0), line("c", 1.0, p99_ms=8.0, full=0.9)]
    snapshot = TopSnapshot(QUIET, lines, [], [])
    shown = Shown("workers", "c")
    orders = {"c": "abc", "l": "cab", "n": "abc", "f": "cab"}
    for key, order in orders.items():
        assert shown.press(key)
        assert "".join(each.worker for each in shown.rows(snapshot)) == order, key
    assert shown.press("r") and not shown.press("q")
    assert "".join(each.worker for each in shown.rows(snapshot))[-1] == "c"
    many = TopSnapshot(QUIET, [line(f"w{number}", number) for number in range(100)], [], [])
    drawn = screen(many, shown, "http://localhost", (60, 12))
    assert len(drawn) == 12 and max(map(len, drawn)) <= 60 and "94 more." in drawn[-1]


def test_quantiles_come_from_buckets() -> None:
    buckets = [(0.001, 50.0), (0.002, 90.0), (float("inf"), 100.0)]
    assert quantile(buckets, 0.5) == pytest.approx(1.0)
    assert quantile(buckets, 0.7) == pytest.approx(1.5)
    assert quantile(buckets, 0.99) == pytest.approx(2.0), "all that is known: longer than 2 ms"
    assert quantile([], 0.5) is None and quantile([(1.0, 0.0)], 0.5) is None


def test_a_token_of_one_tenant_cannot_look_at_the_node(new_atoll: Callable[..., Atoll], tmp_path: Path) -> None:
    atoll = new_atoll(engines=1, control_auth="token")
    admin = (atoll.folder / "data/admin-token").read_text().strip()
    here = environment(tmp_path) | {"ATOLL_API": f"http://localhost:{atoll.port}", "ATOLL_TOKEN": admin}

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([ATOLL, *words], env=here | more, capture_output=True, text=True, check=False, timeout=60)

    assert run("top", "--seconds", "0.2").returncode == 0
    assert run("tenant", "create", "acme").returncode == 0
    made = run("token", "create", "ci", "--tenant", "acme", "--scope", "admin", "--json")
    token = json.loads(made.stdout)["token"]
    refused = run("top", ATOLL_TOKEN=token)
    assert refused.returncode == 1 and "error: " in refused.stderr and "Traceback" not in refused.stderr


def test_columns_are_as_wide_as_their_longest_cell() -> None:
    from atoll.cli.top import VIEWS

    drawn = table(VIEWS["workers"], [line("a-much-longer-name", 12345.6)])
    assert drawn[0].index("TENANT") == len("a-much-longer-name") + 2 == drawn[1].index("default")
    assert "12,346" in drawn[1]
