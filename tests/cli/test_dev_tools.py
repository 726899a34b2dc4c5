"""`atoll dev` of a project that Vite or a framework builds: it runs the tool at the start and after each change."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.dev_session import Dev
from tests.npm import npm_folder

# What a tool does, in a few lines: it makes a folder, a config in it, and a pointer to that.
BUILD = """
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
const text = readFileSync("src/text.txt", "utf8").trim();
if (text === "broken") throw new Error("the tool does not like it");
rmSync("dist", { recursive: true, force: true });
for (const folder of ["dist/client", "dist/server", ".wrangler/deploy"]) mkdirSync(folder, { recursive: true });
const { name, vars } = JSON.parse(readFileSync("wrangler.json", "utf8"));
writeFileSync("dist/server/index.js", `export default { fetch: (r, env) => new Response("${text} " + env.WHO) };`);
writeFileSync("dist/client/page.txt", text);
const assets = { directory: "../client" };
const config = { name, vars, main: "index.js", no_bundle: true, compatibility_date: "2026-01-01", assets };
writeFileSync("dist/server/wrangler.json", JSON.stringify(config));
writeFileSync(".wrangler/deploy/config.json", JSON.stringify({ configPath: "../../dist/server/wrangler.json" }));
"""


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dev]:
    monkeypatch.setenv("PATH", f"{npm_folder(tmp_path / 'bin')}:{os.environ['PATH']}")
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    about = {
        "type": "module",
        "scripts": {"build": "node build.js"},
        "devDependencies": {"@cloudflare/vite-plugin": "1"},
    }
    (folder / "package.json").write_text(json.dumps(about))
    (folder / "vite.config.js").write_text("")
    (folder / "build.js").write_text(BUILD)
    (folder / "src/text.txt").write_text("one")
    (folder / "wrangler.json").write_text('{"name": "site", "main": "src/virtual.ts", "vars": {"WHO": "Ada"}}')
    session = Dev(folder)
    yield session
    session.stop()


def test_the_tool_builds_at_the_start_and_after_each_change(dev: Dev) -> None:
    assert dev.get() == (200, "one Ada")
    assert dev.get("/page.txt") == (200, "one")
    dev.save("src/text.txt", "two")
    dev.wait_for("reloaded")
    assert dev.get() == (200, "two Ada")
    assert dev.get("/page.txt") == (200, "two")
    dev.save("src/text.txt", "broken")
    assert "the tool does not like it" in dev.wait_for("build_failed")["message"]
    dev.save("src/text.txt", "three")
    dev.wait_for("reloaded")
    dev.save("wrangler.json", '{"name": "site", "main": "src/virtual.ts", "vars": {"WHO": "Grace"}}')
    dev.wait_for("reloaded")
    assert dev.get() == (200, "three Grace")
    assert (dev.folder / ".atoll/dev").is_dir(), "data is not in a folder that the tool empties"
