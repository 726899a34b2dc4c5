"""`atoll doctor` reads the code: a project that passes loads on a node; a project that does not load is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_projects import run
from tests.project.conftest import ESBUILD
from tests.running import Atoll

CONFIG = 'name = "NAME"\nmain = "index.js"\ncompatibility_date = "2025-10-08"\n'
NOWHERE = {"ATOLL_API": "http://127.0.0.1:9", "ATOLL_ESBUILD": str(ESBUILD)}

PROJECTS = {
    "fine": "export default { fetch: () => new Response('hi') };",
    "asks-first": "const R = typeof SharedWorker === 'undefined' ? 0 : SharedWorker; export default { fetch() {} };",
    "global-at-load": "const rewriter = new SharedWorker(); export default { fetch: () => rewriter };",
    "called-at-load": "import { make } from './make.js'; make(); export default { fetch: () => 1 };",
    "module": "import { connect } from 'cloudflare:nowhere'; export default { fetch: () => connect };",
    "export": "import { nope } from 'node:fs'; export default { fetch: () => nope };",
    "throws-at-load": "throw new Error('not today');\nexport default {};",
}
MAKE = "export const make = () => globalThis.SharedWorker ? new SharedWorker() : new (class extends SharedWorker {})();"


def written(folder: Path, name: str, config: str = "") -> Path:
    folder.joinpath("wrangler.toml").write_text(CONFIG.replace("NAME", name) + config)
    folder.joinpath("index.js").write_text(PROJECTS[name])
    folder.joinpath("make.js").write_text(MAKE)
    return folder


def doctor(folder: Path, *words: str, code: int = 0) -> list[dict[str, Any]]:
    found = json.loads(run(folder, "doctor", "--json", *words, code=code, **NOWHERE).stdout)
    return [check for check in found if check["about"] == "project"]


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_that_passes_loads_on_a_node(atoll: Atoll, tmp_path: Path, name: str) -> None:
    folder = written(tmp_path, name)
    loads = name in ("fine", "asks-first")
    run(folder, "deploy", code=0 if loads else 1, ATOLL_API=f"http://localhost:{atoll.port}")
    checks = doctor(folder, code=0 if loads else 1)
    errors = [check["text"] for check in checks if check["level"] == "error"]
    assert bool(errors) is not loads
    assert ("loads in an engine" in checks[-1]["text"]) is loads


def test_without_an_engine_doctor_still_reads_the_code(tmp_path: Path) -> None:
    assert doctor(written(tmp_path, "fine"), "--no-sandbox")[-1]["text"].startswith("builds:")
    (error,) = [
        check
        for check in doctor(written(tmp_path, "global-at-load"), "--no-sandbox", code=1)
        if check["level"] == "error"
    ]
    assert error["text"] == "`SharedWorker` is not a global here (index.js:1)"


def test_the_engine_finds_what_reading_the_code_cannot(tmp_path: Path) -> None:
    """The imported file tests for the global first, and then uses it anyway."""
    folder = written(tmp_path, "called-at-load")
    assert doctor(folder, "--no-sandbox")[-1]["level"] == "ok"
    last = doctor(folder, code=1)[-1]
    assert last["level"] == "error" and "SharedWorker is not defined" in last["text"]


def test_a_flag_for_a_missing_feature_is_an_error(tmp_path: Path) -> None:
    folder = written(tmp_path, "fine", 'compatibility_flags = ["rtti_api"]\n')
    (error,) = [check for check in doctor(folder, "--no-sandbox", code=1) if check["level"] == "error"]
    assert error["text"] == "`compatibility_flags` `rtti_api` is not supported: there is no module workerd:rtti"


def test_each_ignored_field_is_reported_once_by_build_deploy_and_doctor(atoll: Atoll, tmp_path: Path) -> None:
    config = "[observability]\nenabled = true\n" + "".join(
        f'[[kv_namespaces]]\nbinding = "KV{i}"\nid = "said-once"\nremote = true\n' for i in range(2)
    )
    folder = written(tmp_path, "fine", config)
    for words in (["build"], ["deploy"]):
        said = run(folder, *words, ATOLL_API=f"http://localhost:{atoll.port}").stderr
        assert said.count("`kv_namespaces[].remote` is ignored") == said.count("`observability` is ignored") == 1
    fields = [check["text"].split("`")[1] for check in doctor(folder, "--no-sandbox") if "is ignored" in check["text"]]
    assert sorted(fields) == ["kv_namespaces[].remote", "observability"]
