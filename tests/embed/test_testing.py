"""The pytest fixture as users use it, in a separate project."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from atoll.testing import TestNode

ROOT = Path(__file__).resolve().parents[2]
HELLO = "export default { fetch: () => new Response('hi') }"
CONFTEST = """
import pytest

pytest_plugins = ["atoll.testing"]

@pytest.fixture(scope="session")
def atoll_settings():
    return {"cpu_ms": 123}
"""
TESTS = """
import pytest

HELLO = "export default { fetch: (request, env) => new Response('hello ' + env.WHO) }"

@pytest.mark.parametrize("who", ["a", "b"])
def test_each_test_has_its_own_workers(atoll, who):
    assert atoll.api("GET", "/api/workers") == {"workers": []}
    worker = atoll.deploy("hello", HELLO, env={"WHO": who})
    assert worker.facts["limits"]["cpu_ms"] == 123
    assert worker.fetch("/x").text == f"hello {who}"
    assert [record["url"] for record in worker.logs()] == ["http://hello.localhost/x"]
"""


def test_a_users_tests_run_with_the_fixture(tmp_path: Path) -> None:
    run = run_tests(tmp_path, CONFTEST, TESTS)
    assert run.returncode == 0 and "2 passed" in run.stdout, run.stdout + run.stderr


def run_tests(folder: Path, conftest: str, tests: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest as a user does, on a project of two files."""
    (folder / "conftest.py").write_text(conftest)
    (folder / "test_worker.py").write_text(tests)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:asyncio",
        "-W",
        "error",
        str(folder),
    ]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_the_code_of_the_guide_works(tmp_path: Path) -> None:
    page = (ROOT / "docs/guides/embed-in-python.md").read_text("utf-8")
    program, plugin, test, settings = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert run.stdout == shown, run.stderr
    assert run_tests(tmp_path, plugin + settings, test).returncode == 0


def test_the_example_runs() -> None:
    command = [sys.executable, str(ROOT / "examples/embed.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0 and run.stdout.startswith("200 application/json"), run.stderr
    assert "GET http://json-api.localhost/api/hello?name=Python ok in " in run.stdout


def test_plain_functions_can_use_a_node() -> None:
    with TestNode() as node:
        worker = node.deploy("hello", HELLO)
        assert worker.fetch().text == node.fetch(node.url("hello")).text == "hi"
        node.forget()
        assert worker.fetch().status == 404
