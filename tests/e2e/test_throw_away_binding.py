"""A new binding is one folder: copied into a tree of Atoll, it works everywhere. No other file changes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.engine.process.engine_process import find_files
from tests.running import Answer, Atoll

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "tests/binding_template/tally"
START = "import sys; sys.path[:0] = {paths!r}; sys.argv = ['atoll', *sys.argv[1:]]; from atoll.cli.start import start; start()"
WORKER = "export default { async fetch(request, env) { return new Response(String(await env.HITS.add())); } };"
CONFIG = """
name = "counted"
main = "worker.js"
compatibility_date = "2026-01-01"
tallies = [{ binding = "HITS", tally = "hits" }]
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The `atoll` of a tree with one additional folder."""
    tree = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "_engine")
    for folder in ("atoll", "web", "tools"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=ignored)
    shutil.copytree(TEMPLATE, tree / "atoll/bindings/tally", ignore=ignored)
    files, built = find_files(), tree / "atoll/_engine"
    built.mkdir()
    for path in (files.main, files.addon):
        (built / path.name).symlink_to(path)
    (tree / "node_modules").symlink_to(ROOT / "node_modules")
    bundle = [str(files.node), "tools/build_web.mjs", str(built / "web.js")]
    subprocess.run(bundle, cwd=tree, check=True, capture_output=True)
    # Without site, which would find the installed Atoll.
    paths = [str(tree), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return [sys.executable, "-S", "-c", START.format(paths=paths)]


@pytest.fixture(scope="module")
def node(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("node"), engines=1, tally_step=5)
    node.command = [*command, "serve"]
    node.start()
    node.deploy("counted", WORKER, bindings=[{"type": "tally", "name": "HITS", "tally": "hits"}])
    yield node
    assert node.stop() == 0, node.log()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "worker.js").write_text(WORKER)
    (tmp_path / "wrangler.toml").write_text(CONFIG)
    return tmp_path


def run(command: list[str], *words: str, cwd: Path) -> str:
    ran = subprocess.run([*command, *words], cwd=cwd, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_a_worker_has_the_binding_in_env_and_its_setting_works(node: Atoll) -> None:
    first = int(node.get("counted").text)
    assert int(node.get("counted").text) == first + 5


def test_its_event_starts_the_handler_of_a_worker(node: Atoll) -> None:
    watcher = "export default { tallied({ tally, count }) { console.log(`${tally} is at ${count}`); } };"
    node.deploy("watcher", watcher, tally_watches=[{"tally": "hits"}])
    count = node.get("counted").text
    node.wait_until(lambda: node.logs("watcher"))
    record = node.logs("watcher")[0]
    assert (record["event"], record["outcome"]) == ("tallied", "ok")
    assert record["logs"][0]["message"] == f"hits is at {count}"


def test_a_deploy_without_the_handler_of_its_event_is_refused(node: Atoll) -> None:
    body = {"name": "deaf", "script": WORKER, "tally_watches": [{"tally": "hits"}]}
    answer = node.control("POST", "/api/workers", body)
    assert answer.status == 422 and "no tallied() handler" in answer.text


def test_an_invalid_deploy_is_refused_with_a_clear_error(node: Atoll) -> None:
    entry = {"type": "tally", "name": "HITS", "tally": ""}
    answer = node.control("POST", "/api/workers", {"name": "no", "script": WORKER, "bindings": [entry]})
    assert answer.status == 400 and "`tally` is empty" in answer.text


def test_its_quota_is_enforced(node: Atoll) -> None:
    for method, path, body in (("POST", "/api/tenants", {"name": "poor", "quotas": {"tallies": 0}}),):
        assert node.control(method, path, body).status == 201
    assert node.control("GET", "/api/tenants/poor").json["quotas"]["tallies"] == 0
    body = {"name": "poor", "script": WORKER, "bindings": [{"type": "tally", "name": "HITS", "tally": "one"}]}
    headers = {"X-Atoll-Tenant": "poor", "Content-Type": "application/json"}
    made: Answer = node.request("POST", f"localhost:{node.port}", "/api/workers", json.dumps(body), headers)
    assert made.status == 201, made.text
    assert node.get("poor").status == 500


def test_its_endpoints_are_served_and_described(node: Atoll) -> None:
    node.get("counted")
    (tally,) = node.control("GET", "/api/tallies").json["tallies"]
    assert tally["name"] == "hits" and tally["count"] >= 5
    paths = node.control("GET", "/api/openapi.json").json["paths"]
    assert set(paths["/api/tallies"]) == {"get"} and set(paths["/api/tallies/{tally}"]) == {"delete"}


def test_its_metrics_are_scraped(node: Atoll) -> None:
    node.get("counted")
    assert "atoll_tallies 1.0" in node.control("GET", "/metrics").text


def test_its_commands_work(command: list[str], node: Atoll, tmp_path: Path) -> None:
    node.get("counted")
    api = f"http://127.0.0.1:{node.port}"
    (tally,) = json.loads(run(command, "tallies", "list", "--json", "--api", api, cwd=tmp_path))
    assert tally["name"] == "hits"
    run(command, "tallies", "reset", "hits", "--api", api, cwd=tmp_path)
    assert json.loads(run(command, "tallies", "list", "--json", "--api", api, cwd=tmp_path)) == []
    assert "tallies" in run(command, "--help", cwd=tmp_path)
    assert "--tally-step" in run(command, "serve", "--help", cwd=tmp_path)


def test_a_project_that_has_it_is_typed(command: list[str], project: Path) -> None:
    run(command, "types", cwd=project)
    text = (project / "worker-configuration.d.ts").read_text()
    assert "interface Tally {" in text and "HITS: Tally;" in text


def test_doctor_knows_it(command: list[str], project: Path) -> None:
    words = ("doctor", "--no-sandbox", "--json", "--api", "http://127.0.0.1:9")
    ran = subprocess.run([*command, *words], cwd=project, capture_output=True, text=True, check=False)
    checks = [check for check in json.loads(ran.stdout) if check["about"] == "project"]
    assert any(check["text"] == "env.HITS: tally hits" for check in checks)
    assert not [check for check in checks if check["level"] == "error"], checks


def test_a_project_that_has_it_is_deployed(command: list[str], node: Atoll, project: Path) -> None:
    node.get("counted")
    run(command, "deploy", "--api", f"http://127.0.0.1:{node.port}", cwd=project)
    assert node.control("GET", "/api/workers/counted").json["bindings"] == [
        {"type": "tally", "name": "HITS", "tally": "hits"}
    ]
    assert int(node.get("counted").text) >= 5
