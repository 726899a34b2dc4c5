"""What the documents promise exists: commands, examples, links."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.project.read import read_project
from bench.__main__ import BENCHES

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/worker.js"))
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
CODE_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def documents() -> Iterator[Path]:
    yield from sorted(ROOT.glob("*.md"))
    for room in ("atoll", "bench", "docs", "engine", "examples", "web"):
        yield from sorted((ROOT / room).rglob("*.md"))


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_make_command_in_the_documents_exists(name: str) -> None:
    shown = " ".join(CODE.findall((ROOT / name).read_text("utf-8")))
    commands = set(re.findall(r"\bmake ([a-z][a-z-]*)", shown))
    assert commands
    assert commands <= TARGETS


def test_every_make_target_for_users_has_a_description() -> None:
    for target in ("setup", "run", "test", "check", "format", "wire", "bench", "bench-peers", "clean"):
        assert re.search(rf"^# .+\n{target}:", MAKEFILE, re.MULTILINE), target


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_an_example_is_complete_and_listed(folder: Path) -> None:
    project = read_project(folder)
    assert project.name == folder.name
    assert project.main is not None and project.main.is_file()
    last_block = CODE.findall((folder / "README.md").read_text("utf-8"))[-1]
    curls = [line for line in last_block.splitlines() if "curl " in line]
    assert curls, "the README must end in curl commands"
    assert all(f"{folder.name}.localhost:8080" in line for line in curls)
    assert f"](examples/{folder.name}" in (ROOT / "README.md").read_text("utf-8"), (
        "the main README must list every example"
    )


def test_the_promised_examples_exist() -> None:
    assert {"hello-world", "json-api", "service-worker", "streaming"} <= {folder.name for folder in EXAMPLES}


@pytest.mark.parametrize("path", list(documents()), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_between_documents_work(path: Path) -> None:
    broken = []
    for target in LINK.findall(CODE.sub("", path.read_text("utf-8"))):
        file, _, heading = target.partition("#")
        if re.match(r"[a-z]+:", file):
            continue  # another site
        there = (path.parent / file).resolve() if file else path
        missing = not there.exists()
        if missing or (heading and there.suffix == ".md" and heading not in headings(there)):
            broken.append(target)
    assert not broken


def headings(path: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub creates them."""
    titles = re.findall(r"^#+ (.+)$", CODE_FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_page_is_in_the_index_and_the_readme_links_to_it() -> None:
    assert "](docs/README.md)" in (ROOT / "README.md").read_text("utf-8")
    index = (ROOT / "docs/README.md").read_text("utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    listed = [
        page for page in pages if not page.startswith("decisions/") and page != "README.md"
    ]  # ARCHITECTURE.md lists those
    assert [page for page in listed if f"]({page})" not in index] == []


def test_the_site_has_no_broken_link(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index.html").exists() and (tmp_path / "project/ARCHITECTURE/index.html").exists()


RIDDLES = re.compile(r"\b(whoever|what of it|seen to|is told|are told|anew|lest|nobody's|passed over|his own)\b")


def test_documents_avoid_unclear_words() -> None:
    """The help texts of commands, which cli.md contains, have their own tests."""
    found = {
        path.relative_to(ROOT).as_posix(): words
        for path in documents()
        if path.name != "cli.md" and (words := RIDDLES.findall(CODE.sub("", path.read_text("utf-8"))))
    }
    assert found == {}


def test_every_global_of_a_worker_is_in_the_reference() -> None:
    source = (ROOT / "web/globals.js").read_text("utf-8")
    names = set(re.findall(r'\bexpose\w+\((?:scope, )?"(\w+)"', source))
    assert len(names) > 40
    page = " ".join(CODE.findall((ROOT / "docs/reference/web-apis.md").read_text("utf-8")))
    assert not names - set(re.findall(r"\w+", page))


def test_every_built_in_module_is_in_the_reference() -> None:
    source = (ROOT / "web/node/modules.js").read_text("utf-8")
    names = set(re.findall(r'^ +"?([\w/]+)"?: \(\) => ', source, re.MULTILINE))
    assert len(names) > 15
    page = (ROOT / "docs/reference/web-apis.md").read_text("utf-8")
    assert not {name for name in names if f"`node:{name}`" not in page}


def test_every_benchmark_is_run_by_make_bench() -> None:
    runnable = {path.stem for path in (ROOT / "bench").glob("*.py") if "def run(options" in path.read_text("utf-8")}
    assert runnable == set(BENCHES)
