"""Every command has --json, and what it prints with it is JSON: all of them are called, against a real node."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from tests.cli.dev_session import ATOLL, environment
from tests.cli.test_projects import run
from tests.cli.test_reference import EVERY_COMMAND
from tests.running import Atoll

# What prints something else by its nature: a script for a shell, and lines of JSON anyway.
OTHERWISE = {"atoll completion", "atoll kv export"}
# What stays, and is told by a line per event
STAYING = {"atoll dev", "atoll serve", "atoll tail"}
WORKER = "export default { fetch() { return new Response('x') }, scheduled() {} }"
CONFIG = 'name = "cli-json"\nmain = "w.js"\ncompatibility_date = "2026-01-01"\n[triggers]\ncrons = ["0 0 1 1 *"]\n'

# In an order in which each finds what it needs; {…} is what an earlier answer had.
CALLS = [
    "init hello made",
    "build",
    "types",
    "deploy",
    "publish --message again",
    "workers list",
    "workers show cli-json",
    "routes",
    "versions cli-json",
    "rollback --worker cli-json",
    "logs cli-json",
    "secret put KEY",
    "secret list",
    "secret bulk secrets.json",
    "secret rotate-key",
    "secret delete KEY",
    "cron list cli-json",
    "cron run cli-json",
    "queues create cli-json-jobs",
    "queues list",
    "queues send cli-json-jobs 1",
    "queues pause cli-json-jobs",
    "queues resume cli-json-jobs",
    "queues purge cli-json-jobs --yes",
    "queues delete cli-json-jobs --yes",
    "kv create cli-json-space",
    "kv namespaces",
    "kv put cli-json-space key value",
    "kv get cli-json-space key",
    "kv keys cli-json-space",
    "kv import cli-json-space lines",
    "kv delete cli-json-space key",
    "kv delete-namespace cli-json-space --yes",
    "backup all.tar",
    "restore all.tar --data restored",
    "token list",
    "token create name --scope read",
    "token revoke {id}",
    "tenant create cli-json-tenant",
    "tenant list",
    "tenant set cli-json-tenant --quota workers=1",
    "tenant delete cli-json-tenant",
    "doctor --no-sandbox",
    "config port",
    "profile add here --api http://localhost:1",
    "profile list",
    "profile use here",
    "profile remove here",
    "workers delete cli-json --yes",
]


def leaves() -> Iterator[str]:
    for name, command in EVERY_COMMAND.items():
        if not isinstance(command, click.Group):
            yield name


@pytest.mark.parametrize("name", [name for name in leaves() if name not in OTHERWISE])
def test_every_command_has_the_option(name: str) -> None:
    assert any("--json" in parameter.opts for parameter in EVERY_COMMAND[name].params)


def command_of(call: str) -> str:
    words = f"atoll {call}".split()
    return next(name for size in (3, 2) if (name := " ".join(words[:size])) in EVERY_COMMAND)


def test_every_command_prints_json(atoll: Atoll, tmp_path: Path) -> None:
    assert {command_of(call) for call in CALLS} | OTHERWISE | STAYING == set(leaves())
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    (tmp_path / "atoll.toml").write_text(CONFIG)
    (tmp_path / "w.js").write_text(WORKER)
    (tmp_path / "secrets.json").write_text('{"ONE": "1"}')
    (tmp_path / "lines").write_text('{"key":"a","value":"b"}\n')
    answer: Any = None
    for call in CALLS:
        words = call.format(**answer) if "{" in call else call
        answer = json.loads(run(tmp_path, *words.split(), "--json", **node).stdout)
        assert answer is not None, call


def test_errors_are_json_too(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    refused = json.loads(run(tmp_path, "workers", "show", "cli-nobody", "--json", code=1, **node).stderr)["error"]
    assert refused["status"] == 404 and refused["code"] and refused["message"]
    alone = json.loads(run(tmp_path, "versions", "--json", code=1, **node).stderr)["error"]
    assert alone == {
        "message": "which worker?",
        "hint": "name it with --worker, or call this in the folder of its project",
    }
    assert (
        "no such option"
        in json.loads(run(tmp_path, "logs", "--json", "--wat", code=2).stderr)["error"]["message"].lower()
    )


def test_serve_tells_a_script_where_it_is(tmp_path: Path) -> None:
    command = [ATOLL, "serve", "--json", "--port", "0", "--data", str(tmp_path / "data"), "--engines", "1"]
    with subprocess.Popen(
        command, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as serve:
        assert serve.stdout is not None
        ready = json.loads(serve.stdout.readline())
        assert ready["event"] == "ready" and ready["port"] > 0 and ready["pid"] == serve.pid
        health = run(tmp_path, "workers", "list", "--json", ATOLL_API=f"http://localhost:{ready['port']}")
        assert json.loads(health.stdout) == []
        serve.send_signal(signal.SIGTERM)
        assert serve.stdout.read() == "" and serve.wait(40) == 0
