"""Schemathesis against the node's own OpenAPI document: no input makes it fail, and answers match the document."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.running import Atoll

HELLO = 'export default { fetch() { return new Response("Hello!"); }, scheduled() {} }'
COMMAND = Path(sys.executable).parent / "st"
# Existing resources, so that requests get further than "not found"; the run itself deletes some of them again.
CONFIG = """
[parameters]
worker = "hello"
version = "1"
namespace = "counter"
queue = "jobs"
tenant = "default"
name = "API_KEY"
"""
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_the_api_survives_schemathesis(tmp_path: Path) -> None:
    atoll = Atoll(tmp_path, engines=1)
    atoll.start()
    try:
        for name in ("hello", "other"):
            atoll.deploy(name, HELLO)
            atoll.deploy(name, HELLO + "// 2")
        atoll.control("POST", "/api/kv", {"name": "counter"})
        atoll.control("POST", "/api/queues", {"name": "jobs"})
        (tmp_path / "schemathesis.toml").write_text(CONFIG)
        command = [
            COMMAND, "--config-file", tmp_path / "schemathesis.toml", "run", f"http://localhost:{atoll.port}/api/openapi.json",
            "--phases", "fuzzing", "--max-examples", "3", "--generation-deterministic", "--suppress-health-check", "all",
            "--exclude-path-regex", "live|backup|export|d1.*import", "--checks", CHECKS, "--request-timeout", "20", "--no-color",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert "Fuzzing" in done.stdout
    finally:
        assert atoll.stop() == 0
    assert "Traceback" not in atoll.log()
