"""Rollback rules and `atoll versions secret`, against a real node."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from atoll.cli.main import main
from tests.cli.test_projects import run
from tests.running import Atoll

FAILS = 'export default { fetch() { throw new Error("as planned") } }'


def test_a_deploy_that_fails_is_rolled_back(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    script, rule = tmp_path / "cli-rule.js", ("--rollback-above", "5%", "--rollback-min-requests", "3")
    script.write_text('export default { fetch() { return new Response("fine") } }')
    first = run(tmp_path, "deploy", "cli-rule.js", *rule, **node)
    assert "warning: the first deployment has nothing to return to" in first.stderr
    script.write_text(FAILS)
    ran = run(tmp_path, "deploy", "cli-rule.js", *rule, "--rollback-window", "5s", "--rollback-for", "1h", **node)
    said = (
        r"until \S+Z it returns to deployment 1 if more than 5% of the requests to version 2 fail, of at least 3 in 5 s"
    )
    assert re.search(said, ran.stderr)
    atoll.wait_until(lambda: atoll.get("cli-rule").text == "fine")
    table = run(tmp_path, "deployments", "cli-rule", **node).stdout.splitlines()
    assert re.search(r"1: 100% .*rolled back automatically: \d+ of \d+ requests to version 2 failed", table[1])
    assert "above 5%: rolled back" in table[2]
    ran = run(tmp_path, "versions", "deploy", "2@10%", "-w", "cli-rule", *rule, **node)
    assert "it returns to deployment 3" in ran.stderr
    ran = run(tmp_path, "versions", "deploy", "1", "-w", "cli-rule", *rule, code=1, **node)
    assert "no earlier deployment" in ran.stderr and "hint: " in ran.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--rollback-window", "60s"], "--rollback-window needs --rollback-above"),
        (["--rollback-for", "60s"], "--rollback-for needs --rollback-above"),
        (["--rollback-min-requests", "5"], "--rollback-min-requests needs --rollback-above"),
        (["--rollback-above", "many"], "write a percentage like 5%"),
        (["--rollback-above", "5", "--rollback-window", "1 minute"], "write a time like 90s"),
    ],
)
def test_a_rule_that_is_not_one_is_refused(words: list[str], says: str) -> None:
    ran = CliRunner().invoke(main, ["versions", "deploy", "1", "-w", "x", *words])
    assert ran.exit_code == 1 and says in ran.stderr and "hint: " in ran.stderr


def test_secrets_change_in_a_version_without_traffic(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    (tmp_path / "cli-keys.js").write_text("export default { fetch(_, env) { return Response.json(env) } }")
    (tmp_path / "more.env").write_text("TWO=2\nTHREE=3\n")
    worker = ("--worker", "cli-keys")
    run(tmp_path, "deploy", "cli-keys.js", **node)
    ran = run(tmp_path, "versions", "secret", "put", "ONE", *worker, "-m", "why", stdin="1\n", **node)
    assert "stored version 2 of cli-keys" in ran.stderr and "without traffic" in ran.stderr
    run(tmp_path, "versions", "secret", "bulk", "more.env", *worker, **node)
    run(tmp_path, "versions", "secret", "delete", "TWO", *worker, **node)
    assert json.loads(atoll.get("cli-keys").text) == {}
    lost = run(tmp_path, "versions", "upload", "cli-keys.js", **node)
    assert "warning: version 4 has other values of the secrets ONE, THREE" in lost.stderr
    run(tmp_path, "versions", "deploy", "4", *worker, **node)
    assert json.loads(atoll.get("cli-keys").text) == {"ONE": "1", "THREE": "3"}
    listed = run(tmp_path, "versions", "secret", "list", *worker, **node).stdout.splitlines()
    assert [line.split()[:3] for line in listed[1:]] == [["4", "100%", "ONE"], ["4", "100%", "THREE"]]
    shown = json.loads(run(tmp_path, "versions", "secret", "list", "--version", "3", *worker, "--json", **node).stdout)
    assert [secret["name"] for secret in shown[0]["secrets"]] == ["ONE", "THREE", "TWO"]
    refused = run(tmp_path, "versions", "secret", "delete", "FOUR", *worker, code=1, **node)
    assert "has no secret `FOUR`" in refused.stderr and "hint: " in refused.stderr
    empty = run(tmp_path, "versions", "secret", "put", "ONE", *worker, code=1, **node)
    assert "the value of ONE is empty" in empty.stderr
