"""The switches of a worker on a node: over HTTP, through its settings, and after a restart."""

from __future__ import annotations

from pathlib import Path

from tests.running import Atoll

PASSES = """export default { fetch() {
  const before = performance.now();
  for (let i = 0; i < 3e6; i++);
  return new Response(performance.now() > before ? "passes" : "stands still");
} };"""


def test_a_worker_loses_its_live_clock_when_the_node_no_longer_allows_it(tmp_path: Path) -> None:
    trusting = Atoll(tmp_path, engines=1, worker_clock="live")
    trusting.start()
    trusting.deploy("plain", PASSES, limits={"cpu_ms": 1000})
    trusting.deploy("live", PASSES, limits={"cpu_ms": 1000}, switches={"allow_live_clock": True})
    assert [trusting.get(name).text for name in ("plain", "live")] == ["stands still", "passes"]
    assert trusting.stop() == 0

    careful = Atoll(tmp_path, engines=1)
    careful.start()
    assert [careful.get(name).text for name in ("plain", "live")] == ["stands still", "stands still"]
    wanted = {"name": "more", "script": PASSES, "switches": {"allow_live_clock": True}}
    refused = careful.control("POST", "/api/workers", wanted)
    assert refused.status == 400 and "--worker-clock live" in refused.text
    assert careful.stop() == 0
