"""The bundler is fetched once, by the lock file that comes with Atoll, and never again.

npm uses a registry on 127.0.0.1 that has the real package, so npm's own integrity check runs.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from atoll.project.fetch import bundler_version, npm_command
from tests.cli.test_projects import run
from tests.project.conftest import MACHINE, ROOT

PACKAGE = f"@esbuild/linux-{MACHINE}"
SOURCE = 'import { Hono } from "hono";\nexport default new Hono().get("/", (c) => c.text("bundled"));\n'


class Registry(http.server.ThreadingHTTPServer):
    """A registry with one package, intact or damaged, that counts its requests."""

    def __init__(self, tarball: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.tarball = tarball
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Answers(http.server.BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        name = self.path.replace("%2f", "/").replace("%2F", "/").lstrip("/")
        if name.endswith(".tgz"):
            return self._send(self.server.tarball, "application/octet-stream")
        if name != PACKAGE:
            return self.send_error(404)
        version = bundler_version()
        file = f"{self.server.url}/{PACKAGE}/-/linux-{MACHINE}-{version}.tgz"
        facts = {"name": PACKAGE, "version": version, "dist": {"tarball": file, "integrity": locked()}}
        packument = {"name": PACKAGE, "dist-tags": {"latest": version}, "versions": {version: facts}}
        return self._send(json.dumps(packument).encode(), "application/json")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def locked() -> str:
    lock = json.loads((files("atoll.project") / "bundler" / "package-lock.json").read_text("utf-8"))
    return str(lock["packages"][f"node_modules/{PACKAGE}"]["integrity"])


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The package from npm's cache, where `make dev` has put it."""
    folder = tmp_path_factory.mktemp("pack")
    command = [*npm_command(), "pack", "--prefer-offline", "--json", f"{PACKAGE}@{bundler_version()}"]
    packed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if packed.returncode != 0:
        pytest.skip("no npm registry can be reached, and its cache has not the bundler")
    data = next(folder.glob("*.tgz")).read_bytes()
    assert locked() == f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"
    return data


@pytest.fixture
def registry(tarball: bytes) -> Iterator[Registry]:
    registry = Registry(tarball)
    thread = threading.Thread(target=registry.serve_forever)
    thread.start()
    yield registry
    registry.shutdown()
    thread.join()
    registry.server_close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "worker.ts").write_text(SOURCE)
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    return tmp_path


def user(registry: Registry) -> dict[str, str]:
    """The environment of a user whose npm uses this registry, and who has no bundler."""
    return {"npm_config_registry": registry.url, "npm_config_fetch_retries": "0", "ATOLL_ESBUILD": ""}


def test_only_the_first_build_fetches_the_bundler(registry: Registry, project: Path) -> None:
    first = run(project, "build", "worker.ts", **user(registry))
    assert f"fetching the bundler (esbuild {bundler_version()}), once" in first.stderr
    assert [path for path in registry.asked if path.endswith(".tgz")] and len(registry.asked) <= 4
    cached = sorted(path.name for path in (project / ".cache/atoll").iterdir())
    assert cached == [f"esbuild-{bundler_version()}", "fetch.lock"]
    registry.asked.clear()
    again = run(project, "build", "worker.ts", npm_config_registry="http://127.0.0.1:1", ATOLL_ESBUILD="")
    assert "fetching" not in again.stderr and registry.asked == []
    assert b"bundled" in (project / "dist/modules/worker.js").read_bytes()


def test_a_tampered_package_is_refused(registry: Registry, project: Path) -> None:
    registry.tarball = registry.tarball[:-1] + b"x"
    ran = run(project, "build", "worker.ts", code=1, **user(registry))
    assert "error: the bundler could not be fetched: " in ran.stderr and "corrupted" in ran.stderr
    assert [path.name for path in (project / ".cache/atoll").iterdir()] == ["fetch.lock"]


def test_without_a_registry_the_error_says_what_still_works(project: Path) -> None:
    away = {"npm_config_registry": "http://127.0.0.1:1", "npm_config_fetch_retries": "0", "ATOLL_ESBUILD": ""}
    ran = run(project, "build", "worker.ts", code=1, **away)
    assert "error: the bundler could not be fetched: " in ran.stderr and "ECONNREFUSED" in ran.stderr
    assert (
        "hint: the first build needs an npm registry; plain .js and .ts with relative imports build without a bundler"
        in ran.stderr
    )
    (project / "plain.ts").write_text("export default { fetch(): Response { return new Response() } }")
    run(project, "build", "plain.ts", "--out", "plain", **away)
