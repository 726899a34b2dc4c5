"""Every command has --json and prints valid JSON with it. The test runs all of them against a real node."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from tests.certificates import make_authority, make_certificate
from tests.cli.dev_session import ATOLL, environment
from tests.cli.test_projects import run
from tests.cli.test_reference import EVERY_COMMAND
from tests.running import Atoll

# These print something else by design: a script for a shell, and JSON lines.
OTHERWISE = {"atoll completion", "atoll kv export"}
# Need an object of a worker: tests/objects/test_object_console.py has some. And a token: test_wrangler_deploy.py.
ELSEWHERE = {f"atoll objects {command}" for command in ("alarm", "delete", "show", "sockets", "sql")}
ELSEWHERE |= {"atoll profile env"}
# Need a PostgreSQL, which tests/cluster has.
ELSEWHERE |= {
    "atoll migrate into-folder",
    "atoll migrate into-postgres",
    "atoll edge",
    "atoll nodes drain",
    "atoll nodes list",
    "atoll nodes watch",
}
# These keep running and print one line per event.
STAYING = {"atoll dev", "atoll serve", "atoll tail"}
WORKER = """import { WorkflowEntrypoint } from "cloudflare:workers";
export default { fetch() { return new Response('x') }, scheduled() {}, email() {} };
export class Flow extends WorkflowEntrypoint { async run(event, step) { await step.sleep("long", "1 hour"); } }"""
CONFIG = 'name = "cli-json"\nmain = "w.js"\ncompatibility_date = "2026-01-01"\n[triggers]\ncrons = ["0 0 1 1 *"]\n'
CONFIG += '[[d1_databases]]\nbinding = "DB"\ndatabase_name = "cli-json-db"\n'
CONFIG += '[[workflows]]\nbinding = "FLOW"\nname = "cli-json-flow"\nclass_name = "Flow"\n'
CONFIG += '[[analytics_engine_datasets]]\nbinding = "VISITS"\ndataset = "cli-json-visits"\n'

# Ordered so that each command finds what it needs; {…} is a value from an earlier answer.
CALLS = [
    "init hello made",
    "build",
    "types",
    "deploy",
    "bench {url} --requests 10 --connections 2",
    "publish --message again",
    "workers list",
    "errors",
    "top --seconds 0.2",
    "dashboard",
    "workers show cli-json",
    "routes",
    "versions list cli-json",
    "versions upload --preview-alias next",
    "versions unalias next --worker cli-json",
    "versions view 1 --worker cli-json",
    "versions secret put LATER",
    "versions secret bulk secrets.json",
    "versions secret delete LATER",
    "versions secret list",
    "versions deploy 3@10 --worker cli-json --rollback-above 5%",
    "deployments cli-json",
    "pull cli-json",
    "rollback --worker cli-json",
    "logs cli-json",
    "email send lines.eml --worker cli-json --from a@b.example --to c@d.example",
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
    "queues allow-pull cli-json-jobs",
    "queues pause cli-json-jobs",
    "queues resume cli-json-jobs",
    "queues purge cli-json-jobs --yes",
    "kv create cli-json-space",
    "kv namespaces",
    "kv put cli-json-space key value",
    "kv get cli-json-space key",
    "kv keys cli-json-space",
    "kv import cli-json-space lines",
    "kv delete cli-json-space key",
    "kv delete-namespace cli-json-space --yes",
    "r2 bucket create cli-json-bucket",
    "r2 bucket list",
    "r2 bucket info cli-json-bucket",
    "r2 object put cli-json-bucket/key --file w.js",
    "r2 object get cli-json-bucket/key",
    "r2 object head cli-json-bucket/key",
    "r2 object list cli-json-bucket",
    "r2 upload cli-json-bucket made --prefix made/",
    "r2 object delete cli-json-bucket key",
    "r2 bucket public enable cli-json-bucket --yes",
    "r2 bucket public get cli-json-bucket",
    "r2 bucket public disable cli-json-bucket",
    "r2 bucket cors set cli-json-bucket --file cors.json",
    "r2 bucket cors list cli-json-bucket",
    "r2 bucket cors delete cli-json-bucket",
    "r2 bucket lifecycle add cli-json-bucket old --expire-days 1",
    "r2 bucket lifecycle list cli-json-bucket",
    "r2 bucket lifecycle remove cli-json-bucket old",
    "r2 bucket notification create cli-json-bucket --event-type object-create --queue cli-json-jobs",
    "r2 bucket notification delete cli-json-bucket {id}",
    "r2 bucket notification list cli-json-bucket",
    "r2 credentials create backup",
    "r2 credentials delete {access_key_id}",
    "r2 credentials list",
    "r2 bucket delete cli-json-bucket --force --yes",
    "queues delete cli-json-jobs --yes",
    "objects list",
    "d1 create cli-json-other",
    "d1 list",
    "d1 execute cli-json-db --file query.sql",
    "d1 migrations list DB",
    "d1 migrations apply DB",
    "d1 migrations create DB second",
    "d1 time-travel info cli-json-db",
    "d1 time-travel restore cli-json-db --bookmark {bookmark} --yes",
    "d1 export cli-json-db --output out.sql",
    "d1 import cli-json-other out.sql",
    "d1 delete cli-json-other --yes",
    "workflows list",
    "workflows trigger cli-json-flow --id one",
    "workflows instances cli-json-flow",
    "workflows describe cli-json-flow one",
    "workflows pause cli-json-flow one",
    "workflows resume cli-json-flow one",
    "workflows send-event cli-json-flow one go",
    "workflows terminate cli-json-flow one",
    "workflows restart cli-json-flow one",
    "workflows delete cli-json-flow --yes",
    "hyperdrive create cli-json-pg --connection-string postgres://a:b@127.0.0.1:5432/c",
    "hyperdrive update cli-json-pg --connection-string postgres://a:c@127.0.0.1:5432/c",
    "hyperdrive list",
    "hyperdrive delete cli-json-pg --yes",
    "analytics list",
    "analytics sql SELECT(1)",
    "analytics delete cli-json-visits --yes",
    "mtls-certificate upload --cert client.pem --key client.key --name cli-json-bank",
    "mtls-certificate list",
    "mtls-certificate delete cli-json-bank --yes",
    "secrets-store store create cli-json-store",
    "secrets-store store list",
    "secrets-store secret create cli-json-store --name KEY",
    "secrets-store secret update cli-json-store --name KEY",
    "secrets-store secret list cli-json-store",
    "secrets-store secret delete cli-json-store --name KEY --yes",
    "secrets-store store delete cli-json-store --yes",
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
    "profile add here --api http://localhost:1 --no-check",
    "profile list",
    "profile use here",
    "profile remove here",
    "workers delete cli-json --yes",
    "hosts list",
    "hosts release cli-json.localhost",
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
    return next(name for size in (5, 4, 3, 2) if (name := " ".join(words[:size])) in EVERY_COMMAND)


def test_every_command_prints_json(atoll: Atoll, tmp_path: Path) -> None:
    assert {command_of(call) for call in CALLS} | OTHERWISE | ELSEWHERE | STAYING == set(leaves())
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    (tmp_path / "atoll.toml").write_text(CONFIG)
    (tmp_path / "w.js").write_text(WORKER)
    (tmp_path / "secrets.json").write_text('{"ONE": "1"}')
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations/0001_first.sql").write_text("CREATE TABLE notes (text)")
    (tmp_path / "query.sql").write_text("SELECT 1 AS one")
    (tmp_path / "cors.json").write_text(
        '{"rules": [{"allowed": {"origins": ["https://a.example"], "methods": ["GET"]}}]}'
    )
    make_certificate(tmp_path, "client", "client.example", authority=make_authority(tmp_path))
    (tmp_path / "lines").write_text('{"key":"a","value":"b"}\n')
    (tmp_path / "lines.eml").write_text("Subject: x\n\ny\n")
    answer: Any = None
    for call in CALLS:
        words = call.format(**answer) if "{" in call else call
        printed = run(tmp_path, *words.split(), "--json", stdin="value\n", **node).stdout
        assert printed.endswith("\n"), call
        answer = json.loads(printed)
        assert answer is not None, call


def test_errors_are_json_too(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    refused = json.loads(run(tmp_path, "workers", "show", "cli-nobody", "--json", code=1, **node).stderr)["error"]
    assert refused["status"] == 404 and refused["code"] and refused["message"]
    alone = json.loads(run(tmp_path, "versions", "--json", code=1, **node).stderr)["error"]
    assert alone == {
        "message": "no worker is named, and there is no project here",
        "hint": "name it: `atoll versions list NAME`; or run the command in the worker's project",
    }
    assert (
        "no such option"
        in json.loads(run(tmp_path, "logs", "--json", "--wat", code=2).stderr)["error"]["message"].lower()
    )


def test_serve_prints_its_address_for_scripts(tmp_path: Path) -> None:
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
