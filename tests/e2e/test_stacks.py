"""Errors of a bundled worker are shown at their source position: in logs, refused deploys and development pages."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.running import Atoll

ROOT = Path(__file__).resolve().parents[2]
INDEX = """import { divide } from "./lib/math";
const unused: number = 1;
export default {
  fetch(request: Request): Response {
    console.error(new Error("logged here"));
    return new Response(String(divide(1, Number(new URL(request.url).pathname.slice(1)))));
  },
};
"""
MATH = """export function divide(a: number, b: number): number {
  // a comment that no bundle has
  if (b === 0) {
    throw new RangeError("division by zero");
  }
  return a / b;
}
"""


class Bundle(NamedTuple):
    script: str
    source_map: str


def bundled(folder: Path, **files: str) -> Bundle:
    [esbuild] = (ROOT / "node_modules/@esbuild").glob("*/bin/esbuild")
    for name, text in files.items():
        path = folder / "src" / name.replace("__", "/")
        path = path.with_suffix(".ts")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [
        esbuild,
        "src/index.ts",
        "--bundle",
        "--minify",
        "--format=esm",
        "--sourcemap=external",
        "--outfile=dist/worker.js",
    ]
    subprocess.run([*command, "--log-level=error"], check=True, cwd=folder)
    return Bundle((folder / "dist/worker.js").read_text(), (folder / "dist/worker.js.map").read_text())


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return bundled(tmp_path, index=INDEX, lib__math=MATH)


def test_the_logs_of_a_minified_bundle_name_the_source_files(atoll: Atoll, bundle: Bundle) -> None:
    atoll.deploy(
        "mapped",
        modules={"dist/worker.js": bundle.script},
        main="dist/worker.js",
        source_maps={"dist/worker.js": bundle.source_map},
    )
    assert atoll.get("mapped", "/0").status == 500
    record = atoll.logs("mapped")[0]
    thrown = record["exception"]
    assert (thrown["file"], thrown["line"]) == ("src/lib/math.ts", 4)
    frames = thrown["stack"].splitlines()
    assert frames[0] == "RangeError: division by zero"
    assert "src/lib/math.ts:4:11" in frames[1] and "src/index.ts:6:32" in frames[2]
    assert "src/index.ts:5:19" in record["logs"][0]["message"]


def test_the_maps_of_a_version_belong_to_it_alone(atoll: Atoll, bundle: Bundle) -> None:
    atoll.deploy("remapped", bundle.script, source_maps={"worker.js": bundle.source_map})
    atoll.get("remapped", "/0")
    atoll.deploy("remapped", "export default { fetch() { throw new Error('plain') } }")
    atoll.get("remapped", "/0")
    new, old = atoll.logs("remapped")
    assert new["exception"]["file"] == "worker.js"
    assert old["exception"]["file"] == "src/lib/math.ts", "an old record is still read with the maps of its version"


def test_a_refused_deploy_names_the_source_file(atoll: Atoll, tmp_path: Path) -> None:
    bundle = bundled(
        tmp_path,
        index="type A = 1;\n\nconst a: { b?: { c: A } } = {};\nconsole.log(a.b!.c);\nexport default { fetch() {} };\n",
    )
    body = {"name": "unmapped", "script": bundle.script, "source_maps": {"worker.js": bundle.source_map}}
    error = atoll.control("POST", "/api/workers", body).json["error"]
    assert (error["file"], error["line"]) == ("src/index.ts", 4)
    assert "src/index.ts:4:" in error["stack"]


INSIDE = """class Own extends Error { toString() { return "not this"; } }
const stacks = {
  plain: () => new Error("plain").stack,
  own: () => new Own("own").stack,
  platform: () => { try { new URL("::"); } catch (error) { return error.stack; } },
  holder: () => { const holder = {}; Error.captureStackTrace(holder); return holder.stack; },
  later: async () => { await null; try { await (async () => { await 1; throw new RangeError("later"); })(); } catch (error) { return error.stack; } },
  sites: () => {
    Error.prepareStackTrace = (error, sites) => sites.map((site) => site.getFileName()).join();
    try { return new Error("sites").stack; } finally { delete Error.prepareStackTrace; }
  },
  throws: () => {
    Error.prepareStackTrace = () => { throw new Error("of its own making"); };
    try { return new Error("throws").stack; } catch (error) { return error.message; } finally { delete Error.prepareStackTrace; }
  },
};
export default { async fetch(request) {
  console.error(new Error("said"));
  console.trace("traced");
  return new Response(await stacks[new URL(request.url).pathname.slice(1)]());
} };
"""  # fmt: skip


@pytest.mark.parametrize(
    ("name", "first", "file"),
    [
        ("plain", "Error: plain", "worker.js:3:16"),
        ("own", "Error: own", "worker.js:4:14"),
        ("platform", "TypeError: Invalid URL string.", "worker.js:5:27"),
        ("holder", "Error", "worker.js:6:44"),
        ("later", "RangeError: later", "worker.js:7:"),
        ("sites", "worker.js,worker.js", ""),
        ("throws", "of its own making", ""),
    ],
)
def test_a_stack_has_no_internal_frames(atoll: Atoll, name: str, first: str, file: str) -> None:
    atoll.deploy("inside", INSIDE)
    stack = atoll.get("inside", f"/{name}").text
    assert stack.splitlines()[0] == first and file in stack
    assert "atoll:" not in stack
    said = [line["message"] for line in atoll.logs("inside")[0]["logs"]]
    assert said[0].startswith("Error: said\n    at Object.fetch (worker.js:18:")
    assert said[1].startswith("Trace: traced\n")
    assert "atoll:" not in "".join(said)
