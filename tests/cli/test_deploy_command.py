"""deploy, workers and logs against a real node: the steps of a user after `atoll init`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli.test_projects import run
from tests.project.conftest import ROOT
from tests.running import Atoll

WORKER = (
    'import { word } from "./word";\nexport default { fetch() { console.info("said"); return new Response(word); } }\n'
)
CONFIG = 'main = "index.ts"\ncompatibility_date = "2026-01-01"\n'


def project(folder: Path, name: str) -> Path:
    (folder / "atoll.toml").write_text(f'name = "{name}"\n' + CONFIG)
    (folder / "index.ts").write_text(WORKER)
    (folder / "word.ts").write_text('export enum Never {}\nexport const word: string = "first";\n')
    return folder


def test_deploy_inspect_and_delete(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    folder = project(tmp_path, "cli-shop")
    ran = run(folder, "deploy", "--message", "first one", **node)
    assert ran.stdout == f"http://cli-shop.localhost:{atoll.port}/\n"
    assert "deployed cli-shop, version 1" in ran.stderr
    assert atoll.get("cli-shop").text == "first"
    (folder / "word.ts").write_text('export enum Never {}\nexport const word = "second";\n')
    deployed = json.loads(run(folder, "publish", "--json", **node).stdout)
    assert deployed["version"]["number"] == 2
    assert atoll.get("cli-shop").text == "second"

    assert re.search(r"^cli-shop +2 ", run(folder, "workers", **node).stdout, re.MULTILINE)
    assert json.loads(run(folder, "workers", "show", "--json", **node).stdout)["name"] == "cli-shop"
    Atoll.wait_until(lambda: "said" in run(folder, "logs", **node).stdout)
    assert json.loads(run(folder, "logs", "cli-shop", "--limit", "1", "--json", **node).stdout)[0]["status"] == 200

    run(folder, "workers", "delete", "cli-shop", "--yes", **node)
    assert atoll.get("cli-shop").status == 404


def test_a_bundle_is_deployed_without_a_build(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    folder = project(tmp_path, "cli-bundle")
    run(folder, "build")
    (folder / "word.ts").unlink()  # the deploy does not build again
    run(folder, "deploy", "dist", **node)
    assert atoll.get("cli-bundle").text == "first"
    (folder / "dist/modules/index.js").write_text("changed")
    assert "sha256 differs" in run(folder, "deploy", "dist", code=1, **node).stderr


def test_a_worker_that_does_not_start_is_refused_and_nothing_changes(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    (tmp_path / "cli-bad.js").write_text('export default { fetch() { return new Response("good") } }')
    run(tmp_path, "deploy", "cli-bad.js", **node)
    (tmp_path / "cli-bad.js").write_text("\nthrow new Error('no');\nexport default {}")
    ran = run(tmp_path, "deploy", "cli-bad.js", code=1, **node)
    assert "error: Error: no\n    cli-bad.js:2:7\nhint: " in ran.stderr
    assert atoll.get("cli-bad").text == "good"


def test_variables_and_another_name_from_the_command_line(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    (tmp_path / "w.js").write_text("export default { fetch(r, env) { return new Response(env.WORD) } }")
    run(tmp_path, "deploy", "w.js", "--name", "cli-named", "--var", "WORD=a=b", **node)
    assert atoll.get("cli-named").text == "a=b"
    assert "write it like" in run(tmp_path, "deploy", "w.js", "--var", "WORD", code=1, **node).stderr
    assert run(tmp_path, "deploy", "w.js", "--name", "cli-never", "--dry-run", **node).stdout == ""
    assert atoll.get("cli-never").status == 404


def test_an_unreachable_node_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "w.js").write_text("export default { fetch() {} }")
    ran = run(tmp_path, "deploy", "w.js", "--api", "http://127.0.0.1:9", code=1)
    assert "error: http://127.0.0.1:9 does not answer" in ran.stderr
    assert "hint: start a node with `atoll serve`" in ran.stderr


def test_the_counter_counts(atoll: Atoll, tmp_path: Path) -> None:
    run(tmp_path, "init", "kv", "cli-counter")
    run(tmp_path / "cli-counter", "deploy", ATOLL_API=f"http://localhost:{atoll.port}")
    assert atoll.get("cli-counter", "/a").text == "/a was visited 1 times\n"
    assert atoll.get("cli-counter", "/a").text == "/a was visited 2 times\n"


def test_the_template_with_npm_packages_runs(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    run(tmp_path, "init", "api", "cli-api", "--no-install")
    (tmp_path / "cli-api/node_modules").symlink_to(ROOT / "node_modules")
    run(tmp_path / "cli-api", "deploy", **node)
    assert atoll.get("cli-api", "/books/1").json == {"id": "1", "title": "The Sea Around Us"}
    assert atoll.post("cli-api", "/books", '{"title":"Moby"}', {"Content-Type": "application/json"}).status == 201
