"""Runs every curl command of the documentation pages, in their order, as a reader would.

A page may assume that its reader has certain workers. The test deploys them afresh before each page and prepares
nothing else.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import Atoll

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    "guides/first-worker", "guides/deploy-over-http", "guides/secrets", "guides/versions-and-rollback",
    "guides/tenants-and-tokens", "guides/backup", "bindings/kv", "bindings/cache", "bindings/queue", "triggers/cron",
    "concepts/isolation",
)  # fmt: skip
COMMAND = re.compile(r"^\$ (.+(?:\n {2}.+)*)", re.MULTILINE)  # continuation lines are indented
FAIL_IF_REFUSED = 'curl() { command curl --fail-with-body -sS "$@"; }; set -o pipefail\n'
# Of a node that requires tokens; of a terminal with the variables of `atoll profile env`, which test_documents.py has.
ELSEWHERE = ("admin-token", "$CLOUDFLARE_API_TOKEN")

WORKER = """export default {
  async fetch(request) {
    const tagged = { headers: { "Cache-Tag": "product-7" } };
    for (const url of ["http://x/y", "http://x/z"]) await caches.default.put(url, new Response("kept", tagged));
    return new Response("Hello!");
  },
  scheduled() {},
  queue(batch) { batch.retryAll(); },
};"""
BINDINGS = [
    {"type": "kv", "name": "VISITS", "namespace": "visits"},
    {"type": "queue", "name": "JOBS", "queue": "jobs"},
]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("pages"))
    node.start()
    yield node
    assert node.stop() == 0


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_work(node: Atoll, tmp_path: Path, name: str) -> None:
    node.control("DELETE", "/api/workers/hello")  # removes the versions and secrets of the previous page
    node.deploy("hello", WORKER, bindings=BINDINGS)
    node.deploy("cron", WORKER, crons=["0 9 * * 2"])
    assert node.get("hello").text == "Hello!"
    page = (DOCS / f"{name}.md").read_text("utf-8")
    for file, source in re.findall(r"^```js\n// (\S+\.js)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        (tmp_path / file).write_text(source, "utf-8")
    (tmp_path / "logo.png").write_bytes(b"\x89PNG")
    blocks = re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    commands = [command for block in blocks for command in COMMAND.findall(block) if "curl " in command]
    assert commands
    for command in commands:
        if not any(word in command for word in ELSEWHERE):
            typed = FAIL_IF_REFUSED + re.sub(r"(localhost|127\.0\.0\.1):8080", rf"\1:{node.port}", command)
            ran = subprocess.run(["bash", "-c", typed], cwd=tmp_path, capture_output=True, timeout=60, check=False)
            assert ran.returncode == 0, f"{command}\n{ran.stdout.decode()}\n{ran.stderr.decode()}"
