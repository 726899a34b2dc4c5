"""`atoll serve`: starts that fail, and the settings that it passes to the node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

import atoll
from atoll.cli.main import main
from atoll.config import FIELDS, Settings, flag_name
from atoll.errors import StartError


class Started(ModuleType):
    """Replaces the node at import and records its arguments."""

    def __init__(self) -> None:
        super().__init__("atoll.serving")
        self.settings: list[Settings] = []
        self.examples: list[list[str]] = []
        self.error: StartError | None = None

    def run(
        self, settings: Settings, greet: object, *, examples: list[str], origins: dict[str, str], **more: object
    ) -> None:
        self.settings.append(settings)
        self.examples.append(examples)
        if self.error is not None:
            raise self.error


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    started = Started()
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("ATOLL_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setitem(sys.modules, "atoll.serving", started)
    monkeypatch.setattr(atoll, "serving", started, raising=False)
    return started


def test_flags_become_settings(app: Started) -> None:
    result = CliRunner().invoke(
        main, ["serve", "--port", "9", "--base-domain", "x.example", "--data", "d", "--example"]
    )
    assert result.exit_code == 0, result.output
    assert app.settings == [Settings(port=9, base_domain="x.example", data=Path("d"))]
    assert app.examples == [["hello-world"]]


def test_without_flags_there_is_no_example(app: Started) -> None:
    assert CliRunner().invoke(main, ["serve"]).exit_code == 0
    assert app.examples == [[]]


def test_file_and_environment_are_read(app: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my.toml").write_text("[node]\nspares = 1")
    monkeypatch.setenv("ATOLL_ENGINES", "3")
    assert CliRunner().invoke(main, ["serve", "--config", "my.toml"]).exit_code == 0
    assert (app.settings[0].spares, app.settings[0].engines) == (1, 3)


def test_a_failed_start_has_a_reason_and_a_hint(app: Started) -> None:
    app.error = StartError("port 8080 is taken", "choose another with --port")
    result = CliRunner().invoke(main, ["serve"])
    assert result.exit_code == 1
    assert result.stderr == "error: port 8080 is taken\nhint: choose another with --port\n"
    assert result.stdout == ""


def test_a_bad_flag_fails_before_the_node_is_imported(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "atoll.cli.main", "serve", "--port", "many"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env={"PYTHONPATH": str(Path(atoll.__file__).parent.parent)},
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[0] == "error: --port is 'many', not a whole number"
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('egress_allow = ["ftp://files.example"]', "egress_allow cannot be used"),
        ('egress_deny = ["a.example:99999"]', "egress_deny cannot be used"),
        ('ca_file = "nowhere.pem"', "ca_file nowhere.pem cannot be used"),
    ],
)
def test_a_value_that_only_the_node_can_check_is_reported_with_its_line(tmp_path: Path, line: str, told: str) -> None:
    (tmp_path / "atoll.toml").write_text(f'[node]\ndata = "d"\n{line}\n')
    done = subprocess.run(
        [sys.executable, "-m", "atoll.cli.main", "serve", "--port", "0"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env={"PYTHONPATH": str(Path(atoll.__file__).parent.parent)},
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert told in done.stderr and "(atoll.toml:3)" in done.stderr and "hint:" in done.stderr


def test_help_shows_every_setting(app: Started) -> None:
    text = CliRunner().invoke(main, ["serve", "--help"]).stdout
    assert all(flag_name(name) in text for name in FIELDS)


def test_the_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(main, ["--version"]).stdout == f"atoll {atoll.__version__}\n"


def test_help_imports_neither_database_nor_web_framework() -> None:
    code = "import sys; from atoll.cli.main import main; main(['serve', '--help'], standalone_mode=False)\n"
    code += "assert not {'apsw', 'starlette', 'msgspec', 'uvloop', 'asyncio'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
