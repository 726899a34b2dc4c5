"""Packages from npm: their projects, the run of their cases in Node, and the workers made of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from atoll.engine.process.engine_process import find_files
from tests.npm import install
from tests.running import Atoll

ATOLL = str(Path(sys.executable).parent / "atoll")
HERE = Path(__file__).parent
MODULES = HERE.parents[1] / "build/test-packages"  # kept between runs
SECONDS = 120

# Runs in both: the case of a package gets the addresses of the servers and returns what JSON can carry.
ENTRY = """
const cases = {{ {table} }};
async function run(name, where) {{
  try {{
    return {{ result: await cases[name](where) }};
  }} catch (error) {{
    const cause = error?.cause ? ` cause: ${{error.cause.stack ?? error.cause}}` : "";
    return {{ error: `${{error?.stack ?? error}}${{cause}}` }};
  }}
}}
"""
IN_NODE = """
import { writeFileSync } from "node:fs";
const where = JSON.parse(process.argv[2]);
const results = {};
for (const name of Object.keys(cases)) results[name] = await run(name, where);
writeFileSync(process.argv[3], JSON.stringify(results));
process.exit();
"""
IN_A_WORKER = """
export default {
  fetch: async (request, env) => Response.json((await run(new URL(request.url).pathname.slice(1), env.WHERE)) ?? null),
};
"""


class Project:
    """A folder with `package.json` and a file per package in `src/`, copied to where it can be built."""

    def __init__(self, name: str, folder: Path) -> None:
        self.source, self.folder, modules = HERE / name, folder, MODULES / name
        install(self.source, modules)
        shutil.copytree(self.source, folder, ignore=shutil.ignore_patterns("node_modules"))
        (folder / "node_modules").symlink_to(modules / "node_modules")
        if (folder / "build.mjs").exists():
            subprocess.run([find_files().node, "build.mjs"], cwd=folder, check=True, timeout=SECONDS)

    def cases(self) -> list[str]:
        return sorted(file.stem for file in (self.source / "src").glob("*.js"))

    def _entry(self, file: str, cases: Iterable[str], end: str) -> Path:
        lines = [f'import case{index} from "./src/{name}.js";\n' for index, name in enumerate(cases)]
        table = ", ".join(f'"{name}": case{index}' for index, name in enumerate(cases))
        path = self.folder / file
        path.write_text("".join(lines) + ENTRY.format(table=table) + end)
        return path

    def in_node(self, cases: Iterable[str], where: object) -> dict[str, Any]:
        """The result of each case in Node."""
        entry = self._entry("in-node.mjs", cases, IN_NODE)
        written = self.folder / "in-node.json"
        command = [find_files().node, "--no-warnings", entry, json.dumps(where), written]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=self.folder)
        assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
        results: dict[str, Any] = json.loads(written.read_text())
        return results

    def deploy(self, node: Atoll, worker: str, cases: Iterable[str], where: object, **more: object) -> str:
        """Build a worker of some cases, as `atoll deploy` does, and return what was printed."""
        self._entry(f"{worker}.js", cases, IN_A_WORKER)
        config = {
            "name": worker, "main": f"{worker}.js", "compatibility_date": "2026-08-04", "vars": {"WHERE": where},
            "limits": {"cpu_ms": 30_000}, **more,
        }  # fmt: skip
        path = self.folder / f"{worker}.json"
        path.write_text(json.dumps(config))
        command = [ATOLL, "deploy", "--config", path, "--api", f"http://localhost:{node.port}"]
        ran = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=SECONDS)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr


@contextmanager
def servers(project: Project) -> Iterator[dict[str, Any]]:
    """The servers of `servers.mjs`, and where they are."""
    process = subprocess.Popen(
        [find_files().node, "servers.mjs"], cwd=project.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(20)
