"""Where `atoll build` writes: over its own output, beside the output of tools, and never over anything else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from atoll.project.build import Builder
from atoll.project.built import Built
from atoll.project.bundle import read_bundle, write_bundle
from atoll.project.model import Project, ProjectError
from atoll.project.read import read_project
from tests.project.conftest import Write

CONFIG = 'name = "a"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n'
FILES = {"atoll.toml": CONFIG, "index.js": "export default {};"}


def made(folder: Path) -> tuple[Project, Built]:
    project = read_project(folder)
    with Builder(project) as builder:
        return project, builder.build()


def test_a_build_overwrites_the_last_one_and_keeps_other_files(write: Write) -> None:
    folder = write(**FILES)
    out = folder / "dist"
    write_bundle(*made(folder), out)
    (out / "notes.txt").write_text("mine")
    (out / "modules/old.js").write_text("of an older build")
    write_bundle(*made(folder), out)
    assert sorted(path.name for path in out.iterdir()) == ["manifest.json", "modules", "notes.txt"]
    assert [path.name for path in (out / "modules").iterdir()] == ["index.js"]
    assert read_bundle(out)[0]["name"] == "a"


def test_an_interrupted_build_is_not_a_bundle_and_is_overwritten(write: Write) -> None:
    folder = write(**FILES)
    project, built = made(folder)
    out = folder / "dist"
    write_bundle(project, built, out)
    unwritable = replace(built.modules[0], path="x" * 300)  # too long for any file system
    with pytest.raises(OSError, match="too long"):
        write_bundle(project, replace(built, modules=(*built.modules, unwritable)), out)
    with pytest.raises(ProjectError, match="its build did not finish"):
        read_bundle(out)
    write_bundle(*made(folder), out)
    assert read_bundle(out)[0]["name"] == "a"


@pytest.mark.parametrize("line", ["dist", "dist/", "/dist", "**/dist/", "dist/*", "project/dist/"])
def test_a_build_may_write_into_an_ignored_folder_with_other_files(write: Write, line: str) -> None:
    folder = write(**FILES, **{"dist/app.css": "body {}"})
    with pytest.raises(ProjectError, match="has files in it and is not a bundle") as refused:
        write_bundle(*made(folder), folder / "dist")
    assert "`dist/` into .gitignore" in refused.value.hint
    assert [path.name for path in (folder / "dist").iterdir()] == ["app.css"]
    (folder.parent if "project" in line else folder).joinpath(".gitignore").write_text(f"# tools\n*.log\n{line}\n")
    write_bundle(*made(folder), folder / "dist")
    assert (folder / "dist/app.css").read_text() == "body {}"
    assert read_bundle(folder / "dist")[0]["name"] == "a"


@pytest.mark.parametrize("line", ["!dist", "dist/app.css", "other/dist", "# dist", "distant"])
def test_an_unrelated_ignore_rule_does_not_allow_a_folder(write: Write, line: str) -> None:
    folder = write(**FILES, **{"dist/app.css": "", ".gitignore": f"{line}\n"})
    with pytest.raises(ProjectError, match="is not a bundle"):
        write_bundle(*made(folder), folder / "dist")


def test_the_output_folder_of_the_build_step_keeps_its_files(write: Write) -> None:
    """`main` is in that folder: a build that emptied it would delete its own sources."""
    config = (
        CONFIG.replace("index.js", "dist/made.js") + '[build]\ncommand = "mkdir -p dist && cp index.js dist/made.js"\n'
    )
    folder = write(**{**FILES, "atoll.toml": config})
    for _ in range(2):
        write_bundle(*made(folder), folder / "dist")
        assert (folder / "dist/made.js").is_file()
        assert read_bundle(folder / "dist")[0]["main"].endswith("made.js")


@pytest.mark.parametrize("name", ["manifest.json", "modules/a.js"])
def test_files_of_the_same_name_from_elsewhere_are_not_overwritten(write: Write, name: str) -> None:
    folder = write(**FILES, **{f"dist/{name}": json.dumps({"name": "a web app"}), ".gitignore": "dist\n"})
    with pytest.raises(ProjectError, match="was not made by `atoll build`"):
        write_bundle(*made(folder), folder / "dist")
    assert json.loads((folder / "dist" / name).read_text()) == {"name": "a web app"}


def test_a_folder_that_is_a_link_is_refused(write: Write, tmp_path: Path) -> None:
    folder = write(**FILES, **{".gitignore": "dist\n"})
    (tmp_path / "elsewhere").mkdir()
    (folder / "dist").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ProjectError, match="is a link to") as refused:
        write_bundle(*made(folder), folder / "dist")
    assert "--out" in refused.value.hint and not list((tmp_path / "elsewhere").iterdir())
    (folder / "dist").unlink()
    write_bundle(*made(folder), folder / "dist")
    (folder / "dist/modules/index.js").unlink()
    (folder / "dist/modules").rmdir()
    (folder / "dist/modules").symlink_to(tmp_path / "elsewhere")
    write_bundle(*made(folder), folder / "dist")  # the link is removed, its target stays
    assert not list((tmp_path / "elsewhere").iterdir()) and read_bundle(folder / "dist")
