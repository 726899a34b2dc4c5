"""The AI SDK from npm, unchanged: `ai` with `workers-ai-provider` on env.AI."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bindings.ai.openai_server import OpenAiServer
from tests.npm import NoRegistry, install
from tests.running import Atoll

ATOLL = str(Path(sys.executable).parent / "atoll")
PROJECT = Path(__file__).parent / "project"
MODULES = Path(__file__).resolve().parents[3] / "build/test-ai"  # kept between runs


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    try:
        install(PROJECT, MODULES)
    except NoRegistry as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("ai-sdk")
    server = OpenAiServer()
    node = Atoll(
        folder / "node", engines=1, ai_endpoint=server.url, ai_default_model="a", ai_default_embedding_model="b"
    )
    node.start()
    shutil.copytree(PROJECT, folder / "project")
    (folder / "project/node_modules").symlink_to(MODULES / "node_modules")
    command = [ATOLL, "deploy", "--api", f"http://127.0.0.1:{node.port}"]
    ran = subprocess.run(command, cwd=folder / "project", capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    yield node
    assert node.stop() == 0
    server.close()


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/text", ["echo: Hi", 10, "stop"]),
        ("/stream", [["He", "llo ", "wörld"], 10, "stop"]),
        ("/tool", ["weather", "sunny in Bern"]),
        ("/embeddings", [[1, 0.5, -1], [3, 0.5, -1]]),
    ],
)
def test_the_ai_sdk_works(node: Atoll, path: str, answer: object) -> None:
    assert node.get("ai-sdk", path).json == answer
