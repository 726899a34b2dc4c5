"""Configs that are nearly right: accepted if the meaning is clear, otherwise refused with a hint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from atoll.cli.main import main
from atoll.project.build import Builder
from atoll.project.model import ProjectError
from atoll.project.read import read_project

WORKER = "export default { fetch() { return new Response('hi'); } };\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "worker.js").write_text(WORKER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def configure(folder: Path, text: str) -> None:
    (folder / "wrangler.toml").write_text(f'name = "odd"\n{text}\n')


def test_a_date_without_quotes_is_read_as_text(folder: Path) -> None:
    configure(
        folder, 'main = "worker.js"\ncompatibility_date = 2026-01-31\n[vars]\nDAY = { at = 2026-02-01T10:00:00Z }'
    )
    project = read_project(folder, "")
    assert project.compatibility_date == "2026-01-31"
    assert project.vars == {"DAY": {"at": "2026-02-01T10:00:00+00:00"}}
    assert CliRunner().invoke(main, ["build"]).exit_code == 0
    assert json.loads((folder / "dist" / "manifest.json").read_text())["compatibility_date"] == "2026-01-31"


def test_a_failed_build_keeps_the_previous_bundle(folder: Path) -> None:
    configure(folder, 'main = "worker.js"')
    assert CliRunner().invoke(main, ["build"]).exit_code == 0
    before = (folder / "dist" / "manifest.json").read_bytes()
    configure(folder, 'main = "worker.js"\n[vars]\nRATIO = nan')
    ran = CliRunner().invoke(main, ["build"])
    assert (ran.exit_code, ran.stderr.splitlines()[-1]) == (1, "hint: write it as a string")
    assert (folder / "dist" / "manifest.json").read_bytes() == before
    assert (folder / "dist" / "modules" / "worker.js").read_text() == WORKER


def test_a_script_made_by_the_build_step_need_not_exist_before(folder: Path) -> None:
    step = "mkdir -p out && cp worker.js out/made.js"
    configure(folder, f'main = "out/made.js"\n[build]\ncommand = "{step}"')
    with Builder(read_project(folder, "")) as builder:
        assert builder.build().modules[0].source.decode() == WORKER


def test_a_build_step_that_does_not_make_the_script_is_reported(folder: Path) -> None:
    configure(folder, 'main = "out/made.js"\n[build]\ncommand = "true"')
    with (
        Builder(read_project(folder, "")) as builder,
        pytest.raises(ProjectError, match=r"out/made\.js, but the build step does not make it"),
    ):
        builder.build()


@pytest.mark.parametrize("text", ["main = 3", 'main = "worker.js"\nenv = 3', 'main = "worker.js"\n[env]\nstaging = 3'])
def test_a_field_of_the_wrong_shape_has_a_hint(folder: Path, text: str) -> None:
    configure(folder, text)
    with pytest.raises(ProjectError, match="is invalid") as error:
        read_project(folder, "")
    assert error.value.hint


def test_doctor_reports_what_a_node_would_refuse(folder: Path) -> None:
    config = 'name = "No Name"\nmain = "worker.js"\ncompatibility_date = "tomorrow"\n[triggers]\ncrons = ["x"]\n'
    (folder / "wrangler.toml").write_text(f'{config}[vars]\n"a b" = "c"\n')
    ran = CliRunner().invoke(main, ["doctor", "--no-sandbox", "--json", "--api", "http://127.0.0.1:9"])
    found = [check for check in json.loads(ran.stdout) if check["about"] == "project" and check["level"] == "error"]
    assert [check["text"] for check in found] == [
        "a worker cannot be named 'No Name'",
        "`compatibility_date` is 'tomorrow', not a date",
        "`env` has a variable named 'a b'",
        "`crons` has 'x'",
    ]
    assert all(check["hint"] for check in found)
