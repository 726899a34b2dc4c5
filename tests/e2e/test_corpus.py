"""`tools/projects.py` on projects shaped like Cloudflare's templates: they run unchanged, or are refused with a reason."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running import Atoll

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "tests/templates"
ATOLL = str(Path(sys.executable).parent / "atoll")
REFUSED = {"llm-chat": "`vectorize` is not supported", "python": "Atoll runs JavaScript, not Python"}


def corpus(*arguments: str | Path) -> list[dict[str, Any]]:
    out = Path(arguments[-1])
    command = [sys.executable, "-m", "tools.projects", *map(str, arguments[:-1]), "--json", str(out)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    results: list[dict[str, Any]] = json.loads(out.read_text())
    assert all(result["project"] in ran.stdout for result in results), "the table has the same"
    return results


def test_every_template_runs_or_is_refused_with_a_reason(tmp_path: Path) -> None:
    results = {Path(each["project"]).name: each for each in corpus(TEMPLATES, "--doctor", tmp_path / "out.json")}
    assert set(results) == {path.name for path in TEMPLATES.iterdir()}
    for name, result in results.items():
        if name in REFUSED:
            assert result["verdict"] == "refused" and REFUSED[name] in result["reason"], result
            assert REFUSED[name] in result["doctor"], "doctor says the same before"
        else:
            assert (result["verdict"], result["status"], result["doctor"]) == ("runs", 200, "ok"), result


def test_projects_that_break_are_told_from_those_that_are_refused(tmp_path: Path) -> None:
    for name, main in {
        "throws": "export default { fetch() { throw new Error('at the request') } };",
        "loads-not": "missing.global; export default {};",
        "builds-not": "import 'not-installed'; export default {};",
        "answers-500": "export default { fetch: () => new Response('mine', { status: 500 }) };",
        "no-handler": "export default { scheduled() {} };",
        "hangs": "export default { fetch: () => new Promise(() => {}) };",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "w.js").write_text(main)
        (tmp_path / name / "wrangler.toml").write_text(f'name = "{name}"\nmain = "w.js"\n')
    found = {Path(each["project"]).name: each for each in corpus(tmp_path, tmp_path / "out.json")}
    verdicts = {name: each["verdict"] for name, each in found.items()}
    assert verdicts == {
        "throws": "breaks", "loads-not": "breaks", "builds-not": "breaks", "answers-500": "runs", "no-handler": "runs",
        "hangs": "breaks",
    }  # fmt: skip
    assert "at the request" in found["throws"]["reason"] and found["throws"]["status"] == 500
    assert "missing is not defined" in found["loads-not"]["reason"]
    assert "not-installed" in found["builds-not"]["reason"]


def deployed(atoll: Atoll, name: str) -> None:
    command = [ATOLL, "deploy", "--api", f"http://127.0.0.1:{atoll.port}"]
    ran = subprocess.run(command, cwd=TEMPLATES / name, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_workers_site_serves_its_files(atoll: Atoll) -> None:
    deployed(atoll, "site")
    page = atoll.get("site")
    assert "<title>A site</title>" in page.text and page.headers["Content-Type"] == "text/html"
    assert page.headers["ETag"].startswith('"index.') and page.headers["ETag"].endswith('.html"'), "the key has a hash"
    assert atoll.get("site", "/deep/a%20file.txt").text == "with a space\n"
    assert atoll.get("site", "/nothing").status == 404
    deployed(atoll, "site-module")
    assert atoll.get("site-module").text.endswith("</title>\nnull")


def test_blobs_are_globals_of_a_script(atoll: Atoll) -> None:
    deployed(atoll, "blobs")
    assert atoll.get("blobs").text == "hello blobs 5 1,2,3"


@pytest.mark.parametrize(("language", "greeting"), [("en", "hello"), ("de", "hallo")])
def test_a_computed_import_finds_a_module_that_nothing_imports(atoll: Atoll, language: str, greeting: str) -> None:
    if language == "en":
        deployed(atoll, "languages")
    answer = atoll.get("languages", f"/?lang={language}")
    assert answer.text == f"a page that ends (with no script {greeting} a/b"
