"""`atoll logs`, `tail` and `rollback` use the same names, orders and times as the API and the other commands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from atoll.cli.logs import LEVELS, OUTCOMES
from atoll.control.endpoints.logs import LEVELS as API_LEVELS
from atoll.control.endpoints.logs import OUTCOMES as API_OUTCOMES
from tests.cli.test_projects import run
from tests.running import Atoll

WORKER = """
export default {
  fetch(request) {
    const path = new URL(request.url).pathname;
    console.log("path", path);
    if (path === "/fail") throw new Error("failed");
    return new Response(path);
  },
};
"""


def test_logs_print_in_the_order_of_time_with_a_zone(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    atoll.deploy("cli-ordered", WORKER)
    for n in range(4):
        atoll.get("cli-ordered", f"/{n}")
    printed = run(tmp_path, "logs", "cli-ordered", "--limit", "3", **node).stdout
    calls = re.findall(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)  200  GET http://\S+/(\d)  ", printed, re.MULTILINE)
    assert [path for _, path in calls] == ["1", "2", "3"]  # the newest three calls, the newest last
    assert [time for time, _ in calls] == sorted(time for time, _ in calls)
    records = json.loads(run(tmp_path, "logs", "cli-ordered", "--limit", "3", "--json", **node).stdout)
    assert [record["url"][-1] for record in records] == ["1", "2", "3"]


def test_tables_show_the_time_zone(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    atoll.deploy("cli-zones", WORKER)
    for words in (("workers",), ("versions", "cli-zones")):
        assert re.search(r"  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  ", run(tmp_path, *words, **node).stdout)


def test_logs_are_filtered_by_outcome_level_and_text(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    atoll.deploy("cli-filtered", WORKER)
    for path in ("/a", "/fail", "/b"):
        atoll.get("cli-filtered", path)
    found = run(tmp_path, "logs", "cli-filtered", "--outcome", "exception", **node).stdout
    assert "/fail" in found and "/a" not in found and "\n    exception  Error: failed\n" in found
    assert "/fail" in run(tmp_path, "logs", "cli-filtered", "--level", "error", **node).stdout
    assert "/b" in run(tmp_path, "logs", "cli-filtered", "--text", "path /b", **node).stdout
    assert run(tmp_path, "logs", "cli-filtered", "--outcome", "exceededCpu", **node).stderr == "no calls match\n"


@pytest.mark.parametrize("command", ["logs", "tail"])
def test_outcomes_and_levels_are_those_of_the_api(tmp_path: Path, command: str) -> None:
    assert set(OUTCOMES) == set(API_OUTCOMES) and set(LEVELS) == set(API_LEVELS)
    shown = " ".join(run(tmp_path, command, "--help").stdout.split())
    assert f"Only calls with this outcome: {', '.join(OUTCOMES)}." in shown
    wrong = run(tmp_path, command, "x", "--outcome", "exceeded_cpu", code=2).stderr
    assert "exceededCpu" in wrong


def test_rollback_takes_the_name_of_a_worker_as_other_commands_do(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    for word in ("one", "two", "three"):
        (tmp_path / "cli-back.js").write_text(f"export default {{ fetch() {{ return new Response('{word}') }} }}")
        run(tmp_path, "deploy", "cli-back.js", **node)
    versions = json.loads(run(tmp_path, "versions", "cli-back", "--json", **node).stdout)
    first = next(version["id"] for version in versions if version["number"] == 1)
    for words, answer in {
        ("cli-back",): "two",
        ("cli-back", "3"): "three",
        ("cli-back", first): "one",
        ("3", "--worker", "cli-back"): "three",
        (first, "-w", "cli-back"): "one",
    }.items():
        run(tmp_path, "rollback", *words, **node)
        assert atoll.get("cli-back").text == answer, words
    assert "unexpected argument `x`" in run(tmp_path, "rollback", "a", "1", "x", code=2, **node).stderr
    assert "unexpected argument `2`" in run(tmp_path, "rollback", "a", "2", "-w", "b", code=2, **node).stderr
    assert "hint: name it: `atoll rollback 2 --worker NAME`" in run(tmp_path, "rollback", "2", code=1, **node).stderr
    run(tmp_path, "rollback", "cli-nobody", code=1, **node)
    run(tmp_path, "secret", "put", "KEY", "--worker", "cli-back", stdin="x", **node)
    assert "hint: with --force" in run(tmp_path, "rollback", "cli-back", "2", code=1, **node).stderr
    run(tmp_path, "rollback", "cli-back", "2", "--force", **node)
    assert atoll.get("cli-back").text == "two"
