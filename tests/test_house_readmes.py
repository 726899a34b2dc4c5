"""The READMEs of rooms with many files list every existing file and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| `([^`]+)` \| (.+) \|$", re.MULTILINE)


def listed(readme: Path) -> list[str]:
    """The files in the tables of a README, each with its job."""
    return sorted(name for name, job in ROW.findall(readme.read_text("utf-8")) if job.strip())


def files(folder: Path, *endings: str) -> list[str]:
    found = (path for path in folder.rglob("*") if path.suffix in endings)
    return sorted(path.relative_to(folder).as_posix() for path in found)


def test_the_readme_of_web_lists_every_file() -> None:
    assert listed(ROOT / "web/README.md") == files(ROOT / "web", ".js")


def test_the_readme_of_the_bindings_lists_every_file() -> None:
    endings = (".py", ".js", ".mjs", ".sql", ".ts", ".toml")
    assert listed(ROOT / "atoll/bindings/README.md") == files(ROOT / "atoll/bindings", *endings)


def test_the_readme_of_the_engine_lists_every_file() -> None:
    names = [name for row in listed(ROOT / "engine/README.md") for name in spelled_out(row)]
    assert sorted(name for name in names if name.endswith((".h", ".cc"))) == files(ROOT / "engine/src", ".h", ".cc")


def spelled_out(name: str) -> list[str]:
    """Expands braces: `stem.{h,cc}` is two files."""
    stem, _, endings = name.rstrip("}").partition("{")
    return [stem + ending for ending in endings.split(",")]


def test_every_file_of_the_engine_is_in_a_folder() -> None:
    assert [path.name for path in (ROOT / "engine/src").iterdir() if path.is_file()] == []
