"""Runs tests/web/*.test.js inside real isolates: each file is deployed as a worker that runs its own tests."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.running import Atoll

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.test.js"))

# One request per test, so that each has its own limits and its own failure.
RUNNER = """
import { tests } from "./%s";
export default {
  async fetch(request) {
    const name = new URL(request.url).searchParams.get("test");
    if (name === null) return Response.json(Object.keys(tests));
    try {
      await tests[name](request);
      return new Response("passed");
    } catch (error) {
      return new Response(error?.stack ?? String(error), { status: 500 });
    }
  },
};
"""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".test.js"))
def test_the_web_platform(atoll: Atoll, file: Path) -> None:
    name = "web-" + file.name.removesuffix(".test.js").replace("_", "-")
    modules = {"main.js": RUNNER % file.name}
    modules |= {path.name: path.read_text() for path in (file, FOLDER / "assert.js")}
    env = {"TEXT": "hello", "NUMBER": 5}
    atoll.deploy(name, main="main.js", modules=modules, limits={"cpu_ms": 5000}, env=env)
    names = atoll.get(name).json
    assert names, "the file has no tests"
    failed = {}
    for test in names:
        reply = atoll.get(name, f"/?test={quote(test)}")
        if reply.text != "passed":
            failed[test] = reply.text
    report = "\n\n".join(f"--- {test}\n{reason}" for test, reason in failed.items())
    assert not failed, f"{len(failed)} of {len(names)} failed\n{report}"
