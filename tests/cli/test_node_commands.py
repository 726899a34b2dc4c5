"""Commands for operating a node, against a real one: versions, rollback, tail, kv, config, doctor."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.cli.dev_session import ATOLL, environment
from tests.cli.test_projects import run
from tests.running import Atoll


def says(text: str) -> str:
    return f'export default {{ fetch() {{ console.info("say {text}"); return new Response("{text}") }} }}'


def test_rollback_to_the_previous_version_and_to_any_other(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    for word in ("one", "two", "three"):
        (tmp_path / "cli-rolls.js").write_text(says(word))
        run(tmp_path, "deploy", "cli-rolls.js", "--message", f"said {word}", "--tag", word, **node)
    table = run(tmp_path, "versions", "cli-rolls", **node).stdout.splitlines()
    assert [line.split()[0] for line in table[1:]] == ["100%", "2", "1"]
    assert "said two" in table[2]
    ran = run(tmp_path, "rollback", "--worker", "cli-rolls", **node)
    assert ran.stdout == f"http://cli-rolls.localhost:{atoll.port}/\n"
    assert atoll.get("cli-rolls").text == "two"
    run(tmp_path, "rollback", "1", "--worker", "cli-rolls", "--message", "older", **node)
    assert atoll.get("cli-rolls").text == "one"
    active = [
        v["number"] for v in json.loads(run(tmp_path, "versions", "cli-rolls", "--json", **node).stdout) if v["active"]
    ]
    assert active == [1]
    assert "hint: " in run(tmp_path, "rollback", "77", "--worker", "cli-rolls", code=1, **node).stderr


def test_upload_a_version_and_give_it_traffic_step_by_step(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    script, url = tmp_path / "cli-steps.js", f"http://cli-steps.localhost:{atoll.port}/\n"
    script.write_text(says("one"))
    refused = run(tmp_path, "versions", "upload", "cli-steps.js", code=1, **node)
    assert "hint: create it with its first version: atoll deploy" in refused.stderr
    run(tmp_path, "deploy", "cli-steps.js", **node)
    script.write_text(says("two"))
    uploaded = run(tmp_path, "versions", "upload", "cli-steps.js", "--message", "said two", "--tag", "t2", **node)
    host = re.fullmatch(rf"http://([0-9a-f]{{8}}-cli-steps)\.localhost:{atoll.port}/\n", uploaded.stdout)
    assert host is not None and "without traffic" in uploaded.stderr
    assert (atoll.get("cli-steps").text, atoll.get(host[1]).text) == ("one", "two")
    worker = ("--worker", "cli-steps")
    ran = run(tmp_path, "versions", "deploy", "2@12.5%", *worker, "--message", "slowly", **node)
    assert ran.stdout == url and "version 1: 87.5%, version 2: 12.5%" in ran.stderr
    table = run(tmp_path, "versions", "cli-steps", **node).stdout.splitlines()
    assert [line.split()[:2] for line in table[1:]] == [["12.5%", "2"], ["87.5%", "1"]]
    wrong = {
        ("3@10", "2@90"): "`atoll versions list cli-steps` lists them",
        ("2@10", "1@80"): "sum to 90, not 100",
        ("2@10",): "name every version",
        ("2@10", "2@90"): "named twice",
        ("two@10",): "write it like 5, 5@10%",
        ("2@1000",): "write it like 5, 5@10%",
        ("2@x",): "write it like 5, 5@10%",
        ("2@101", "1@0"): "from 0 to 100",
    }
    for shares, text in wrong.items():
        failed = run(tmp_path, "versions", "deploy", *shares, *worker, code=1, **node)
        assert text in failed.stderr and "hint: " in failed.stderr and "Traceback" not in failed.stderr, shares
    ran = run(tmp_path, "versions", "deploy", "2@50", "1", *worker, "--json", **node)
    assert [share["percentage"] for share in json.loads(ran.stdout)["versions"]] == [50, 50]
    run(tmp_path, "versions", "deploy", *worker, **node)
    assert atoll.get("cli-steps").text == "two"
    for number, word in (("1", "one"), ("2", "two")):
        shown = run(tmp_path, "logs", "cli-steps", "--version", number, **node).stdout
        assert f"say {word}" in shown and shown.count("say ") == shown.count(f"say {word}")
    assert "hint: " in run(tmp_path, "logs", "cli-steps", "--version", "99", code=1, **node).stderr
    shown = run(tmp_path, "versions", "view", "2", *worker, **node).stdout
    assert "said two" in shown and "cli-steps.js" in shown and "sha256" in shown
    listed = run(tmp_path, "deployments", "cli-steps", **node).stdout.splitlines()
    assert len(listed) == 5 and listed[1].startswith("*") and "2: 100%" in listed[1] and "slowly" in listed[3]
    run(tmp_path, "rollback", *worker, **node)
    assert atoll.get("cli-steps").text == "one"
    uploaded = run(tmp_path, "versions", "upload", "cli-steps.js", "--preview-alias", "next", **node)
    assert uploaded.stdout == f"http://next-cli-steps.localhost:{atoll.port}/\n"
    assert atoll.get("next-cli-steps").text == "two"
    run(tmp_path, "versions", "unalias", "next", *worker, **node)
    assert atoll.get("next-cli-steps").status == 404
    assert "hint: " in run(tmp_path, "versions", "unalias", "next", *worker, code=1, **node).stderr


def test_tail_shows_calls_as_they_happen(atoll: Atoll, tmp_path: Path) -> None:
    atoll.deploy("cli-tailed", says("hello"))
    command = [ATOLL, "tail", "cli-tailed", "--json", "--api", f"http://localhost:{atoll.port}"]
    with subprocess.Popen(
        command, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as tail:
        assert tail.stdout is not None and tail.stderr is not None
        assert tail.stderr.readline().startswith("listening to cli-tailed")
        atoll.get("cli-tailed", "/seen")
        record = json.loads(tail.stdout.readline())
        assert record["url"].endswith("/seen") and record["logs"][0]["message"] == "say hello"
        tail.send_signal(signal.SIGINT)
        assert "Traceback" not in tail.stderr.read()


def test_tail_shows_console_lines_before_the_call_ends(atoll: Atoll, tmp_path: Path) -> None:
    worker = """
    export default {
      fetch() {
        let n = 0;
        const pull = async (controller) => {
          console.log("piece", ++n);
          controller.enqueue(new Uint8Array([48 + n]));
          await scheduler.wait(20);
        };
        return new Response(new ReadableStream({ pull }));
      },
    };
    """
    atoll.deploy("cli-streams", worker)
    command = [ATOLL, "tail", "cli-streams", "--api", f"http://localhost:{atoll.port}"]
    with subprocess.Popen(
        command, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as tail:
        assert tail.stdout is not None and tail.stderr is not None
        assert tail.stderr.readline().startswith("listening to cli-streams")
        request = urllib.request.Request(
            f"http://127.0.0.1:{atoll.port}/x", headers={"Host": atoll.host("cli-streams")}
        )
        with urllib.request.urlopen(request) as response:
            for n in (1, 2, 3):
                assert response.read(1) == str(n).encode()
                assert re.search(rf"Z  log    GET http://\S+  piece {n}\n", tail.stdout.readline())
        while "piece" in (line := tail.stdout.readline()):
            pass
        assert "canceled  GET http://" in line  # and its lines are not repeated below it
        tail.send_signal(signal.SIGINT)
        assert "piece" not in tail.stdout.read()
        assert "Traceback" not in tail.stderr.read() and tail.wait(40) == 0
    assert "live streams" in atoll.control("GET", "/metrics").text


def test_kv_values_are_stored_and_read_byte_for_byte(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    run(tmp_path, "kv", "create", "cli-space", **node)
    (tmp_path / "value").write_bytes(bytes(range(256)))
    run(tmp_path, "kv", "put", "cli-space", "user:1/a b", "text", "--metadata", '{"x":1}', **node)
    run(tmp_path, "kv", "put", "cli-space", "bytes", "--path", "value", "--ttl", "600", **node)
    assert run(tmp_path, "kv", "get", "cli-space", "user:1/a b", **node).stdout == "text"
    got = subprocess.run(
        [ATOLL, "kv", "get", "cli-space", "bytes"], env=environment(tmp_path) | node, capture_output=True, check=True
    )
    assert got.stdout == bytes(range(256))
    assert run(tmp_path, "kv", "keys", "cli-space", "--prefix", "user:", **node).stdout == "user:1/a b\n"
    exported = run(tmp_path, "kv", "export", "cli-space", **node).stdout
    (tmp_path / "lines").write_text(exported)
    assert "deleted 2 of 2" in run(tmp_path, "kv", "delete", "cli-space", "user:1/a b", "bytes", **node).stderr
    assert "stored 2 entries" in run(tmp_path, "kv", "import", "cli-space", "lines", **node).stderr
    assert {key["name"] for key in json.loads(run(tmp_path, "kv", "keys", "cli-space", "--json", **node).stdout)} == {
        "user:1/a b",
        "bytes",
    }
    assert "cli-space" in run(tmp_path, "kv", "namespaces", **node).stdout
    run(tmp_path, "kv", "delete-namespace", "cli-space", "--yes", **node)
    assert "hint: " in run(tmp_path, "kv", "get", "cli-space", "bytes", code=1, **node).stderr


def test_config_shows_the_source_of_each_setting(tmp_path: Path) -> None:
    (tmp_path / "atoll.toml").write_text("[node]\nspares = 1\nport = 1")
    rows = json.loads(run(tmp_path, "config", "--changed", "--json", ATOLL_PORT="9000").stdout)
    assert {(row["name"], row["value"], row["origin"]) for row in rows} == {
        ("spares", "1", "atoll.toml:2"),
        ("port", "9000", "ATOLL_PORT"),
    }
    assert "there is no setting" in run(tmp_path, "config", "prot", code=1).stderr
    assert "is not a whole number" in run(tmp_path, "config", code=1, ATOLL_PORT="x").stderr.replace(", not", " is not")


def test_doctor_explains_a_cloudflare_project_before_it_runs(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    (tmp_path / "w.js").write_text(says("x"))
    config = 'name = "a"\nmain = "w.js"\ncompatibility_date = "2025-01-01"\ncompatibility_flags = ["strange_flag"]\n'
    (tmp_path / "wrangler.toml").write_text(config + '[[kv_namespaces]]\nbinding = "KV"\nid = "k"\n')
    checks = json.loads(run(tmp_path, "doctor", "--json", **node).stdout)
    found = {(check["about"], check["level"], check["text"].split(":")[0]) for check in checks}
    assert ("project", "ok", "env.KV") in found
    assert (
        "project",
        "note",
        "`compatibility_flags` `strange_flag` is not known to Atoll, so it has no effect",
    ) in found
    assert any(check["text"].startswith("an engine starts; confined by") for check in checks)
    assert any(check["about"] == "node" and "ok, 2 engines, Atoll" in check["text"] for check in checks)
    assert any(check["about"] == "node" and "its engines are confined by" in check["text"] for check in checks)
    with (tmp_path / "wrangler.toml").open("a") as file:
        file.write('[[dispatch_namespaces]]\nbinding = "DB"\nnamespace = "x"\n')
    ran = run(tmp_path, "doctor", "--no-sandbox", code=1, **node)
    assert "✗ `dispatch_namespaces` is not supported: Atoll does not have dispatch namespaces" in ran.stdout


def test_doctor_and_config_query_a_remote_node(new_atoll: Callable[..., Atoll], tmp_path: Path) -> None:
    node = new_atoll(host="0.0.0.0", control_hosts="127.0.0.2", control_auth="token", cpu_ms=77, sandbox="off")
    there = {"ATOLL_API": f"http://127.0.0.2:{node.port}"}
    lines = json.loads(run(tmp_path, "doctor", "--json", **there).stdout)
    assert [(c["level"], c["hint"] != "") for c in lines if c["text"].startswith("/admin/pool")] == [("note", True)]
    admin = {**there, "ATOLL_TOKEN": (node.folder / "data" / "admin-token").read_text().strip()}
    told = [(check["level"], check["text"]) for check in json.loads(run(tmp_path, "doctor", "--json", **admin).stdout)]
    assert not [text for _, text in told if text.startswith("an engine starts")]  # not on this machine
    assert ("warning", "its engines are not confined") in told
    assert any(text.startswith("V8 1") for _, text in told)
    assert any(text.startswith("a call may use: cpu_ms 77, wall_ms 30000") for _, text in told)
    rows = json.loads(run(tmp_path, "config", "cpu_ms", "port", "--api", there["ATOLL_API"], "--json", **admin).stdout)
    assert [(row["name"], row["value"]) for row in rows] == [("port", str(node.port)), ("cpu_ms", "77")]
    assert [row["value"] for row in json.loads(run(tmp_path, "config", "cpu_ms", "--json", **admin).stdout)] == ["50"]
    assert "cpu_ms" in run(tmp_path, "config", "--node", "--changed", **admin).stdout
    gone = run(tmp_path, "doctor", "--json", code=1, ATOLL_API="http://127.0.0.2:1")
    assert [check["level"] for check in json.loads(gone.stdout) if check["about"] == "node"] == ["error"]


def test_a_cron_can_be_run_manually(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    run(tmp_path, "init", "cron", "cli-cron")
    folder = tmp_path / "cli-cron"
    run(folder, "deploy", **node)
    assert atoll.get("cli-cron").text == "last run: never\n"
    run(folder, "cron", "run", "--time", "1790000000000", **node)
    assert atoll.get("cli-cron").text == "last run: 2026-09-21T14:13:20.000Z\n"
    listed = run(folder, "cron", "list", **node).stdout
    assert "*/5 * * * *" in listed and "ok" in listed
    atoll.deploy("cli-cron-bad", "export default { fetch() {}, scheduled() { throw new Error('no') } }")
    assert "it ended with exception: " in run(folder, "cron", "run", "cli-cron-bad", code=1, **node).stderr


def test_messages_are_sent_paused_and_purged(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    run(tmp_path, "queues", "create", "cli-jobs", **node)
    run(tmp_path, "queues", "pause", "cli-jobs", **node)
    run(tmp_path, "queues", "send", "cli-jobs", '{"a": 1}', **node)
    run(tmp_path, "queues", "send", "cli-jobs", "plain", "--text", "--delay", "60", **node)
    assert "is not JSON" in run(tmp_path, "queues", "send", "cli-jobs", "{", code=1, **node).stderr
    [queue] = [
        q for q in json.loads(run(tmp_path, "queues", "list", "--json", **node).stdout) if q["name"] == "cli-jobs"
    ]
    assert (queue["waiting"], queue["delayed"], queue["paused"]) == (1, 1, True)
    run(tmp_path, "queues", "resume", "cli-jobs", **node)
    assert "deleted 2 messages" in run(tmp_path, "queues", "purge", "cli-jobs", "--yes", **node).stderr
    assert "nobody" in run(tmp_path, "queues", "list", **node).stdout
    run(tmp_path, "queues", "delete", "cli-jobs", "--yes", **node)


def test_a_tenant_deploys_with_a_token_of_its_own(new_atoll: Callable[..., Atoll], tmp_path: Path) -> None:
    node = new_atoll(control_auth="token")
    first = (node.folder / "data" / "admin-token").read_text().strip()
    api = {"ATOLL_API": f"http://localhost:{node.port}"}
    admin = {**api, "ATOLL_TOKEN": first}
    assert "hint: " in run(tmp_path, "workers", code=1, **api).stderr
    run(tmp_path, "tenant", "create", "acme", "--quota", "workers=1", **admin)
    assert "there is no quota" in run(tmp_path, "tenant", "set", "acme", "--quota", "x=1", code=1, **admin).stderr
    run(tmp_path, "tenant", "set", "acme", "--quota", "concurrent_calls=5", **admin)
    assert "workers 1, concurrent_calls 5" in run(tmp_path, "tenant", "list", **admin).stdout
    made = run(tmp_path, "token", "create", "ci", "--scope", "deploy", "--days", "1", "--tenant", "acme", **admin)
    mine = {**api, "ATOLL_TOKEN": made.stdout.strip()}
    (tmp_path / "w.js").write_text(says("acme"))
    run(tmp_path, "deploy", "w.js", "--name", "acme-shop", **mine)
    assert node.get("acme-shop").text == "acme"
    assert "acme-shop.localhost/*" in run(tmp_path, "routes", **mine).stdout
    assert "acme-shop" not in run(tmp_path, "workers", **admin).stdout
    assert "acme-shop" in run(tmp_path, "workers", "list", "--tenant", "acme", **admin).stdout
    run(tmp_path, "deploy", "w.js", "--name", "one-too-many", code=1, **mine)
    [token] = [
        each for each in json.loads(run(tmp_path, "token", "list", "--json", **admin).stdout) if each["name"] == "ci"
    ]
    run(tmp_path, "token", "revoke", token["id"], **admin)
    run(tmp_path, "workers", code=1, **mine)
    run(tmp_path, "workers", "delete", "acme-shop", "--yes", "--tenant", "acme", **admin)
    run(tmp_path, "tenant", "delete", "acme", **admin)


def test_secrets_can_be_set_but_never_read(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    (tmp_path / "cli-secret.js").write_text("export default { fetch(r, env) { return new Response(env.KEY + env.B) } }")
    run(tmp_path, "deploy", "cli-secret.js", **node)
    (tmp_path / "secrets.json").write_text('{"KEY": "k", "B": "b"}')
    assert "2 secrets are set" in run(tmp_path, "secret", "bulk", "secrets.json", "-w", "cli-secret", **node).stderr
    assert atoll.get("cli-secret").text == "kb"
    subprocess.run(
        [ATOLL, "secret", "put", "KEY", "--worker", "cli-secret"],
        env=environment(tmp_path) | node,
        input=b"from stdin\n",
        capture_output=True,
        check=True,
    )
    run(tmp_path, "deploy", "cli-secret.js", **node)  # secrets survive a deploy
    assert atoll.get("cli-secret").text == "from stdinb"
    assert "encrypted with root key" in run(tmp_path, "secret", "rotate-key", **node).stderr
    assert atoll.get("cli-secret").text == "from stdinb"
    listed = run(tmp_path, "secret", "list", "--worker", "cli-secret", **node).stdout
    assert "KEY" in listed and "stdin" not in listed
    run(tmp_path, "secret", "delete", "B", "--worker", "cli-secret", **node)
    assert atoll.get("cli-secret").text == "from stdinundefined"
    assert "hint: " in run(tmp_path, "secret", "delete", "B", "--worker", "cli-secret", code=1, **node).stderr


def test_advice_of_the_node_is_shown_as_commands(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    advice = {
        ("versions", "nobody"): "`atoll workers` lists the workers; `atoll deploy` creates one",
        ("workers", "--tenant", "nobody"): "`atoll tenant list` lists the tenants",
        ("kv", "keys", "nothing"): "`atoll kv namespaces` lists the namespaces; `atoll kv create` creates one",
        ("queues", "pause", "nothing"): "`atoll queues list` lists the queues",
        ("token", "revoke", "nothing"): "`atoll token list` lists the tokens",
    }
    for words, hint in advice.items():
        assert run(tmp_path, *words, code=1, **node).stderr.splitlines()[-1] == f"hint: {hint}"
    assert json.loads(run(tmp_path, "workers", "--json", **node).stdout) is not None
    gone = run(tmp_path, "workers", "--api", "http://localhost:1", code=1).stderr
    assert gone.startswith("error: http://localhost:1 does not answer: connection refused\nhint: ")


def test_an_invalid_address_or_token_is_reported(atoll: Atoll, tmp_path: Path) -> None:
    for api in ("http://localhost:99999", "http://[::1", "http://", "ftp://x", "localhost:8080"):
        ran = run(tmp_path, "workers", "--api", api, code=1)
        how = "with its scheme: http://localhost:8080 or https://localhost:8080"
        hint = how if api == "localhost:8080" else "like https://atoll.example"
        told = f"error: the address of the node is {api.rstrip('/')}, which is not a URL\nhint: write it {hint}\n"
        assert ran.stderr == told
        assert "which is not a URL" in run(tmp_path, "profile", "add", "x", "--api", api, code=1).stderr
    for token in ("a\nb", "日本"):
        ran = run(tmp_path, "workers", "--api", f"http://localhost:{atoll.port}", "--token", token, code=1)
        assert ran.stderr.startswith("error: the token or the tenant has characters that cannot be sent\nhint: ")
