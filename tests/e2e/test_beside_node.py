"""`node:` modules compared with Node: the same calls in a worker and in the engine's Node give identical results."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from atoll.project.fetch import node_folder
from tests.running import Atoll

FOLDER = Path(__file__).parent / "beside_node"
SUITES = [
    "agreeing",
    "buffer",
    "certificates",
    "edges",
    "files",
    "inspecting",
    "keys",
    "odd_arguments",
    "signing",
    "small",
    "unpacking",
    "utility",
    "zipping",
]


@pytest.fixture(scope="module")
def by_node() -> dict[str, dict[str, str]]:
    """The result of Node for each call."""
    code = f"process.cwd = () => '/bundle'; console.log(JSON.stringify(await (await import({json.dumps((FOLDER / 'main.js').as_uri())})).all()))"
    command = [node_folder() / "bin/node", "--no-warnings", "--input-type=module", "--eval", code]
    found: dict[str, dict[str, str]] = json.loads(
        subprocess.run(command, check=True, capture_output=True, cwd="/").stdout
    )
    return found


@pytest.fixture(scope="module")
def worker(atoll: Atoll) -> str:
    modules = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.js")}
    atoll.deploy("beside-node", main="main.js", modules=modules, limits={"cpu_ms": 20_000, "wall_ms": 60_000})
    return "beside-node"


@pytest.mark.parametrize("suite", SUITES)
def test_a_worker_gets_the_same_results_as_node(
    atoll: Atoll, worker: str, by_node: dict[str, dict[str, str]], suite: str
) -> None:
    ours: dict[str, str] = atoll.get(worker, f"/{suite}").json
    assert len(ours) > 1000
    different = [
        f"{name}\n  Node:  {text}\n  Atoll: {ours.get(name)}"
        for name, text in by_node[suite].items()
        if ours.get(name) != text
    ]
    assert not different, f"{len(different)} of {len(ours)} differ\n" + "\n".join(different[:20])
