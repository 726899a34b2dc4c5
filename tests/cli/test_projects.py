"""init, build and profile as a user calls them: real processes, looked at from outside."""

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


def run(folder: Path, *words: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder`; it must end with `code`, and never with a traceback."""
    home = {"HOME": str(folder), "ATOLL_ESBUILD": str(ESBUILD), "PATH": os.environ["PATH"]}
    ran = subprocess.run(
        [ATOLL, *words], cwd=folder, env=home | more, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    return ran


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_builds(tmp_path: Path, template: str) -> None:
    written = run(tmp_path, "init", template, "my-app", "--no-install").stdout.split()
    assert "my-app/atoll.toml" in written
    if "my-app/package.json" in written:  # what npm would have fetched is here already
        (tmp_path / "my-app/node_modules").symlink_to(ROOT / "node_modules")
    ran = run(tmp_path / "my-app", "build", "--json")
    manifest = json.loads(ran.stdout)
    assert manifest["name"] == "my-app"
    assert (tmp_path / "my-app/dist/modules" / manifest["main"]).is_file()


def test_what_init_says_next_can_be_pasted_whatever_the_folder_is_called(tmp_path: Path) -> None:
    said = run(tmp_path, "init", "hello", "my first worker").stderr
    assert "\n  cd 'my first worker'\n" in said


def test_init_never_writes_over_a_project(tmp_path: Path) -> None:
    run(tmp_path, "init", "hello")
    ran = run(tmp_path, "init", "hello", code=1)
    assert ran.stderr == "error: hello exists and is not empty\nhint: name another folder\n"
    assert "the templates are" in run(tmp_path, "init", "helo", code=1).stderr


def test_a_build_that_fails_shows_the_place_and_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "worker.ts").write_text("export default {\n  fetch() { return = 1 }\n}\n")
    ran = run(tmp_path, "build", "worker.ts", code=1)
    assert ran.stdout == ""
    assert ran.stderr.startswith("error: Expression expected\n    worker.ts:2:20\n")
    assert "  > 2 |   fetch() { return = 1 }" in ran.stderr


def test_a_part_that_is_not_there_ends_the_build_unless_it_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "worker.js").write_text("export default { fetch() { return new Response() } }")
    config = 'name = "a"\nmain = "worker.js"\ncompatibility_date = "2025-01-01"\naccount_id = "x"\n'
    (tmp_path / "wrangler.toml").write_text(config + '[ai]\nbinding = "AI"\n')
    ran = run(tmp_path, "build", code=1)
    assert ran.stderr.splitlines() == [
        "warning: `account_id` is ignored: a node of your own has no account",
        "error: `ai` is not supported: it is a service of Cloudflare's, reach it with fetch",
        "error: `ai` cannot be had here",
        "hint: leave it out, or go on without it: --allow-missing-bindings",
    ]
    assert run(tmp_path, "build", "--allow-missing-bindings").stdout == "dist\n"


def test_colours_are_for_terminals_and_for_those_who_force_them(tmp_path: Path) -> None:
    assert "\x1b" not in run(tmp_path, "build", code=1).stderr
    assert "\x1b" in run(tmp_path, "build", code=1, FORCE_COLOR="1").stderr
    assert "\x1b" not in run(tmp_path, "build", code=1, FORCE_COLOR="1", NO_COLOR="1").stderr


def test_profiles_name_nodes_and_keep_their_tokens_to_themselves(tmp_path: Path) -> None:
    run(tmp_path, "profile", "add", "home", "--api", "http://127.0.0.1:1", "--token", "secret")
    run(tmp_path, "profile", "add", "work", "--api", "http://127.0.0.1:2")
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


def test_a_port_that_is_none_is_told_wherever_it_stands(tmp_path: Path) -> None:
    (tmp_path / "worker.js").write_text("export default { fetch() { return new Response() } }")
    assert "65535" in run(tmp_path, "dev", "worker.js", "--port", "99999", code=2).stderr
    (tmp_path / "atoll.toml").write_text('main = "worker.js"\n[dev]\nport = 99999\n')
    assert "error: `dev.port` is 99999\nhint: ports are" in run(tmp_path, "dev", code=1).stderr


def test_a_file_that_is_no_project_is_told_and_its_bytes_are_not_obeyed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    assert (
        "is neither a script nor a config\nhint: scripts end in" in run(tmp_path, "build", "notes.txt", code=1).stderr
    )
    (tmp_path / "worker.js").write_text("let \x1b[2J\x07 = 1;")
    shown = run(tmp_path, "build", "worker.js", code=1).stderr
    assert "  > 1 | let " in shown and "\x1b" not in shown and "\x07" not in shown


def test_a_command_that_does_not_exist_has_a_near_one(tmp_path: Path) -> None:
    assert "did you mean `build`?" in run(tmp_path, "biuld", code=2).stderr


def test_a_shell_can_complete_commands(tmp_path: Path) -> None:
    assert "_ATOLL_COMPLETE" in run(tmp_path, "completion", "bash").stdout
    asked = {"_ATOLL_COMPLETE": "bash_complete", "COMP_WORDS": "atoll bu", "COMP_CWORD": "1"}
    assert "build" in run(tmp_path, **asked).stdout


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    """Commands and what they need are imported when they are called."""
    heavy = {"asyncio", "msgspec", "starlette", "apsw", "uvloop", "watchfiles", "prometheus_client", "cryptography"}
    script = "import sys; from atoll.cli.main import main; sys.argv = ['atoll', '--help']\n"
    script += f"try: main()\nexcept SystemExit: print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stderr == "[]\n" and "Start a project from a template" in ran.stdout
