"""`wrangler whoami`, `deploy` and `delete`, by the real wrangler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.running import Atoll
from tests.wrangler.stock import Wrangler, check_requests

CONFIG = """
name = "wr-hello"
main = "index.js"
compatibility_date = "2026-01-01"
routes = [{ pattern = "wr-hello.example.com/api/*", zone_name = "example.com" }]
unsafe.metadata.not_known_yet = { a = [1, 2] }
[vars]
GREETING = "hi"
NUMBERS = { a = 1 }
[[kv_namespaces]]
binding = "KV"
id = "wr-hello-ns"
"""
SCRIPT = """export default {
  async fetch(request, env) {
    await env.KV.put("a", "1");
    return Response.json([env.GREETING, env.NUMBERS, await env.KV.get("a"), env.SECRET]);
  },
};"""


def project(folder: Path, config: str, script: str = SCRIPT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "wrangler.toml").write_text(config)
    (folder / "index.js").write_text(script)
    return folder


def test_whoami_shows_the_tenant(wrangler: Wrangler, tmp_path: Path) -> None:
    said = wrangler.run(tmp_path, "whoami", CLOUDFLARE_ACCOUNT_ID="")
    assert "default" in said and wrangler.account in said
    check_requests("whoami", wrangler.asked())


def test_profile_env_prints_what_wrangler_needs(strict: Atoll, token: str, wrangler: Wrangler) -> None:
    command = [Path(sys.executable).parent / "atoll", "profile", "env", "--api", f"http://localhost:{strict.port}"]
    said = subprocess.run([*command, "--token", token, "--json"], capture_output=True, text=True, check=True).stdout
    values = json.loads(said)
    assert values["CLOUDFLARE_ACCOUNT_ID"] == wrangler.account and values["CLOUDFLARE_API_TOKEN"] == token
    assert values["CLOUDFLARE_API_BASE_URL"] == f"http://localhost:{strict.port}/client/v4"
    lines = subprocess.run([*command, "--token", token], capture_output=True, text=True, check=True).stdout
    assert f"export CLOUDFLARE_ACCOUNT_ID={wrangler.account}" in lines


def test_a_worker_is_deployed_twice_and_deleted(wrangler: Wrangler, strict: Atoll, tmp_path: Path) -> None:
    folder = project(tmp_path, CONFIG)
    said = wrangler.run(folder, "deploy")
    assert "Current Version ID" in said and "wr-hello.example.com/api/*" in said
    check_requests("deploy, first", wrangler.asked("wr-hello"))
    answer = ["hi", {"a": 1}, "1", None]
    assert strict.get("wr-hello").json == answer
    assert strict.request("GET", "wr-hello.example.com", "/api/x").status == 200
    (folder / "wrangler.toml").write_text(CONFIG.replace('"hi"', '"again"'))
    wrangler.run(folder, "deploy")
    check_requests("deploy, second", wrangler.asked("wr-hello"))
    assert strict.get("wr-hello").json[0] == "again"
    wrangler.run(folder, "delete", "--force")
    check_requests("delete", wrangler.asked("wr-hello"))
    assert strict.get("wr-hello").status == 404
    assert "10007" in wrangler.run(folder, "versions", "list", fails=True)


def test_a_mistake_in_the_script_is_shown_with_its_place(wrangler: Wrangler, tmp_path: Path) -> None:
    folder = project(
        tmp_path, CONFIG.replace("wr-hello", "wr-wrong"), "export default {};\nthrow new Error('at start');"
    )
    said = wrangler.run(folder, "deploy", fails=True)
    assert "at start" in said and "10021" in said and "index.js:" in said
