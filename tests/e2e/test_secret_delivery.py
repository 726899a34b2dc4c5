"""A secret from the API to the worker: only that worker's `env` has it."""

from __future__ import annotations

from pathlib import Path

from tests.running import Atoll

VALUE = "s3cr3t-value-that-nobody-must-see"
SCRIPT = """
import { env as imported } from "cloudflare:workers";
export default { fetch(request, env) {
  const found = Object.keys(globalThis).filter((key) => globalThis[key] === env.KEY && env.KEY);
  return Response.json({ key: env.KEY ?? null, same: imported.KEY === env.KEY, found });
} }
"""


def test_a_secret_is_only_in_the_env_of_its_worker(tmp_path: Path) -> None:
    atoll = Atoll(tmp_path, engines=1)
    atoll.start()
    try:
        atoll.deploy("one", SCRIPT)
        atoll.deploy("two", SCRIPT)
        assert atoll.control("PUT", "/api/workers/one/secrets/KEY", {"value": VALUE}).status == 200
        assert atoll.get("one").json == {"key": VALUE, "same": True, "found": []}
        assert atoll.get("two").json["key"] is None
        atoll.deploy("one", SCRIPT + "// again")
        assert atoll.get("one").json["key"] == VALUE
    finally:
        assert atoll.stop() == 0
    assert VALUE not in atoll.log()
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert files and not [path for path in files if VALUE.encode() in path.read_bytes()]
