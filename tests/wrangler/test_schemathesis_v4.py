"""Schemathesis over /client/v4: no input makes a route fail, and status and `success` agree in every answer.

The document is made from the node's own list of routes, so a new route is in it.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from atoll.api.cloudflare import account_id
from atoll.embed import Atoll as Embedded
from tests.running import Atoll

COMMAND = Path(sys.executable).parent / "st"
PARAMETER = re.compile(r"\{(\w+)(:path)?\}")
SCRIPT = "export default { fetch() { return new Response('hi'); }, scheduled() {} }"
CONFIG = """
[parameters]
account = "%s"
script = "hello"
namespace = "space"
queue = "jobs"
bucket = "bucket"
database = "base"
version = "latest"
"""
RAW = r"/values/|/objects/|upload|sql_dump|signed"  # their answers are bytes, or their proof is a signature
CHECKS = "not_a_server_error,response_schema_conformance"


def agrees(success: bool) -> dict[str, Any]:
    shape = {
        "type": "object",
        "required": ["success", "errors", "result"],
        "properties": {"success": {"const": success}},
    }
    return {"description": "", "content": {"application/json": {"schema": shape}}}


async def document(folder: Path) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    async with Embedded(data=folder) as atoll:
        for route in atoll.node.control.cloudflare.routes:
            names = [name for name, _ in PARAMETER.findall(route.path)]
            operation: dict[str, Any] = {
                "parameters": [
                    {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
                ],
                "responses": {"2XX": agrees(True), "4XX": agrees(False), "5XX": agrees(False)},
            }
            if route.method in ("POST", "PUT", "PATCH"):
                kinds = "application/json", "multipart/form-data"
                fields: dict[str, Any] = {"metadata": {}, "name": {"type": "string"}, "versions": {}, "settings": {}}
                shape = {"type": "object", "properties": fields}
                operation["requestBody"] = {"content": {kind: {"schema": shape} for kind in kinds}}
            paths.setdefault(PARAMETER.sub(r"{\1}", route.path), {})[route.method.lower()] = operation
    return {"openapi": "3.1.0", "info": {"title": "v4", "version": "1"}, "paths": paths}


def test_client_v4_survives_schemathesis(tmp_path: Path) -> None:
    (tmp_path / "v4.json").write_text(json.dumps(asyncio.run(document(tmp_path / "embedded"))))
    atoll = Atoll(tmp_path / "node", engines=1)
    atoll.start()
    try:
        token = atoll.control("POST", "/api/tokens", {"name": "fuzz", "scopes": ["admin"]}).json["token"]
        atoll.deploy("hello", SCRIPT)
        atoll.control("POST", "/api/kv", {"name": "space"})
        atoll.control("POST", "/api/queues", {"name": "jobs"})
        (tmp_path / "schemathesis.toml").write_text(CONFIG % account_id("default"))
        command = [
            COMMAND, "--config-file", tmp_path / "schemathesis.toml", "run", tmp_path / "v4.json",
            "--url", f"http://localhost:{atoll.port}", "-H", f"Authorization: Bearer {token}",
            "--phases", "fuzzing", "--max-examples", "2", "--generation-deterministic",
            "--suppress-health-check", "all", "--exclude-path-regex", RAW, "--checks", CHECKS,
            "--include-method", "POST", "--include-method", "PUT", "--include-method", "PATCH",
            "--request-timeout", "20", "--no-color",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=tmp_path)
    finally:
        code = atoll.stop()
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Fuzzing" in done.stdout
    assert code == 0 and "Traceback" not in atoll.log(), atoll.log()[-3000:]
