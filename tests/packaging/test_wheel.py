"""A wheel on a machine that has Python and nothing else: it installs, serves and deploys.

The wheel is made of what `make` has compiled already, by the tool behind `make wheels`.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import free_port

ROOT = Path(__file__).parents[2]
HELLO = "export default { fetch() { return new Response('from a wheel'); } };"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "tools.wheels", "--build-dir", "build/editable", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of a fresh virtual environment."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", str(wheel)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=300, env=bare(folder))
    assert done.returncode == 0, done.stderr
    return folder / "bin"


def bare(folder: Path) -> dict[str, str]:
    """An environment in which no compiler, no Node and no settings of anybody are found."""
    return {"HOME": str(folder), "PATH": str(folder / "bin")}


def test_it_runs_on_all_systems_with_a_glibc_that_is_named(wheel: Path) -> None:
    assert "-manylinux_2_" in wheel.name
    digest, name = (wheel.parent / "SHA256SUMS").read_text().split()
    assert (digest, name) == (hashlib.sha256(wheel.read_bytes()).hexdigest(), wheel.name)


def test_licences_of_all_that_is_inside_travel_with_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        text = files.read("atoll/_engine/licences.txt").decode()
    assert {"atoll/_engine/engine.node", "atoll/_engine/web.js"} <= set(names)
    inside = set(json.loads((ROOT / "package.json").read_text())["dependencies"]) - {"esbuild"}
    assert [name for name in inside if name not in text] == []
    assert text.count("Permission is hereby granted") >= 3 and "public domain" in text


@pytest.fixture
def served(installed: Path, tmp_path: Path) -> Iterator[int]:
    """A node of a fresh install, in an empty folder, with the example."""
    port = free_port()
    command = [str(installed / "atoll"), "serve", "--example", "--json", "--port", str(port)]
    node = subprocess.Popen(command, cwd=tmp_path, env=bare(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert node.stdout is not None
        ready = json.loads(node.stdout.readline() or "{}")
        assert ready.get("event") == "ready", node.communicate()[1].decode()
        yield port
    finally:
        node.terminate()
        node.communicate(timeout=30)


def get(port: int, host: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/", headers={"Host": host})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_a_fresh_install_serves_and_deploys_without_a_compiler(served: int, installed: Path, tmp_path: Path) -> None:
    assert get(served, "hello-world.localhost") == (200, b"Hello World!\n")
    (tmp_path / "hello.js").write_text(HELLO)
    command = [str(installed / "atoll"), "deploy", "hello.js", "--api", f"http://localhost:{served}"]
    done = subprocess.run(command, cwd=tmp_path, env=bare(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert get(served, "hello.localhost") == (200, b"from a wheel")
