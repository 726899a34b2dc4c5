"""What the documents promise exists: commands, examples, links."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

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
def test_every_make_command_that_is_shown_exists(name: str) -> None:
    shown = " ".join(CODE.findall((ROOT / name).read_text("utf-8")))
    commands = set(re.findall(r"\bmake ([a-z][a-z-]*)", shown))
    assert commands
    assert commands <= TARGETS


def test_every_target_a_user_calls_says_what_it_does() -> None:
    for target in ("setup", "run", "test", "check", "format", "wire", "bench", "bench-peers", "clean"):
        assert re.search(rf"^# .+\n{target}:", MAKEFILE, re.MULTILINE), target


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_an_example_is_whole_and_listed(folder: Path) -> None:
    config = tomllib.loads((folder / "atoll.toml").read_text("utf-8"))
    assert config["name"] == folder.name
    assert (folder / config["main"]).is_file()
    last_block = CODE.findall((folder / "README.md").read_text("utf-8"))[-1]
    curls = [line for line in last_block.splitlines() if "curl " in line]
    assert curls, "the README ends in curl commands"
    assert all(f"{folder.name}.localhost:8080" in line for line in curls)
    assert f"](examples/{folder.name}" in (ROOT / "README.md").read_text("utf-8"), "the README lists every example"


def test_there_are_the_examples_we_promise() -> None:
    assert {"hello-world", "json-api", "service-worker", "streaming"} <= {folder.name for folder in EXAMPLES}


@pytest.mark.parametrize("path", list(documents()), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_between_documents_lead_somewhere(path: Path) -> None:
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
    """The anchors of a document, as GitHub makes them of its headings."""
    titles = re.findall(r"^#+ (.+)$", CODE_FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_page_is_one_link_away_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    pages = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if f"]({page})" not in readme] == []


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
