"""Workflows, by the real wrangler: deploy, trigger, describe, events, changes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.running import Atoll
from tests.wrangler.stock import Wrangler, check_requests

CONFIG = """
name = "wr-flows"
main = "index.js"
compatibility_date = "2026-01-01"
[[workflows]]
binding = "FLOW"
name = "wr-flow"
class_name = "Flow"
limits = { steps = 50 }
"""
SCRIPT = """
import { WorkflowEntrypoint } from "cloudflare:workers";
export class Flow extends WorkflowEntrypoint {
  async run(event, step) {
    const first = await step.do("double", () => event.payload.n * 2);
    await step.sleep("short", 1);
    const { payload } = await step.waitForEvent("go", { type: "go" });
    return [first, payload];
  }
}
export default { async fetch(request, env) { return Response.json(await (await env.FLOW.get("w1")).status()); } };
"""


def test_workflows_round_trip(wrangler: Wrangler, strict: Atoll, tmp_path: Path) -> None:
    def run(command: str, *more: str) -> str:
        said = wrangler.run(tmp_path, *command.split(), *more)
        check_requests(" ".join(command.split()[:3]), wrangler.asked("wr-flows", "wr-flow", "w1"))
        return said

    (tmp_path / "wrangler.toml").write_text(CONFIG)
    (tmp_path / "index.js").write_text(SCRIPT)
    for _ in range(2):
        wrangler.run(tmp_path, "deploy")
    assert "wr-flow" in run("workflows list")
    assert "Flow" in run("workflows describe wr-flow")
    assert "w1" in run("workflows trigger wr-flow", json.dumps({"n": 4}), "--id", "w1")
    strict.wait_until(lambda: strict.get("wr-flows").json["status"] == "waiting", 30)
    said = run("workflows instances describe wr-flow latest")
    assert "double-1" in said and "Waiting for event" in said and "8" in said
    run("workflows instances pause wr-flow w1")
    strict.wait_until(lambda: strict.get("wr-flows").json["status"] == "paused", 30)
    run("workflows instances resume wr-flow w1")
    run("workflows instances send-event wr-flow w1", "--type", "go", "--payload", '{"a": 1}')
    strict.wait_until(lambda: strict.get("wr-flows").json["status"] == "complete", 30)
    assert strict.get("wr-flows").json["output"] == [8, {"a": 1}]
    assert "Completed" in run("workflows instances list wr-flow")
    run("workflows instances restart wr-flow w1")
    run("workflows instances terminate wr-flow w1")
    assert strict.get("wr-flows").json["status"] == "terminated"
    run("workflows delete wr-flow")
    assert "was not found" in wrangler.run(tmp_path, "workflows", "describe", "wr-flow", fails=True)
