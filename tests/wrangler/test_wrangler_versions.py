"""Versions, deployments, rollback and secrets, by the real wrangler."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.running import Atoll
from tests.wrangler.stock import UUID, Wrangler, check_requests

CONFIG = """
name = "wr-steps"
main = "index.js"
compatibility_date = "2026-01-01"
[vars]
STEP = "1"
"""
SCRIPT = "export default { fetch(request, env) { return Response.json([env.STEP, env.KEY, env.MORE]); } };"


def test_versions_secrets_split_and_rollback(wrangler: Wrangler, strict: Atoll, tmp_path: Path) -> None:
    def run(command: str, sent: str | None = None, **more: str) -> str:
        said = wrangler.run(tmp_path, *command.split(), sent=sent, **more)
        check_requests(" ".join(word for word in command.split() if not UUID.match(word)), wrangler.asked("wr-steps"))
        return said

    (tmp_path / "index.js").write_text(SCRIPT)
    (tmp_path / "wrangler.toml").write_text(CONFIG)
    wrangler.run(tmp_path, "deploy")
    run("secret put KEY", "hush")
    assert strict.get("wr-steps").json == ["1", "hush", None]
    (tmp_path / "more.json").write_text('{"MORE": "loud"}')
    run("secret bulk more.json")
    assert "KEY" in run("secret list")
    assert strict.get("wr-steps").json == ["1", "hush", "loud"]

    (tmp_path / "wrangler.toml").write_text(CONFIG.replace('"1"', '"2"'))
    said = run("versions upload --message second")
    second = re.search(r"Worker Version ID: (\S+)", said)
    assert second is not None
    assert strict.get("wr-steps").json == ["1", "hush", "loud"]  # secrets are in every version
    listed = json.loads(run("versions list --json"))
    first = [each["id"] for each in listed if each["id"] != second[1]][-1]
    assert [each["annotations"].get("workers/message") for each in listed][-1] == "second"
    assert '"STEP"' in run(f"versions view {second[1]} --json")
    run(f"versions deploy {second[1]}@100% -y")
    assert strict.get("wr-steps").json == ["2", "hush", "loud"]
    said = wrangler.run(tmp_path, "versions", "deploy", f"{second[1]}@50%", f"{first}@50%", "-y")
    shown = strict.request(
        "GET", f"localhost:{strict.port}", "/api/workers/wr-steps", None,
        {"Authorization": f"Bearer {wrangler.environment['CLOUDFLARE_API_TOKEN']}"},
    ).json  # fmt: skip
    assert [each["percentage"] for each in shown["traffic"]] == [50, 50]
    wrangler.run(tmp_path, "secret", "put", "KEY", sent="new", fails=True)  # it would end the split
    run(f"rollback {first} -y")
    assert strict.get("wr-steps").json == ["1", "hush", "loud"]
    run("deployments list")
