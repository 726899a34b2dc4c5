"""Cloudflare's SDKs for Python and TypeScript, pinned, against a node: each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from atoll.engine.process.engine_process import find_files
from tests import npm, pypi
from tests.wrangler.stock import ROOT, Wrangler

SDK = Path(__file__).parent / "sdk"
PYTHON_SDK = "cloudflare==5.9.0"


def run(command: list[str | Path], wrangler: Wrangler, **more: str) -> dict[str, Any]:
    names = ("PATH", "HOME", "CLOUDFLARE_API_TOKEN", "CLOUDFLARE_ACCOUNT_ID")
    environment = {name: wrangler.environment[name] for name in names}
    environment |= {"CLOUDFLARE_BASE_URL": wrangler.environment["CLOUDFLARE_API_BASE_URL"], **more}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert all((status < 400) == success for status, success in wrangler.recorder.statuses)
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


def test_the_python_sdk_manages_everything(wrangler: Wrangler) -> None:
    try:
        packages = pypi.install(PYTHON_SDK, ROOT / "build/sdk-python")
    except npm.NoRegistry as error:
        pytest.skip(str(error))
    told = run([sys.executable, SDK / "round_trip.py"], wrangler, PYTHONPATH=str(packages))
    assert told == {
        "keys": ["a", "b"], "value": "one", "rows": [{"x": 7}], "buckets": ["py-bucket"],
        "pulled": [{"job": 1}, "text"], "hidden": 0, "settled": [1, 1], "attempts": [2], "paused": True,
        "consumer": "http_pull", "secrets": ["SECRET"], "workers": ["py-sdk"], "versions": 2, "tags": ["other"],
        "scripts": ["py-script"], "routes": ["py.example.com/*"], "domains": ["py.example.org"], "taken": 400,
        "missing": 10007, "conflict": 11009, "left": [],
    }  # fmt: skip


def test_the_typescript_sdk_manages_everything(wrangler: Wrangler) -> None:
    folder = ROOT / "build/sdk-typescript"
    try:
        npm.install(SDK, folder)
    except npm.NoRegistry as error:
        pytest.skip(str(error))
    script = folder / "round_trip.mjs"  # imports are resolved from where the file is
    script.write_text((SDK / "round_trip.mjs").read_text())
    told = run([find_files().node, script], wrangler)
    assert told == {
        "keys": ["a"], "value": "one", "rows": [{"x": 7}], "buckets": told["buckets"], "pulled": ["text"], "acks": 1,
        "workers": ["js-sdk"], "versions": [2], "missing": 404,
    }  # fmt: skip
    assert "js-bucket" in told["buckets"]
