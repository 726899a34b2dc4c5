"""init, build and profile as a user calls them: real processes, checked from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.cli.init import TEMPLATES
from tests.project.conftest import ESBUILD, ROOT

ATOLL = str(Path(sys.executable).parent / "atoll")


def run(folder: Path, *words: str, code: int = 0, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in `folder`; it must end with `code` and without a traceback."""
    home = {"HOME": str(folder), "ATOLL_ESBUILD": str(ESBUILD), "PATH": os.environ["PATH"]}
    ran = subprocess.run(
        [ATOLL, *words], cwd=folder, env=home | more, capture_output=True, text=True, timeout=120, check=False,
        input=stdin,
    )  # fmt: skip
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    return ran


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_builds(tmp_path: Path, template: str) -> None:
    written = run(tmp_path, "init", template, "my-app", "--no-install").stdout.split()
    assert "my-app/atoll.toml" in written
    if "my-app/package.json" in written:  # the packages are already here, so npm is not needed
        (tmp_path / "my-app/node_modules").symlink_to(ROOT / "node_modules")
    ran = run(tmp_path / "my-app", "build", "--json")
    manifest = json.loads(ran.stdout)
    assert manifest["name"] == "my-app"
    assert (tmp_path / "my-app/dist/modules" / manifest["main"]).is_file()


def test_the_next_steps_of_init_can_be_pasted_for_any_folder_name(tmp_path: Path) -> None:
    said = run(tmp_path, "init", "hello", "my first worker").stderr
    assert "\n  cd 'my first worker'\n" in said


def test_init_never_overwrites_a_project(tmp_path: Path) -> None:
    run(tmp_path, "init", "hello")
    ran = run(tmp_path, "init", "hello", code=1)
    assert ran.stderr == "error: hello exists and is not empty\nhint: name another folder\n"
    assert "the templates are" in run(tmp_path, "init", "helo", code=1).stderr


def test_a_failed_build_shows_the_position_and_exits_with_1(tmp_path: Path) -> None:
    (tmp_path / "worker.ts").write_text("export default {\n  fetch() { return = 1 }\n}\n")
    ran = run(tmp_path, "build", "worker.ts", code=1)
    assert ran.stdout == ""
    assert ran.stderr.startswith("error: Expression expected\n    worker.ts:2:20\n")
    assert "  > 2 |   fetch() { return = 1 }" in ran.stderr


def test_a_missing_feature_fails_the_build_unless_it_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "worker.js").write_text("export default { fetch() { return new Response() } }")
    config = 'name = "a"\nmain = "worker.js"\ncompatibility_date = "2025-01-01"\naccount_id = "x"\n'
    (tmp_path / "wrangler.toml").write_text(config + '[browser]\nbinding = "BROWSER"\n')
    ran = run(tmp_path, "build", code=1)
    assert ran.stderr.splitlines() == [
        "note: `account_id` is ignored: a node of your own has no accounts",
        "error: `browser` is not supported: it is a Cloudflare service: call its API with fetch",
        "error: Atoll does not have `browser`",
        "hint: remove it from the config, or go on without it: --allow-missing-bindings",
    ]
    assert run(tmp_path, "build", "--allow-missing-bindings").stdout == "dist\n"


def test_colours_are_used_in_terminals_or_when_forced(tmp_path: Path) -> None:
    assert "\x1b" not in run(tmp_path, "build", code=1).stderr
    assert "\x1b" in run(tmp_path, "build", code=1, FORCE_COLOR="1").stderr
    assert "\x1b" not in run(tmp_path, "build", code=1, FORCE_COLOR="1", NO_COLOR="1").stderr


def test_profiles_name_nodes_and_never_show_tokens(tmp_path: Path) -> None:
    run(tmp_path, "profile", "add", "home", "--api", "http://127.0.0.1:1", "--token", "secret", "--no-check")
    run(tmp_path, "profile", "add", "work", "--api", "http://127.0.0.1:2", "--no-check")
    path = tmp_path / ".config/atoll/config.toml"
    assert path.stat().st_mode & 0o777 == 0o600
    listed = run(tmp_path, "profile", "list")
    assert "secret" not in listed.stdout and "home" in listed.stdout
    assert "http://127.0.0.1:1 does not answer" in run(tmp_path, "workers", code=1).stderr
    assert "http://127.0.0.1:2 does not answer" in run(tmp_path, "workers", "list", "--profile", "work", code=1).stderr
    run(tmp_path, "profile", "use", "work")
    run(tmp_path, "profile", "remove", "home")
    assert json.loads(run(tmp_path, "profile", "list", "--json").stdout) == [
        {"name": "work", "api": "http://127.0.0.1:2", "token": False, "default": True}
    ]
    assert "there is no profile `home`" in run(tmp_path, "workers", "list", "--profile", "home", code=1).stderr


def test_an_invalid_port_is_reported_wherever_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "worker.js").write_text("export default { fetch() { return new Response() } }")
    assert "65535" in run(tmp_path, "dev", "worker.js", "--port", "99999", code=2).stderr
    (tmp_path / "atoll.toml").write_text('main = "worker.js"\n[dev]\nport = 99999\n')
    assert "error: `dev.port` is 99999\nhint: ports are" in run(tmp_path, "dev", code=1).stderr


def test_a_file_that_is_not_a_project_is_reported_with_escaped_bytes(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    assert (
        "is neither a script nor a config\nhint: scripts end in" in run(tmp_path, "build", "notes.txt", code=1).stderr
    )
    (tmp_path / "worker.js").write_text("let \x1b[2J\x07 = 1;")
    shown = run(tmp_path, "build", "worker.js", code=1).stderr
    assert "  > 1 | let " in shown and "\x1b" not in shown and "\x07" not in shown


def test_an_unknown_command_gets_a_suggestion(tmp_path: Path) -> None:
    assert "did you mean `atoll build`?" in run(tmp_path, "biuld", code=2).stderr


def test_a_shell_can_complete_commands(tmp_path: Path) -> None:
    assert "_ATOLL_COMPLETE" in run(tmp_path, "completion", "bash").stdout
    asked = {"_ATOLL_COMPLETE": "bash_complete", "COMP_WORDS": "atoll bu", "COMP_CWORD": "1"}
    assert "build" in run(tmp_path, **asked).stdout


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    """A command and its dependencies are imported when it is called."""
    heavy = {"asyncio", "msgspec", "starlette", "apsw", "uvloop", "watchfiles", "prometheus_client", "cryptography"}
    script = "import sys; from atoll.cli.main import main; sys.argv = ['atoll', '--help']\n"
    script += f"try: main()\nexcept SystemExit: print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stderr == "[]\n" and "Create a project from a template" in ran.stdout
