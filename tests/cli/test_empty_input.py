"""An empty pipe or an unset variable never counts as a value, and a token is checked before it is stored."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from tests.cli.dev_session import SECONDS
from tests.cli.test_projects import run
from tests.cli.test_terminal import Screen
from tests.running import Atoll

WORKER = "export default { fetch(r, env) { return new Response(JSON.stringify([env.KEY, env.X])) } }"


def test_an_empty_secret_is_refused_unless_explicit(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    (tmp_path / "cli-empty.js").write_text(WORKER)
    run(tmp_path, "deploy", "cli-empty.js", "--var", "X=", **node)  # an empty variable is written explicitly
    assert atoll.get("cli-empty").json == [None, ""]
    put = ("secret", "put", "KEY", "--worker", "cli-empty")
    for nothing in ("", "\n", "\r\n", "\n\n", "\r\n\r\n", "\ufeff", "\ufeff\r\n"):
        ran = run(tmp_path, *put, code=1, stdin=nothing, **node)
        assert ran.stderr.startswith("error: the value of KEY is empty, so nothing was stored\nhint: ")
        assert "--allow-empty" in ran.stderr
    assert atoll.get("cli-empty").json == [None, ""]
    for piped, stored in {"a\n": "a", "a\r\n": "a", "a\n\n": "a\n", " ": " ", "\ufeffa\r\n": "a"}.items():
        run(tmp_path, *put, stdin=piped, **node)
        assert atoll.get("cli-empty").json[0] == stored
    run(tmp_path, *put, "--allow-empty", **node)
    assert atoll.get("cli-empty").json[0] == ""


def test_a_secrets_file_with_an_empty_secret_is_refused(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    (tmp_path / "cli-bulk.js").write_text(WORKER)
    run(tmp_path, "deploy", "cli-bulk.js", **node)
    bulk = ("secret", "bulk", "file", "--worker", "cli-bulk")
    (tmp_path / "file").write_text("KEY=k\nX=\n")
    assert "X in file is empty, so nothing was stored" in run(tmp_path, *bulk, code=1, **node).stderr
    assert atoll.get("cli-bulk").json == [None, None]
    run(tmp_path, *bulk, "--allow-empty", **node)
    assert atoll.get("cli-bulk").json == ["k", ""]
    (tmp_path / "file").write_text("# nothing\n")
    assert "file has no secrets" in run(tmp_path, *bulk, code=1, **node).stderr


def test_an_empty_pipe_is_neither_a_kv_value_nor_a_message(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    run(tmp_path, "kv", "create", "cli-empty", **node)
    assert "stdin was empty" in run(tmp_path, "kv", "put", "cli-empty", "key", code=1, **node).stderr
    assert "key" not in run(tmp_path, "kv", "keys", "cli-empty", **node).stdout
    run(tmp_path, "kv", "put", "cli-empty", "key", "", **node)
    run(tmp_path, "kv", "put", "cli-empty", "lines", stdin="a\n", **node)
    assert run(tmp_path, "kv", "get", "cli-empty", "key", **node).stdout == ""
    assert run(tmp_path, "kv", "get", "cli-empty", "lines", **node).stdout == "a\n"
    run(tmp_path, "queues", "create", "cli-empty", **node)
    assert "stdin was empty" in run(tmp_path, "queues", "send", "cli-empty", "--text", code=1, **node).stderr


def test_an_empty_option_is_not_treated_as_absent(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    for option in ("--api", "--token", "--tenant", "--profile"):
        assert f"error: {option} is empty\nhint: " in run(tmp_path, "workers", option, "", code=1, **node).stderr
    (tmp_path / "w.js").write_text(WORKER)
    assert "error: --name is empty\n" in run(tmp_path, "deploy", "w.js", "--name", "", code=1, **node).stderr
    assert "write it like --var" in run(tmp_path, "deploy", "w.js", "--var", "=x", code=1, **node).stderr


def config_of(home: Path) -> str:
    path = home / ".config/atoll/config.toml"
    return path.read_text() if path.exists() else ""


def test_a_profile_is_stored_after_the_node_accepts_its_token(new_atoll: Callable[..., Atoll], tmp_path: Path) -> None:
    node = new_atoll(control_auth="token", engines=1)
    admin = (node.folder / "data" / "admin-token").read_text().strip()
    api = ("--api", f"http://localhost:{node.port}")
    add = ("profile", "add", "home", *api)
    for words, stdin in (((), ""), (("--token", "wrong"), ""), (("--token", "-"), "wrong\n"), (("--token", "-"), "\n")):
        ran = run(tmp_path, *add, *words, code=1, stdin=stdin)
        assert "hint: " in ran.stderr and config_of(tmp_path) == ""
    assert "error: --token is empty\n" in run(tmp_path, *add, "--token", "", code=1).stderr
    ran = run(tmp_path, *add, "--token", "-", stdin=f"{admin}\n")
    assert "all tenants" in ran.stderr and "scopes read, deploy, logs, admin" in ran.stderr
    assert admin not in ran.stderr + ran.stdout
    path = tmp_path / ".config/atoll/config.toml"
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    run(tmp_path, "tenant", "create", "acme")
    made = run(tmp_path, "token", "create", "ci", "--scope", "logs", "--tenant", "acme", "--days", "1").stdout
    told = json.loads(
        run(tmp_path, "profile", "add", "acme 日本 🙂", *api, "--token", "-", "--json", stdin=made).stdout
    )
    assert told["caller"]["tenant"] == "acme" and told["caller"]["scopes"] == ["logs"]
    assert run(tmp_path, "workers", "--token", "-", stdin=f"{admin}\n").returncode == 0
    assert "acme 日本 🙂" in run(tmp_path, "profile", "list").stdout
    other = run(tmp_path, "profile", "add", "x", *api, "--token", "-", "--tenant", "other", code=1, stdin=made)
    assert "nothing was stored: this token is for another tenant" in other.stderr


def test_a_profile_of_a_node_that_is_down_is_stored_on_demand(tmp_path: Path) -> None:
    add = ("profile", "add", "home", "--api", "http://localhost:1", "--token", "t")
    ran = run(tmp_path, *add, code=1)
    assert ran.stderr.startswith("error: nothing was stored: http://localhost:1 does not answer: connection refused\n")
    assert "--no-check" in ran.stderr and config_of(tmp_path) == ""
    assert "was not checked" in run(tmp_path, *add, "--no-check").stderr
    assert 'token = "t"' in config_of(tmp_path)


def test_a_token_and_a_secret_are_not_shown_while_they_are_typed(
    new_atoll: Callable[..., Atoll], tmp_path: Path
) -> None:
    node = new_atoll(control_auth="token", engines=1)
    admin = (node.folder / "data" / "admin-token").read_text().strip()
    api = f"http://localhost:{node.port}"
    screen = Screen(tmp_path, ("profile", "add", "home", "--api", api, "--token", "-"))
    screen.wait_for("Token: ")
    screen.press(f"{admin}\n")
    screen.wait_for("home is http://.*scopes read, deploy, logs, admin")
    assert screen.process.wait(SECONDS) == 0
    (tmp_path / "typed.js").write_text(WORKER)
    run(tmp_path, "deploy", "typed.js")
    second = Screen(tmp_path, ("secret", "put", "KEY", "--worker", "typed"))
    second.wait_for("Value of KEY: ")
    second.press("\n")  # the command asks again
    second.wait_for("(?s)Value of KEY: .*Value of KEY: ")
    second.press("hush\n")
    second.wait_for("KEY is set")
    assert second.process.wait(SECONDS) == 0
    assert admin not in screen.raw and "hush" not in second.raw
    assert node.get("typed").json[0] == "hush"
    os.close(screen.main)
    os.close(second.main)
